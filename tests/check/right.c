/* SPDX-License-Identifier: MIT */
/* Small programs that look wrong and are right, in the order of streams: nothing may be said of
 * them. */
#include "corpus.h"

static void one_stream(void)
{
	void *p = block(a);

	fill(p, a);
	OK(hipFreeAsync(p, a));
}

static void free_on_another_stream_after_wait(void)
{
	void *p = block(a);

	fill(p, a);
	order(a, b);
	OK(hipFreeAsync(p, b));
}

static void through_a_third_stream(void)
{
	void *p = block(a);

	order(a, b);
	order(b, c);
	fill(p, c);
	order(c, a);
	OK(hipFreeAsync(p, a));
}

static void event_recorded_again(void)
{
	void *p = block(a);
	hipEvent_t e = mark(c);

	OK(hipEventRecord(e, a)); /* the wait means this one */
	OK(hipStreamWaitEvent(b, e, 0));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void event_recorded_again_after_the_wait(void)
{
	void *p = block(a);
	hipEvent_t e = mark(a);

	OK(hipStreamWaitEvent(b, e, 0));
	OK(hipEventRecord(e, c));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void event_destroyed_after_the_wait(void)
{
	void *p = block(a);

	order(a, b);
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void wait_for_a_later_event(void)
{
	void *p = block(a);

	fill(p, b = a); /* the same stream by another name */
	OK(hipFreeAsync(p, a));
}

static void host_waits_for_allocation(void)
{
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	fill(p, b);
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, c));
}

static void host_waits_for_event(void)
{
	void *p = block(a);
	hipEvent_t e = mark(a);

	OK(hipEventSynchronize(e));
	fill(p, b);
	e = mark(b);
	OK(hipEventSynchronize(e));
	OK(hipFreeAsync(p, a));
}

static void host_asks_stream(void)
{
	void *p = block(a);

	fill(p, a);
	while (hipStreamQuery(a) == hipErrorNotReady)
		;
	fill(p, b);
	while (hipStreamQuery(b) == hipErrorNotReady)
		;
	OK(hipFreeAsync(p, a));
}

static void host_asks_event(void)
{
	void *p = block(a);
	hipEvent_t e = mark(a);

	while (hipEventQuery(e) == hipErrorNotReady)
		;
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void device_wait(void)
{
	void *p = block(a);

	OK(hipDeviceSynchronize());
	fill(p, b);
	OK(hipDeviceSynchronize());
	OK(hipFreeAsync(p, c));
}

static void blocking_streams_join(void)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreate(&s));
	p = block(NULL);
	fill(p, s);
	OK(hipFreeAsync(p, NULL));
	OK(hipStreamDestroy(s));
}

static void null_stream_between(void)
{
	hipStream_t s, t;
	void *p, *q = block(NULL);

	OK(hipStreamCreate(&s));
	OK(hipStreamCreate(&t));
	p = block(s);
	fill(q, NULL); /* after s, and before t */
	fill(p, t);
	fill(q, NULL);
	OK(hipFreeAsync(p, s));
	OK(hipFreeAsync(q, NULL));
	OK(hipStreamDestroy(s));
	OK(hipStreamDestroy(t));
}

static void per_thread_stream(void)
{
	void *p = block(hipStreamPerThread);

	fill(p, NULL);
	OK(hipFreeAsync(p, hipStreamPerThread));
}

static void legacy_handle(void)
{
	void *p = block((hipStream_t)0);
	int version;

	OK(hipRuntimeGetVersion(&version));
	fill(p, version >= 60000000 ? (hipStream_t)1 : NULL); /* hipStreamLegacy */
	OK(hipFreeAsync(p, (hipStream_t)0));
}

static void copy_waits(void)
{
	static char here[BYTES];
	void *p = block(NULL);

	OK(hipMemcpy(p, here, BYTES, hipMemcpyHostToDevice));
	fill(p, a);
	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, b));
}

static void pageable_copy_waits(void)
{
	static char here[BYTES];
	void *p = block(a);

	OK(hipMemcpyAsync(here, p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipFreeAsync(p, b));
}

static void hip_free_waits(void)
{
	void *p, *q = block(a);

	OK(hipMalloc(&p, BYTES));
	fill(q, b = a);
	fill(p, a);
	OK(hipFree(p));
	OK(hipFreeAsync(q, c)); /* hipFree has waited for a */
}

static void hip_malloc_is_for_all(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	fill(p, a);
	fill(p, b);
	fill(p, NULL);
	OK(hipFree(p));
}

static void hip_free_of_pool_block(void)
{
	void *p = block(a);

	order(a, b);
	fill(p, b);
	OK(hipFree(p));
}

static void free_async_of_hip_malloc(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	fill(p, a);
	OK(hipFreeAsync(p, b));
}

const struct program right_programs[] = {
#define P(name) {"right-" #name, name, NULL}
	P(one_stream),
	P(free_on_another_stream_after_wait),
	P(through_a_third_stream),
	P(event_recorded_again),
	P(event_recorded_again_after_the_wait),
	P(event_destroyed_after_the_wait),
	P(wait_for_a_later_event),
	P(host_waits_for_allocation),
	P(host_waits_for_event),
	P(host_asks_stream),
	P(host_asks_event),
	P(device_wait),
	P(blocking_streams_join),
	P(null_stream_between),
	P(per_thread_stream),
	P(legacy_handle),
	P(copy_waits),
	P(pageable_copy_waits),
	P(hip_free_waits),
	P(hip_malloc_is_for_all),
	P(hip_free_of_pool_block),
	P(free_async_of_hip_malloc),
	{NULL, NULL, NULL},
};
