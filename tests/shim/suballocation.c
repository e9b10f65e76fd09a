/* SPDX-License-Identifier: MIT */
/*
 * No call shows that blocks share a segment, and no call writes what the runtime would not
 * write. pointers.c has the common questions; this has the details.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

#define CANARY 0xa7

/* ---- widths -------------------------------------------------------------- */

/* As the runtime has them: callers have variables of just that size. */
static void widths(void *p, bool pooled)
{
	static const struct {
		int attr;
		unsigned width;
	} want[] = {
		{HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, 4},
		{HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, 8},
		{HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, 1},
		{HIP_POINTER_ATTRIBUTE_BUFFER_ID, 4},
		{HIP_POINTER_ATTRIBUTE_IS_MANAGED, 1},
		{HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4},
		{HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8},
		{HIP_POINTER_ATTRIBUTE_RANGE_SIZE, 4},
		{HIP_POINTER_ATTRIBUTE_MAPPED, 1},
		{HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4},
		{HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8},
	};
	/* The runtime itself writes as much about memory of its own. */
	void *host;

	OK(hipHostMalloc(&host, 64, 0));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		for (int real = 0; real < 2; real++) {
			unsigned char seen[2][16];
			unsigned wide = 0;

			/* Twice, so that a byte that happens to be the canary shows. */
			for (int k = 0; k < 2; k++) {
				hipPointer_attribute attr = (hipPointer_attribute)want[i].attr;
				void *data = seen[k];

				memset(seen[k], CANARY + k, sizeof(seen[k]));
				if (k)
					OK(hipDrvPointerGetAttributes(1, &attr, &data,
								      real ? host : p));
				else if (hipPointerGetAttribute(data, attr, real ? host : p) !=
					 hipSuccess)
					memset(seen[k], CANARY, sizeof(seen[k]));
			}
			for (unsigned b = 0; b < 16; b++)
				if (seen[0][b] != CANARY || seen[1][b] != CANARY + 1)
					wide = b + 1;
			if (want[i].attr == HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE &&
			    (real || !pooled))
				CHECK(wide == 0); /* NotSupported in the runtime */
			else
				CHECK(wide == want[i].width);
		}
	}
	OK(hipHostFree(host));
}

/* From 4 GiB on the four bytes of the runtime can't hold it. */
static void large(void)
{
	size_t size = (5ull << 30) + 12288, got = 0;
	void *base, *p;

	OK(hipMalloc(&p, size));
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, (char *)p + size - 1));
	CHECK(got == size);
	OK(hipMemGetAddressRange(&base, &got, (char *)p + size - 1));
	CHECK(base == p && got == size);
	OK(hipMemPtrGetInfo(p, &got));
	CHECK(got == size);
	OK(hipFree(p));
}

static void pool_of(hipStream_t s)
{
	hipMemPool_t made = make_pool(0, hipMemHandleTypeNone), def, got = NULL;
	void *p, *q;

	OK(hipDeviceGetDefaultMemPool(&def, 0));
	OK(hipMallocFromPoolAsync(&p, 3000, made, s));
	OK(hipMallocAsync(&q, 3000, s));
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(got == made);
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (char *)q + 17));
	CHECK(got == def);
	widths(q, true);
	OK(hipFreeAsync(p, s));
	OK(hipFreeAsync(q, s));
	OK(hipMemPoolDestroy(made));
}

/* ---- synchronous memory operations --------------------------------------- */

static atomic_bool let_go;

static void *later(void *arg)
{
	usleep(30000);
	atomic_store(&let_go, true);
	release(arg);
	return NULL;
}

