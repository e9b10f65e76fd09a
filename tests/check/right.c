/* SPDX-License-Identifier: MIT */
/* Small programs that look wrong and are right: nothing may be said of them. */
#include <pthread.h>

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

static void address_comes_back(void)
{
	void *p = block(a), *q;

	OK(hipFreeAsync(p, a));
	q = block(a);
	fill(q, a); /* where p was */
	OK(hipFreeAsync(q, a));
}

static void address_comes_back_elsewhere(void)
{
	void *p = block(a), *q;

	fill(p, a);
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	q = block(b);
	fill(q, b);
	OK(hipFreeAsync(q, b));
}

static void stream_destroyed(void)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	p = block(s);
	OK(hipStreamSynchronize(s));
	OK(hipStreamDestroy(s));
	fill(p, a);
	OK(hipFreeAsync(p, a));
}

static void stream_destroyed_after_event(void)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	p = block(s);
	order(s, a);
	OK(hipStreamDestroy(s));
	fill(p, a);
	OK(hipFreeAsync(p, a));
}

static void new_stream_at_old_handle(void)
{
	hipStream_t s;
	void *p;

	for (int i = 0; i < 20; i++) {
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
		p = block(s);
		fill(p, s);
		OK(hipFreeAsync(p, s));
		OK(hipStreamSynchronize(s));
		OK(hipStreamDestroy(s));
	}
}

static void nothing(hipStream_t stream, hipError_t err, void *unused)
{
	(void)stream;
	(void)err;
	(void)unused;
}

static void host_function_tells(void)
{
	void *p = block(a);

	/* The program may learn from it that a has come so far. */
	OK(hipStreamAddCallback(a, nothing, NULL, 0));
	fill(p, b);
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
}

static void wait_value_orders(void)
{
	void *p = block(a);
	uint32_t *word;

	OK(hipHostMalloc((void **)&word, sizeof(*word), 0));
	*word = 0;
	order(a, b);
	OK(hipStreamWaitValue32(a, word, 1, hipStreamWaitValueGte, 0xffffffff));
	OK(hipFreeAsync(p, a));
	fill(p, b); /* before the free, because a waits */
	OK(hipStreamWriteValue32(b, word, 1, 0));
	OK(hipDeviceSynchronize());
	OK(hipHostFree(word));
}

static void write_value_tells(void)
{
	void *p = block(a);
	volatile uint32_t *word;

	OK(hipHostMalloc((void **)&word, sizeof(*word), 0));
	*word = 0;
	OK(hipStreamWriteValue32(a, (void *)word, 1, 0));
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		;
	fill(p, b);
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
	OK(hipDeviceSynchronize());
	OK(hipHostFree((void *)word));
}

static void captured_copy(void)
{
	hipGraphExec_t exec;
	hipGraph_t graph;
	void *p = block(a);

	OK(hipStreamBeginCapture(b, hipStreamCaptureModeRelaxed));
	fill(p, b); /* this runs when the graph does */
	OK(hipStreamEndCapture(b, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

static void graph_replayed_after_free(void)
{
	hipGraphExec_t exec;
	hipGraph_t graph;
	void *p = block(a);

	OK(hipStreamBeginCapture(b, hipStreamCaptureModeRelaxed));
	fill(p, b);
	OK(hipStreamEndCapture(b, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipStreamSynchronize(a));
	OK(hipGraphExecDestroy(exec));
	OK(hipFreeAsync(p, a));
	OK(hipGraphDestroy(graph));
}

static void *use_in_thread(void *p)
{
	fill(p, b);
	OK(hipStreamSynchronize(b));
	return NULL;
}

static void another_thread(void)
{
	void *p = block(a);
	pthread_t thread;

	OK(hipStreamSynchronize(a));
	pthread_create(&thread, NULL, use_in_thread, p);
	pthread_join(thread, NULL);
	OK(hipFreeAsync(p, c));
}

static void pool_destroyed_first(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;
	void *p;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, a));
	OK(hipMemPoolDestroy(pool)); /* its blocks stay */
	fill(p, a);
	OK(hipFreeAsync(p, a));
}

static void exact_end(void)
{
	void *p = block(a);

	OK(hipMemsetAsync((char *)p + BYTES - 1, 1, 1, a));
	OK(hipMemsetAsync((char *)p + BYTES, 1, 0, a));
	OK(hipFreeAsync(p, a));
}

static void null_pointers(void)
{
	OK(hipFree(NULL));
	OK(hipHostFree(NULL));
}

static void many_uses_one_join(void)
{
	void *p = block(a);

	order(a, b);
	order(a, c);
	fill(p, b);
	fill(p, c);
	order(b, c);
	order(c, a);
	OK(hipFreeAsync(p, a));
}

static void pinned_copy_and_wait(void)
{
	void *p = block(a), *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
	OK(hipHostFree(host));
}

static void trimmed_and_allocated_again(void)
{
	hipMemPool_t pool;
	void *p = block(a), *q;

	OK(hipFreeAsync(p, a));
	OK(hipDeviceSynchronize());
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipMallocManaged(&q, BYTES, hipMemAttachGlobal));
	fill(q, b);
	OK(hipDeviceSynchronize());
	OK(hipFree(q));
}

static void *at_the_end;

static void free_at_exit(void)
{
	OK(hipFree(at_the_end));
}

static void freed_by_atexit(void)
{
	OK(hipMalloc(&at_the_end, BYTES));
	atexit(free_at_exit);
}

static void *static_block;

__attribute__((destructor)) static void free_static(void)
{
	if (static_block)
		(void)hipFree(static_block);
}

static void freed_by_a_destructor(void)
{
	OK(hipMalloc(&static_block, BYTES));
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
	P(address_comes_back),
	P(address_comes_back_elsewhere),
	P(stream_destroyed),
	P(stream_destroyed_after_event),
	P(new_stream_at_old_handle),
	P(host_function_tells),
	P(wait_value_orders),
	P(write_value_tells),
	P(captured_copy),
	P(graph_replayed_after_free),
	P(another_thread),
	P(pool_destroyed_first),
	P(exact_end),
	P(null_pointers),
	P(many_uses_one_join),
	P(pinned_copy_and_wait),
	P(trimmed_and_allocated_again),
	P(freed_by_atexit),
	P(freed_by_a_destructor),
	{NULL, NULL, NULL},
};
