/* SPDX-License-Identifier: MIT */
/*
 * What each watched call proves about order. The test sees it by whether a freed block is
 * handed out again.
 */
#include "test.h"

#define SIZE (40u << 20)
#define WRITTEN (256u << 10) /* of it: an emulated device takes its time */

static hipStream_t a, b;

/* A block that was freed on `a` with work in flight behind it. */
static void *freed_on_a(void)
{
	void *p;

	OK(hipMallocAsync(&p, SIZE, a));
	stall(a);
	OK(hipMemsetAsync(p, 1, WRITTEN, a));
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

static int go;
static char kernel;

static void body(void **args)
{
	struct timespec ts = {0, 1000000};

	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		nanosleep(&ts, NULL);
	memset(*(void **)args[0], 1, 4096);
}

/* Gives the null stream commands, and asks for memory on b, until b has p or a while is
 * over. */
static bool taken_by_b(void *p)
{
	struct timespec ts = {0, 1000000};
	hipEvent_t e;
	bool taken;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	for (int i = 0; i < 8 && !(taken = comes_back(p, b)); i++) {
		OK(hipEventRecord(e, NULL));
		for (int k = 0; k < 5; k++) {
			(void)hipStreamQuery(NULL);
			nanosleep(&ts, NULL);
		}
	}
	return taken;
}

/* What shows how far a stream is passes on to no other before its end: here `a` is gone,
 * but not its kernel, when the null stream needs the like. */
static void runs_on(void)
{
	void (*reg)(const void *, void (*)(void **), const size_t *) = (void (*)(
		const void *, void (*)(void **),
		const size_t *))sim_must("somasim_register_kernel_args");
	static const size_t sizes[] = {sizeof(void *), 0};
	hipStream_t blocking;
	void *p, *q, *args[] = {&p};

	reg(&kernel, body, sizes);
	OK(hipStreamCreate(&blocking));
	OK(hipMallocAsync(&p, SIZE, a));
	OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, a));
	OK(hipFreeAsync(p, a));
	OK(hipStreamDestroy(a));
	OK(hipMallocAsync(&q, 4096, NULL));
	OK(hipMemsetAsync(q, 0, 4096, NULL));
	OK(hipFreeAsync(q, NULL));
	CHECK(!taken_by_b(p));
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	OK(hipStreamDestroy(blocking));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	fresh();
}

/* And what ended with the device says nothing of what came after. */
static void after_a_reset(void)
{
	void *p, *q;

	OK(hipMallocAsync(&q, SIZE, a));
	OK(hipFreeAsync(q, a));
	(void)comes_back(q, b); /* a has a fence */
	OK(hipDeviceReset());
	others = 0;
	OK(hipStreamCreate(&a)); /* so that the null stream has something to join */
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipMallocAsync(&p, SIZE, NULL));
	stall(NULL);
	OK(hipMemsetAsync(p, 1, WRITTEN, NULL));
	OK(hipFreeAsync(p, NULL));
	CHECK(!taken_by_b(p));
	release(NULL);
	OK(hipDeviceSynchronize());
}

/* Another process may record an event that was given away, and some runtimes call it done when it
 * is not. */
static void shared_event(void)
{
	hipIpcEventHandle_t handle;
	hipEvent_t shared;
	void *p;

	OK(hipEventCreateWithFlags(&shared, hipEventDisableTiming | hipEventInterprocess));
	OK(hipIpcGetEventHandle(&handle, shared));
	p = freed_on_a();
	OK(hipEventRecord(shared, a));
	(void)hipEventQuery(shared);
	OK(hipStreamWaitEvent(b, shared, 0));
	CHECK(!comes_back(p, b));
	release(a);
	fresh();
	OK(hipEventDestroy(shared));
}

/* Before 6.0 handle 1 is no stream. Nothing is learned from it, and what follows holds as
 * before. */
static void no_legacy_handle(hipEvent_t event)
{
	void *p;
	int version;

	OK(hipRuntimeGetVersion(&version));
	if (version >= 60000000)
		return;
	GIVES(hipErrorInvalidHandle, hipMallocAsync(&p, SIZE, (hipStream_t)1));
	CHECK(hipStreamSynchronize((hipStream_t)1) != hipSuccess);
	CHECK(hipStreamQuery((hipStream_t)1) != hipSuccess);
	CHECK(hipEventRecord(event, (hipStream_t)1) != hipSuccess);
	CHECK(hipStreamWaitEvent((hipStream_t)1, event, 0) != hipSuccess);
	OK(hipMallocAsync(&p, SIZE, NULL));
	CHECK(hipMemsetAsync(p, 1, 64, (hipStream_t)1) != hipSuccess);
	GIVES(hipErrorInvalidHandle, hipFreeAsync(p, (hipStream_t)1));
	OK(hipFreeAsync(p, NULL));
	OK(hipDeviceSynchronize());
}

/* By its own handle the null stream is synchronized and queried without the blocking streams, which
 * 7.0 and later do not join for that (and CUDA does). */
static void legacy_handle(void)
{
	hipStream_t legacy = (hipStream_t)1;
	int version;
	void *p;

	OK(hipRuntimeGetVersion(&version));
	if (version < 70000000 || on_cuda())
		return;
	OK(hipStreamDestroy(a));
	OK(hipStreamCreate(&a));
	p = freed_on_a();
	OK(hipStreamSynchronize(legacy));
	CHECK(!comes_back(p, b));
	GIVES(hipSuccess, hipStreamQuery(legacy));
	CHECK(!comes_back(p, b));
	release(a);
	fresh();
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
	no_legacy_handle(e);

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
	OK(hipMemsetAsync(p, 2, WRITTEN, a));
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
	legacy_handle();
	shared_event();
	OK(hipStreamDestroy(a));
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	fresh();
	after_a_reset();
	fresh();
	if (!on_cuda()) /* its kernel is a function of the host */
		runs_on();
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	return 0;
}
