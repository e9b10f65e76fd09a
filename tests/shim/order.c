/* SPDX-License-Identifier: MIT */
/* What each watched call proves, seen by whether a block comes back. */
#include "test.h"

#define SIZE (40u << 20)

static hipStream_t a, b;

/* A block that was freed on `a` with work in flight behind it. */
static void *freed_on_a(void)
{
	void *p;

	OK(hipMallocAsync(&p, SIZE, a));
	stall(a);
	OK(hipMemsetAsync(p, 1, SIZE, a));
	OK(hipFreeAsync(p, a));
	return p;
}

static void *other[8];
static int others;

/* A wrong block is kept, or the stream would take that one the next time. */
static bool comes_back(void *p, hipStream_t stream)
{
	void *q;

	OK(hipMallocAsync(&q, SIZE, stream));
	if (q != p) {
		CHECK(others < 8);
		other[others++] = q;
		return false;
	}
	OK(hipFreeAsync(q, stream));
	return true;
}

/* New streams, and a pool without a free range. */
static void fresh(void)
{
	hipMemPool_t pool;

	OK(hipDeviceSynchronize());
	while (others)
		OK(hipFree(other[--others]));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize()); /* where it may wait, it gives back */
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipDeviceSynchronize());
}

int main(void)
{
	hipEvent_t e, old;
	void *p;

	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipEventCreateWithFlags(&old, hipEventDisableTiming));

	/* Nothing orders b after a. The stream itself may. */
	p = freed_on_a();
	CHECK(!comes_back(p, b));
	CHECK(comes_back(p, a));
	release(a);
	fresh();

	/* An event from before the free proves nothing. */
	OK(hipEventRecord(old, a));
	p = freed_on_a();
	OK(hipStreamWaitEvent(b, old, 0));
	CHECK(!comes_back(p, b));
	/* One from after it does. */
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(p, b));
	release(a);
	fresh();

	/* Host waits, for a stream and for an event. */
	p = freed_on_a();
	release(a);
	OK(hipStreamSynchronize(a));
	CHECK(comes_back(p, b));
	fresh();
	p = freed_on_a();
	OK(hipEventRecord(e, a));
	release(a);
	OK(hipEventSynchronize(e));
	CHECK(comes_back(p, b));
	fresh();

	/* Queries count when they say success. */
	p = freed_on_a();
	OK(hipEventRecord(e, a));
	GIVES(hipErrorNotReady, hipEventQuery(e));
	GIVES(hipErrorNotReady, hipStreamQuery(a));
	CHECK(!comes_back(p, b));
	release(a);
	while (hipStreamQuery(a) == hipErrorNotReady)
		;
	CHECK(comes_back(p, b));
	fresh();

	/* The free of a block on a stream that is then destroyed. */
	p = freed_on_a();
	release(a);
	OK(hipStreamDestroy(a));
	OK(hipDeviceSynchronize());
	CHECK(comes_back(p, b));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));

	/* hipFree waits for every stream; then anyone may have the bytes. */
	OK(hipMalloc(&p, SIZE));
	OK(hipMemsetAsync(p, 2, SIZE, a));
	OK(hipFree(p));
	GIVES(hipSuccess, hipStreamQuery(a));

	/* A blocking stream and the null stream. */
	OK(hipStreamDestroy(a));
	OK(hipStreamCreate(&a));
	p = freed_on_a();
	CHECK(!comes_back(p, b));
	release(a);
	OK(hipStreamSynchronize(NULL));
	CHECK(comes_back(p, b));

	OK(hipEventDestroy(e));
	OK(hipEventDestroy(old));
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	return 0;
}
