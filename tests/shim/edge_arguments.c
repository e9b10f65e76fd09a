/* SPDX-License-Identifier: MIT */
/* Edge cases of arguments: the result is the documented error, and nothing crashes. */
#include "test.h"

static void classic(void)
{
	void *p = (void *)7, *q;
	char local;

	OK(hipMalloc(&p, 0));
	CHECK(!p);
	GIVES(hipErrorInvalidValue, hipMalloc(NULL, 16));
	GIVES(hipErrorInvalidValue, hipGetLastError());
	p = (void *)7;
	GIVES(hipErrorOutOfMemory, hipMalloc(&p, (size_t)1 << 50));
	CHECK(p == (void *)7); /* untouched */
	GIVES(hipErrorOutOfMemory, hipPeekAtLastError());
	GIVES(hipErrorOutOfMemory, hipGetLastError());
	GIVES(hipSuccess, hipGetLastError());
	OK(hipFree(NULL));
	GIVES(hipErrorInvalidValue, hipFree(&local));
	OK(hipMalloc(&p, 100));
	CHECK((uintptr_t)p % 256 == 0);
	OK(hipMalloc(&q, 5 << 20));
	OK(hipFree(p));
	GIVES(hipErrorInvalidValue, hipFree(p));
	OK(hipFree((char *)q + 12345)); /* the block that contains it */
	GIVES(hipErrorInvalidValue, hipFree(q));
	OK(hipMalloc(&p, 1));
	OK(hipFree(p));
}

static void async(void)
{
	hipStream_t s, gone, bad = (hipStream_t)-1;
	void *p = (void *)7, *q;
	char local;

	OK(hipStreamCreate(&s));
	OK(hipMallocAsync(&p, 0, s));
	CHECK(!p);
	GIVES(hipErrorInvalidValue, hipMallocAsync(NULL, 16, s));
	p = (void *)7;
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, (size_t)1 << 50, s));
	CHECK(!p);
	/* Before anything else is looked at. */
	GIVES(runtime_major() < 7 ? hipErrorInvalidValue : hipSuccess, hipFreeAsync(NULL, s));
	GIVES(runtime_major() < 7 ? hipErrorInvalidValue : hipSuccess, hipFreeAsync(NULL, bad));
	GIVES(hipErrorInvalidValue, hipFreeAsync(&local, s));
	OK(hipMallocAsync(&p, 100, s));
	OK(hipFreeAsync(p, s));
	GIVES(hipErrorInvalidValue, hipFreeAsync(p, s));
	GIVES(hipErrorInvalidValue, hipFreeAsync(p, NULL));
	GIVES(hipErrorInvalidHandle, hipMallocAsync(&p, 16, bad));
	GIVES(hipErrorInvalidHandle, hipFreeAsync(&local, bad));

	/* One kind of free for the other kind of block. */
	OK(hipMallocAsync(&p, 1000, s));
	OK(hipMalloc(&q, 1000));
	OK(hipFree(p));
	OK(hipFreeAsync(q, s));
	GIVES(hipErrorInvalidValue, hipFree(q));
	GIVES(hipErrorInvalidValue, hipFreeAsync(p, s));

	/* A stream that is gone; the null stream; the thread's own. */
	OK(hipStreamCreateWithFlags(&gone, hipStreamNonBlocking));
	OK(hipMallocAsync(&p, 1 << 20, gone));
	OK(hipStreamDestroy(gone));
	GIVES(hipErrorInvalidHandle, hipMallocAsync(&q, 16, gone));
	OK(hipFreeAsync(p, NULL));
	OK(hipMallocAsync(&p, 1 << 20, hipStreamPerThread));
	OK(hipFreeAsync(p, hipStreamPerThread));
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	CHECK(hipStreamDestroy(s) != hipSuccess);
	CHECK(hipStreamSynchronize(s) != hipSuccess);
}

static void pitched(void)
{
	hipPitchedPtr cube;
	size_t pitch = 0;
	void *p = (void *)7;

	OK(hipMallocPitch(&p, &pitch, 1000, 10));
	CHECK(pitch >= 1000 && pitch % 4 == 0);
	OK(hipMemset2D(p, pitch, 3, 1000, 10));
	OK(hipFree(p));
	OK(hipMallocPitch(&p, &pitch, 0, 10));
	CHECK(!p);
	GIVES(hipErrorInvalidValue, hipMallocPitch(NULL, &pitch, 1, 1));
	GIVES(hipErrorInvalidValue, hipMallocPitch(&p, NULL, 1, 1));
	GIVES(hipErrorInvalidValue, hipMemAllocPitch((hipDeviceptr_t *)&p, &pitch, 64, 4, 3));
	OK(hipMemAllocPitch((hipDeviceptr_t *)&p, &pitch, 64, 4, 16));
	OK(hipFree(p));
	OK(hipMalloc3D(&cube, make_hipExtent(100, 5, 7)));
	CHECK(cube.ptr && cube.pitch >= 100 && cube.xsize == 100 && cube.ysize == 5);
	OK(hipFree(cube.ptr));
	GIVES(hipErrorInvalidValue, hipMalloc3D(NULL, make_hipExtent(1, 1, 1)));
	OK(hipExtMallocWithFlags(&p, 64, hipDeviceMallocDefault));
	OK(hipFree(p));
	/* Another kind of memory is the runtime's affair. */
	if (hipExtMallocWithFlags(&p, 64, hipDeviceMallocFinegrained) == hipSuccess)
		OK(hipFree(p));
}

