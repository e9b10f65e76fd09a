/* SPDX-License-Identifier: MIT */
/* The same where addresses, streams, graphs, pools, threads or the process come and go. */
#include <pthread.h>

#include "corpus.h"

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

/* The block stays the program's. */
static void free_refused_in_capture(void)
{
	hipGraph_t graph = NULL;
	void *p, *q;

	OK(hipMalloc(&p, BYTES));
	OK(hipMalloc(&q, BYTES));
	OK(hipStreamBeginCapture(c, hipStreamCaptureModeGlobal));
	if (hipFree(p) == hipSuccess || hipFreeAsync(q, c) == hipSuccess)
		exit(3);
	(void)hipStreamEndCapture(c, &graph);
	(void)hipGetLastError();
	fill(p, a);
	fill(q, b);
	OK(hipFree(p));
	OK(hipFree(q));
	if (graph)
		OK(hipGraphDestroy(graph));
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

static pthread_key_t freed_by_key;

static void free_of_key(void *p)
{
	OK(hipFreeAsync(p, hipStreamPerThread));
}

static void *use_own_stream(void *left)
{
	void *p = block(hipStreamPerThread);

	fill(p, hipStreamPerThread);
	*(void **)left = p;
	p = block(hipStreamPerThread);
	fill(p, hipStreamPerThread);
	pthread_setspecific(freed_by_key, p);
	return NULL;
}

/* The end of a thread waits for its stream, before the destructors of keys run. */
static void thread_ended(void)
{
	pthread_t thread;
	void *left = NULL;

	pthread_key_create(&freed_by_key, free_of_key);
	pthread_create(&thread, NULL, use_own_stream, &left);
	pthread_join(thread, NULL);
	fill(left, a);
	OK(hipFreeAsync(left, a));
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

/* The last byte of a copy that the host sees proves that the copy has ended. */
static void pinned_copy_and_poll(void)
{
	volatile char *host;
	void *p = block(a);

	OK(hipHostMalloc((void **)&host, BYTES, 0));
	host[BYTES - 1] = 0;
	fill(p, a);
	OK(hipMemcpyAsync((void *)host, p, BYTES, hipMemcpyDeviceToHost, a));
	while (!host[BYTES - 1])
		;
	OK(hipFreeAsync(p, b));
	OK(hipDeviceSynchronize());
	OK(hipHostFree((void *)host));
}

/* The next copy has not begun, but that of this block is over. */
static void polled_before_next_copy(void)
{
	unsigned *word;
	volatile char *host;
	void *p = block(a), *q = block(a);

	OK(hipHostMalloc((void **)&host, BYTES, 0));
	host[BYTES - 1] = 0;
	fill(p, a);
	OK(hipMemcpyAsync((void *)host, p, BYTES, hipMemcpyDeviceToHost, a));
	word = hold(a);
	OK(hipMemcpyAsync((void *)host, q, BYTES, hipMemcpyDeviceToHost, a));
	while (!host[BYTES - 1])
		;
	OK(hipFreeAsync(p, b));
	OK(hipFreeAsync(q, a));
	let_go(word);
	OK(hipDeviceSynchronize());
	OK(hipHostFree((void *)host));
}

/* Nothing has begun, but events order it. */
static void copy_that_waits_and_event(void)
{
	unsigned *word;
	void *p = block(a), *q, *host;

	OK(hipMalloc(&q, BYTES));
	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	word = hold(b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipMemcpyAsync(host, q, BYTES, hipMemcpyDeviceToHost, b));
	order(b, a);
	OK(hipFreeAsync(p, a));
	let_go(word);
	OK(hipFree(q));
	OK(hipDeviceSynchronize());
	OK(hipHostFree(host));
}

static void pinned_memory_filled_and_polled(void)
{
	volatile char *host;
	void *p = block(a);

	OK(hipHostMalloc((void **)&host, BYTES, 0));
	host[BYTES - 1] = 0;
	fill((void *)host, a);
	while (!host[BYTES - 1])
		;
	fill(p, b);
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
	OK(hipDeviceSynchronize());
	OK(hipHostFree((void *)host));
}

static void pageable_upload(void)
{
	static char here[BYTES];
	void *p = block(a);

	OK(hipMemcpyAsync(p, here, BYTES, hipMemcpyHostToDevice, a)); /* which may wait */
	fill(p, b);
	OK(hipStreamSynchronize(b));
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

const struct program right_lives[] = {
#define P(name) {"right-" #name, name, NULL}
	P(address_comes_back),
	P(address_comes_back_elsewhere),
	P(stream_destroyed),
	P(stream_destroyed_after_event),
	P(new_stream_at_old_handle),
	P(host_function_tells),
	P(wait_value_orders),
	P(write_value_tells),
	P(captured_copy),
	P(free_refused_in_capture),
	P(graph_replayed_after_free),
	P(another_thread),
	P(thread_ended),
	P(pool_destroyed_first),
	P(exact_end),
	P(null_pointers),
	P(many_uses_one_join),
	P(pinned_copy_and_poll),
	P(polled_before_next_copy),
	P(copy_that_waits_and_event),
	P(pinned_memory_filled_and_polled),
	P(pageable_upload),
	P(pinned_copy_and_wait),
	P(trimmed_and_allocated_again),
	P(freed_by_atexit),
	P(freed_by_a_destructor),
	{NULL, NULL, NULL},
};
