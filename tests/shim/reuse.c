/* SPDX-License-Identifier: MIT */
/*
 * Memory that another stream freed, on a device that is full: which rule makes it
 * available, and what is never waited for. Needs SOMASIM_VRAM=256M and a short
 * SOMASHIM_OOM_WAIT_MS. An alarm ends a case that hangs.
 */
#include <time.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)
#define MOST (200 * MIB)   /* a second one does not fit */
#define NEARLY (248 * MIB) /* and here memory is short: frees record their fence */

static hipStream_t a, b;
static hipMemPool_t pool;
static void *work; /* that streams are busy with */

static void begin(void)
{
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
}

static void finish(void)
{
	OK(hipDeviceSynchronize());
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
}

static void allow_internal(int on)
{
	OK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowInternalDependencies, &on));
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* No fence of a's was put in b's way. */
static void runs(hipStream_t stream)
{
	OK(hipMemsetAsync(work, 9, 256, stream));
	OK(hipStreamSynchronize(stream));
}

/* ReuseAllowInternalDependencies: b waits on the device, the host does not. */
static void waits_on_device(void)
{
	unsigned char got[2] = {0, 0};
	void *p, *q;

	begin();
	OK(hipMallocAsync(&p, NEARLY, a));
	stall(a);
	OK(hipMemsetAsync(p, 1, MIB, a));
	OK(hipFreeAsync(p, a));
	OK(hipMallocAsync(&q, NEARLY, b));
	CHECK(q == p);
	OK(hipMemsetAsync(q, 2, MIB, b));
	GIVES(hipErrorNotReady, hipStreamQuery(b)); /* behind a, which stands */
	release(a);
	OK(hipMemcpyAsync(&got[0], q, 1, hipMemcpyDeviceToHost, b));
	OK(hipMemcpyAsync(&got[1], (char *)q + MIB - 1, 1, hipMemcpyDeviceToHost, b));
	OK(hipStreamSynchronize(b));
	CHECK(got[0] == 2 && got[1] == 2);
	OK(hipFreeAsync(q, b));
	finish();
}

static void not_where_forbidden(void)
{
	void *p, *q;

	begin();
	allow_internal(0);
	OK(hipMallocAsync(&p, NEARLY, a));
	stall(a);
	OK(hipMemsetAsync(p, 1, MIB, a));
	OK(hipFreeAsync(p, a));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, NEARLY, b));
	runs(b);
	release(a);
	/* The host may wait a while for what was freed, and only for that. */
	OK(hipMallocAsync(&q, NEARLY, b));
	OK(hipFreeAsync(q, b));
	allow_internal(1);
	finish();
}

/* After the free, `a` runs a kernel that does not end: any fence on it now is behind
 * that, and neither b nor the host waits for it. */
static void persistent_kernel(void)
{
	double t0;
	void *p, *q;

	begin();
	OK(hipMallocAsync(&p, MOST, a));
	OK(hipMemsetAsync(p, 1, MIB, a));
	OK(hipFreeAsync(p, a));
	stall(a);
	OK(hipMemsetAsync(work, 1, 256, a));
	t0 = now();
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, MOST, b));
	CHECK(now() - t0 < 10);
	runs(b);
	release(a);
	runs(a);
	OK(hipMallocAsync(&q, MOST, b));
	OK(hipFreeAsync(q, b));
	finish();
}

/* After the free, `a` waits for a value that b is to write: b must not wait for a.
 * `size` says whether the free has recorded a fence of its own; one that has is
 * before the wait, and b may have the block. */