/* Of one block, and not of the one beside it. */
static void sync_memops(void)
{
	/* Headers before 5.3 do not have it. */
	hipError_t (*set)(const void *, hipPointer_attribute, hipDeviceptr_t) = (hipError_t(*)(
		const void *, hipPointer_attribute, hipDeviceptr_t))(
		uintptr_t)dlsym(RTLD_DEFAULT, "hipPointerSetAttribute");
	unsigned on = 1, off = 0;
	bool got;
	pthread_t thread;
	void *p, *q;

	OK(hipMalloc(&q, 4096));
	OK(hipMalloc(&p, 4096));
	OK(set(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	CHECK(got);
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, q));
	CHECK(!got);
	OK(hipStreamSynchronize(NULL));
	stall(NULL);
	OK(hipMemset(q, 1, 4096)); /* returns at once */
	CHECK(!pthread_create(&thread, NULL, later, NULL));
	OK(hipMemset(p, 1, 4096));
	CHECK(atomic_load(&let_go));
	CHECK(!pthread_join(thread, NULL));
	OK(set(&off, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(hipPointerGetAttribute(&got, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	CHECK(!got);
	GIVES(hipErrorInvalidValue, set(NULL, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(hipFree(p));
	CHECK(set(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, p) != hipSuccess);
	OK(hipFree(q));
}

/* ---- three dimensions ----------------------------------------------------- */

static void cubes(void)
{
	unsigned char got[64 * 4 * 3];
	hipPitchedPtr cube = {0};
	void *gap;

	OK(hipMalloc(&gap, 1000)); /* so that the next is not at offset 0 */
	cube.pitch = 64;
	cube.xsize = 64;
	cube.ysize = 4;
	OK(hipMalloc(&cube.ptr, sizeof(got)));
	OK(hipMemset(cube.ptr, 0, sizeof(got)));
	OK(hipStreamSynchronize(NULL));
	stall(NULL);
	OK(hipMemset3D(cube, 5, make_hipExtent(10, 4, 3)));
	release(NULL);
	OK(hipMemcpy(got, cube.ptr, sizeof(got), hipMemcpyDeviceToHost));
	for (size_t i = 0; i < sizeof(got); i++)
		CHECK(got[i] == (i % 64 < 10 ? 5 : 0));
	/* Past the end of the block, also by numbers that wrap round. */
	GIVES(hipErrorInvalidValue, hipMemset3D(cube, 5, make_hipExtent(10, 4, 4)));
	GIVES(hipErrorInvalidValue, hipMemset3D(cube, 5, make_hipExtent(65, 4, 3)));
	cube.ysize = SIZE_MAX / 2 + 1;
	GIVES(hipErrorInvalidValue, hipMemset3D(cube, 5, make_hipExtent(10, 2, 4)));
	cube.ysize = SIZE_MAX;
	GIVES(hipErrorInvalidValue, hipMemset3D(cube, 5, make_hipExtent(10, 3, 2)));
	OK(hipMemPrefetchAsync(cube.ptr, sizeof(got), 0, NULL));
	GIVES(hipErrorInvalidValue, hipMemPrefetchAsync(cube.ptr, sizeof(got) + 1, 0, NULL));
	OK(hipMemAdvise(cube.ptr, sizeof(got), hipMemAdviseSetReadMostly, 0));
	GIVES(hipErrorInvalidValue,
	      hipMemAdvise(cube.ptr, sizeof(got) + 1, hipMemAdviseSetReadMostly, 0));
	OK(hipFree(cube.ptr));
	OK(hipFree(gap));
}

/* ---- the last error -------------------------------------------------------- */

/* An error of the runtime's, and then a success of ours: what there is to be read. It has
 * none of its own for NotSupported and the like, which ours then are. */
static void runtimes_error(hipStream_t s)
{
	bool keeps = runtime_major() >= 7;
	uint64_t calls;
	hipEvent_t e;
	void *p;

	OK(hipEventCreate(&e));
	for (int i = 0; i < 100; i++) {
		OK(hipMallocAsync(&p, 5000, s));
		OK(hipFreeAsync(p, s));
	}
	stall(s);
	OK(hipMemsetAsync(p, 1, 100, s));
	OK(hipEventRecord(e, s));
	for (int way = 0; way < 5; way++) {
		hipError_t err = way < 2 ? hipErrorNotReady : hipErrorInvalidValue;

		if (way == 0)
			GIVES(err, hipEventQuery(e));
		else if (way == 1)
			GIVES(err, hipStreamQuery(s));
		else
			GIVES(err, hipMemsetAsync((void *)8, 1, 1, s));
		if (way == 3) {
			OK(hipMalloc(&p, 5000));
			OK(hipMallocAsync(&p, 5000, s));
		} else {
			OK(hipMallocAsync(&p, 5000, s));
			OK(hipFreeAsync(p, s));
		}
		if (way == 4) {
			/* Only once. */
			calls = sim_calls();
			OK(hipMallocAsync(&p, 5000, s));
			OK(hipFreeAsync(p, s));
			CHECK(sim_calls() == calls);
		}
		GIVES(keeps && err != hipErrorNotReady ? err : hipSuccess, hipGetLastError());
		GIVES(hipSuccess, hipGetLastError());
	}
	release(s);
	OK(hipStreamSynchronize(s));
	OK(hipEventDestroy(e));
}

/* Up to 6.x the result of the last call, whatever it was; since 7.0 the last error,
 * until it is read. Whoever answered. */
static void last_error(hipStream_t s)
{
	hipError_t (*ext)(void) = (hipError_t(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT,
									"hipExtGetLastError");
	hipError_t after = runtime_major() < 7 ? hipSuccess : hipErrorInvalidValue;
	hipStream_t other;
	void *p, *q;
	int dev;

	(void)hipGetLastError();
	/* Ours, then a success of ours, or of the runtime's. */
	for (int way = 0; way < 4; way++) {
		GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
		GIVES(hipErrorInvalidValue, hipPeekAtLastError());
		if (way == 0) {
			OK(hipMallocAsync(&p, 5000, s));
		} else if (way == 1) {
			OK(hipFreeAsync(p, s));
		} else if (way == 2) {
			OK(hipMalloc(&q, 5000));
			OK(hipFree(q));
		} else {
			OK(hipGetDevice(&dev));
		}
		GIVES(after, hipPeekAtLastError());
		GIVES(after, hipGetLastError());
		GIVES(hipSuccess, hipGetLastError());
	}
	/* The runtime's, then ours, which is younger; and the other way round. */
	CHECK(hipMemcpy(&dev, (void *)8, 4, (hipMemcpyKind)77) != hipSuccess);
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, (size_t)1 << 50));
	GIVES(hipErrorOutOfMemory, hipGetLastError());
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, (size_t)1 << 50));
	GIVES(hipErrorInvalidDevice, hipSetDevice(99));
	GIVES(hipErrorInvalidDevice, hipGetLastError());
	GIVES(hipSuccess, hipGetLastError());
	runtimes_error(s);
	if (!ext || runtime_major() < 7)
		return;
	/* This one forgets with every success, and leaves the other alone. */
	GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
	GIVES(hipErrorInvalidValue, ext());
	GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
	OK(hipMalloc(&p, 5000));
	GIVES(hipSuccess, ext());
	OK(hipFree(p));
	GIVES(hipErrorInvalidValue, hipGetLastError());
	GIVES(hipSuccess, hipGetLastError());
	GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
	GIVES(hipErrorInvalidValue, hipGetLastError());
	GIVES(hipErrorInvalidValue, ext());
	GIVES(hipSuccess, ext());
	/* The error was read; the last command is a success that no call was made for. */
	for (int hit = 0; hit < 3; hit++) {
		OK(hipMallocAsync(&p, 5000, s));
		OK(hipFreeAsync(p, s));
		GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
		GIVES(hipErrorInvalidValue, hipGetLastError());
		OK(hipMallocAsync(&p, 5000, s));
		if (hit != 1)
			OK(hipFreeAsync(p, s));
		GIVES(hipSuccess, ext());
		if (hit == 1)
			OK(hipFreeAsync(p, s));
	}
	/* An older one that was looked at, which is a command that failed. */
	OK(hipMallocAsync(&p, 5000, s));
	CHECK(hipMemcpy(&dev, (void *)8, 4, (hipMemcpyKind)77) != hipSuccess);
	OK(hipGetDevice(&dev));
	CHECK(hipPeekAtLastError() != hipSuccess);
	OK(hipFreeAsync(p, s));
	GIVES(hipSuccess, ext());
	(void)hipGetLastError();
	/* What the shim asks meanwhile, in vain, is none of the program's commands; nor is an
	 * error that is set aside for that the last one again. */
	GIVES(hipErrorInvalidValue, hipMalloc(NULL, 5));
	OK(hipMallocAsync(&p, 90 << 20, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 5000, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipMallocAsync(&q, 90 << 20, other)); /* asks for a fence on s, and looks at it */
	GIVES(hipSuccess, ext());
	OK(hipFreeAsync(q, other));
	GIVES(hipErrorInvalidValue, hipPeekAtLastError());
	GIVES(hipErrorInvalidValue, ext());
	GIVES(hipSuccess, ext());
	release(s);
	OK(hipStreamDestroy(other));
	GIVES(hipErrorInvalidValue, hipGetLastError());
	GIVES(hipSuccess, hipGetLastError());
}

int main(void)
{
	hipStream_t s;
	void *p;

	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipMalloc(&p, 3000));
	widths(p, false);
	OK(hipFree(p));
	large();
	pool_of(s);
	if (!getenv("SOMASIM_HIP_VERSION") || strcmp(getenv("SOMASIM_HIP_VERSION"), "5.2"))
		sync_memops();
	cubes();
	last_error(s);
	OK(hipStreamDestroy(s));
	return 0;
}
