/* SPDX-License-Identifier: MIT */
/* A call that fails returns an error and leaves everything as it was. */
#include "test.h"

static void (*fail)(const char *);
static void (*fail_clear)(void);

/* Who gets no handle shares nothing: the block is used again, and its memory goes back. */
static void no_handle(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);
	hipMemPoolPtrExportData data;
	void *first = NULL, *p, *q;
	hipIpcMemHandle_t handle;

	fail("hipIpcGetMemHandle:%1");
	for (int i = 0; i < 2; i++) {
		OK(hipMallocFromPoolAsync(&p, 4096, pool, NULL));
		OK(hipMallocFromPoolAsync(&q, 4096, pool, NULL));
		CHECK(!first || p == first || q == first);
		first = p;
		CHECK(hipIpcGetMemHandle(&handle, p) != hipSuccess);
		CHECK(hipMemPoolExportPointer(&data, p) != hipSuccess);
		OK(hipFreeAsync(p, NULL));
		OK(hipFreeAsync(q, NULL));
	}
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
	OK(hipMemPoolDestroy(pool));
	fail_clear();
}

int main(void)
{
	uint64_t before = 0, after = 0;
	hipMemPool_t pool;
	hipStream_t s;
	hipEvent_t e;
	void *p, *q;

	CHECK(preloaded());
	fail = (void (*)(const char *))sim_must("somasim_fail");
	fail_clear = (void (*)(void))sim_must("somasim_fail_clear");
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipEventCreate(&e));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMallocAsync(&p, 1 << 20, s));

	/* The device gives no more. */
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &before));
	fail("hipExtMallocWithFlags:%1=1"); /* whatever it says */
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 1 << 30, s));
	fail_clear();
	fail("hipExtMallocWithFlags:%1");
	q = (void *)7;
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 1 << 30, s));
	CHECK(!q);
	GIVES(hipErrorOutOfMemory, hipGetLastError());
	q = (void *)7;
	GIVES(hipErrorOutOfMemory, hipMalloc(&q, 1 << 30));
	CHECK(q == (void *)7);
	fail_clear();
	(void)hipGetLastError();
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &after));
	CHECK(before == after);
	OK(hipMallocAsync(&q, 1 << 30, s));
	OK(hipFreeAsync(q, s));
	GIVES(hipSuccess, hipGetLastError());

	/* A record that fails gives the event no clock. */
	stall(s);
	OK(hipMemsetAsync(p, 1, 1 << 20, s));
	OK(hipFreeAsync(p, s));
	fail("hipEventRecord:%1");
	CHECK(hipEventRecord(e, s) != hipSuccess);
	fail_clear();
	OK(hipStreamWaitEvent(hipStreamPerThread, e, 0));
	OK(hipMallocAsync(&q, 1 << 20, hipStreamPerThread));
	CHECK(q != p);
	OK(hipFreeAsync(q, hipStreamPerThread));
	release(s);

	/* A synchronization that fails proves nothing, a destroy neither. */
	OK(hipMallocAsync(&p, 33 << 20, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 1 << 20, s));
	OK(hipFreeAsync(p, s));
	fail("hipStreamSynchronize:%1,hipStreamDestroy:%1");
	CHECK(hipStreamSynchronize(s) != hipSuccess);
	OK(hipMallocAsync(&q, 33 << 20, hipStreamPerThread));
	CHECK(q != p);
	OK(hipFreeAsync(q, hipStreamPerThread));
	release(s);
	CHECK(hipStreamDestroy(s) != hipSuccess);
	fail_clear();
	OK(hipMallocAsync(&p, 4096, s)); /* still a stream */
	OK(hipFreeAsync(p, s));
	OK(hipStreamDestroy(s));
	OK(hipEventDestroy(e));
	no_handle();
	return 0;
}