/* Calls for host memory that are given a block: they must not take its neighbours along. */
static void as_host(void)
{
	void *p, *q;
	int v = 0;

	/* The first block of a segment among them, whichever it is. */
	OK(hipMalloc(&p, 4096));
	OK(hipMalloc(&q, 4096));
	OK(hipMemset(q, 5, 4096));
	OK(hipHostFree(p));
	GIVES(hipErrorInvalidValue, hipFree(p));
	OK(hipMalloc(&p, 4096));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* but programs call it */
	OK(hipFreeHost(p));
#pragma GCC diagnostic pop
	GIVES(hipErrorInvalidValue, hipHostFree(p));
	OK(hipMalloc(&p, 4096));
	GIVES(hipErrorHostMemoryNotRegistered, hipHostUnregister(p));
	OK(hipMemcpy(&v, q, sizeof(v), hipMemcpyDefault));
	CHECK(v == 0x05050505);
	OK(hipMallocAsync(&p, 4096, NULL));
	OK(hipHostFree(p));
	GIVES(hipErrorInvalidValue, hipHostFree(p));
	OK(hipFree(q));

	/* What is host memory is the runtime's, as before. */
	OK(hipHostFree(NULL));
	OK(hipHostMalloc(&p, 4096, 0));
	OK(hipHostFree(p));
}

/* A blocking stream that is at its end goes while the null stream is held, by something that
 * perhaps only the thread that destroys will let go: nothing is enqueued, for that would join
 * the null stream, and be waited for. Nor on one whose capture failed, which 7.2.4 does not let
 * anyone ask (where the software device does as it does). */
static void destroyed(void)
{
	bool counts = sim_call("somasim_call_count") != NULL;
	uint64_t records = 0, waits = 0;
	hipStream_t idle, used, failed;
	hipGraph_t graph;
	void *live, *p, *q;
	int byte = 0;

	OK(hipMalloc(&live, 1 << 20));
	OK(hipStreamCreate(&idle));
	OK(hipStreamCreate(&used));
	OK(hipStreamCreate(&failed));
	OK(hipMallocAsync(&p, 40 << 20, used));
	OK(hipMemsetAsync(p, 1, 64, used));
	OK(hipFreeAsync(p, used));
	OK(hipStreamSynchronize(used));
	OK(hipMallocAsync(&q, 1 << 20, NULL));
	OK(hipDeviceSynchronize());
	stall(NULL);
	OK(hipMemcpyAsync(q, &byte, 1, hipMemcpyHostToDevice, NULL));
	OK(hipFreeAsync(q, NULL));
	OK(hipStreamBeginCapture(failed, hipStreamCaptureModeRelaxed));
	(void)hipStreamQuery(failed);
	(void)hipStreamEndCapture(failed, &graph);
	if (counts) {
		records = sim_count("hipEventRecord");
		waits = sim_count("hipStreamSynchronize");
	}
	OK(hipStreamDestroy(idle));
	OK(hipStreamDestroy(used));
	OK(hipStreamDestroy(failed));
	if (counts) {
		CHECK(sim_count("hipEventRecord") == records);
		CHECK(sim_count("hipStreamSynchronize") <=
		      waits + (getenv("SOMASIM_QUIRKS") ? 1 : 0));
	}
	release(NULL);
	OK(hipDeviceSynchronize());
	OK(hipFree(live));
}

int main(void)
{
	size_t free1, total, free2;
	void *p;

	CHECK(preloaded());
	as_host(); /* first, so that p is the first block of its segment */
	classic();
	async();
	pitched();
	destroyed();

	/* What the pools keep is free to the program. */
	OK(hipMemGetInfo(&free1, &total));
	OK(hipMalloc(&p, 64 << 20));
	OK(hipMemGetInfo(&free2, &total));
	CHECK(free2 <= free1 - (64 << 20));
	OK(hipFree(p));
	OK(hipMemGetInfo(&free2, NULL));
	CHECK(free2 + (4 << 20) >= free1);
	OK(hipMemGetInfo(NULL, NULL));
	OK(hipDeviceSynchronize());
	return 0;
}