static void value_from_b(size_t size)
{
	uint64_t *flag;
	hipError_t err;
	void *p, *q;

	begin();
	OK(hipHostMalloc((void **)&flag, 4096, 0));
	*flag = 0;
	OK(hipMallocAsync(&p, size, a));
	OK(hipMemsetAsync(p, 1, MIB, a));
	OK(hipFreeAsync(p, a));
	OK(hipStreamWaitValue64(a, flag, 1, hipStreamWaitValueGte, UINT64_MAX));
	err = hipMallocAsync(&q, size, b);
	CHECK(err == hipErrorOutOfMemory || (err == hipSuccess && q == p));
	CHECK(size != NEARLY || err == hipSuccess);
	if (err == hipSuccess)
		OK(hipMemsetAsync(q, 2, 4096, b));
	OK(hipStreamWriteValue64(b, flag, 1, 0));
	OK(hipStreamSynchronize(b));
	OK(hipStreamSynchronize(a));
	if (err == hipSuccess)
		OK(hipFreeAsync(q, b));
	OK(hipHostFree(flag));
	finish();
}

/* A fence that is recorded now is reached soon, but nobody waits for it: once more, as
 * a program might do. */
static void *soon(hipStream_t stream)
{
	struct timespec ts = {0, 10000000};
	void *p = NULL;

	for (int i = 0; i < 500 && !p; i++) {
		if (i)
			nanosleep(&ts, NULL);
		if (stream ? hipMallocAsync(&p, MOST, stream) : hipMalloc(&p, MOST))
			p = NULL;
	}
	CHECK(p);
	(void)hipGetLastError();
	return p;
}

/* What a stream freed and never looks at again is everybody's, whether the stream
 * stays or goes: here it is all there is. */
static void strands_nothing(bool destroyed)
{
	struct timespec ts = {0, 50000000};
	hipStream_t once;
	void *p, *q;

	begin();
	OK(hipStreamCreateWithFlags(&once, hipStreamNonBlocking));
	OK(hipMallocAsync(&p, MOST, once));
	OK(hipMemsetAsync(p, 1, 4096, once));
	OK(hipFreeAsync(p, once));
	if (destroyed)
		OK(hipStreamDestroy(once));
	nanosleep(&ts, NULL); /* it comes to its end, and nobody asks */
	q = soon(b);
	CHECK(q == p);
	OK(hipMemsetAsync(q, 2, 4096, b));
	OK(hipFreeAsync(q, b));
	/* Nor does one kind of memory keep it from the other. */
	OK(hipFree(soon(NULL)));
	if (!destroyed)
		OK(hipStreamDestroy(once));
	finish();
}

static uint64_t recorded(void)
{
	return sim_count("hipEventRecord") + sim_count("hipStreamWriteValue64");
}

/* Where memory is short, fences that nobody asks for stay few: what a stream does by
 * itself, on a device that keeps up and on one that stands, is no reason for more. */
static void few_fences(void)
{
	uint64_t created, before;
	void *p, *q;

	begin();
	OK(hipMallocAsync(&q, NEARLY, a));
	created = sim_count("hipEventCreateWithFlags");
	for (int i = 0; i < 5000; i++) {
		OK(hipMallocAsync(&p, MIB, a));
		OK(hipFreeAsync(p, a));
		if (i % 100 == 0)
			OK(hipStreamSynchronize(a));
	}
	CHECK(sim_count("hipEventCreateWithFlags") < created + 200);
	stall(a);
	OK(hipMemsetAsync(q, 1, MIB, a));
	before = recorded();
	for (int i = 0; i < 5000; i++) {
		OK(hipMallocAsync(&p, MIB, a));
		OK(hipFreeAsync(p, a));
	}
	CHECK(recorded() < before + 200);
	/* A free without one of its own is covered by a later one. */
	OK(hipFreeAsync(q, a));
	release(a);
	OK(hipFreeAsync(soon(b), b));
	finish();
}

int main(void)
{
	uint64_t keep = UINT64_MAX;

	CHECK(preloaded());
	alarm(120);
	OK(hipHostMalloc(&work, 4096, 0));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
	/* A stream can't wait for a counter of ours but by spinning. */
	if (!getenv("SOMASHIM_FENCE"))
		waits_on_device();
	not_where_forbidden();
	persistent_kernel();
	value_from_b(MOST);
	value_from_b(NEARLY);
	strands_nothing(false);
	strands_nothing(true);
	few_fences();
	return 0;
}
