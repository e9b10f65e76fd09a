/* SPDX-License-Identifier: MIT */
/* Calls in combinations that the other files do not have. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "corpus.h"
#include "examples/marks/somashim_marks.h"

static void *pinned(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	memset(host, 0, BYTES);
	return host;
}

static hipStream_t stream_with(unsigned flags, int priority)
{
	hipStream_t s;

	OK(hipStreamCreateWithPriority(&s, flags, priority));
	return s;
}

static void spin_on(void *host)
{
	while (!((volatile char *)host)[BYTES - 1])
		;
}

static void end_on(void *p, hipStream_t used, hipStream_t freed)
{
	order(used, freed);
	OK(hipFreeAsync(p, freed));
}

static void called_back(hipStream_t s, hipError_t err, void *unused)
{
}

static void *fill_in_thread(void *p)
{
	fill(p, b);
	return NULL;
}

static void join(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg) || pthread_join(thread, NULL))
		exit(3);
}

/* ---- wrong ones -------------------------------------------------------------- */

static void event_recorded_twice(void)
{
	void *p = block(a);
	hipEvent_t e = mark(a);

	OK(hipEventRecord(e, c)); /* now it says nothing of a */
	OK(hipStreamWaitEvent(b, e, 0));
	fill(p, b);
	end_on(p, b, a);
}

static void event_made_again(void)
{
	void *p = block(a);
	hipEvent_t e = mark(a), f;

	OK(hipEventDestroy(e));
	OK(hipEventCreateWithFlags(&f, hipEventDisableTiming)); /* the same handle, maybe */
	OK(hipStreamWaitEvent(b, f, 0));
	fill(p, b);
	end_on(p, b, a);
}

static void event_not_ready(void)
{
	unsigned *word = hold(a);
	void *p = block(a);
	hipEvent_t e = mark(a);

	if (hipEventQuery(e) != hipErrorNotReady || hipStreamQuery(a) != hipErrorNotReady)
		exit(3);
	fill(p, b);
	let_go(word);
	end_on(p, b, a);
}

static void event_before_allocation_waited_for(void)
{
	hipEvent_t e = mark(a);
	void *p = block(a);

	OK(hipEventSynchronize(e));
	fill(p, b);
	end_on(p, b, a);
}

static void chain_that_began_too_early(void)
{
	void *p;

	order(a, c);
	p = block(a);
	order(c, b);
	fill(p, b);
	end_on(p, b, a);
}

static void another_threads_use(void)
{
	void *p = block(a);

	join(fill_in_thread, p);
	end_on(p, b, a);
}

static void per_thread_stream(void)
{
	void *p = block(a);

	fill(p, hipStreamPerThread);
	OK(hipStreamSynchronize(hipStreamPerThread));
	OK(hipFreeAsync(p, a));
}

static void null_then_nonblocking(void)
{
	void *p = block(NULL);

	fill(p, a);
	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, NULL));
}

static void priority_is_no_order(void)
{
	int least, greatest;
	void *p = block(a);
	hipStream_t s;

	OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
	s = stream_with(hipStreamNonBlocking, greatest);
	fill(p, s);
	end_on(p, s, a);
}

static void callback_elsewhere(void)
{
	void *p = block(a);

	OK(hipStreamAddCallback(c, called_back, NULL, 0));
	fill(p, b);
	end_on(p, b, a);
}

static void managed_upload(void)
{
	void *p = block(a), *m;

	OK(hipMallocManaged(&m, BYTES, hipMemAttachGlobal));
	OK(hipMemcpyAsync(p, m, BYTES, hipMemcpyDefault, a));
	fill(p, b);
	end_on(p, b, a);
	OK(hipDeviceSynchronize());
	OK(hipFree(m));
}

static void rows_after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipMemset2DAsync(p, 64, 1, 32, 8, a));
}

static void rows_from_freed(void)
{
	void *p = block(a), *q = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipMemcpy2DAsync(q, 64, p, 64, 32, 8, hipMemcpyDeviceToDevice, a));
	OK(hipFreeAsync(q, a));
}

static void copy_to_what_is_new(void)
{
	void *p = block(b), *q = block(a);

	OK(hipMemcpyDtoDAsync((hipDeviceptr_t)q, (hipDeviceptr_t)p, BYTES, b));
	order(b, a);
	OK(hipFreeAsync(q, a));
	OK(hipFreeAsync(p, b));
}

static void uploaded_and_freed(void)
{
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	OK(hipMemcpyHtoDAsync((hipDeviceptr_t)p, pinned(), BYTES, a));
	OK(hipFreeAsync(p, b));
}

static void forked_and_freed(void)
{
	void *p = block(a);
	pid_t child = fork();

	if (!child)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	OK(hipFreeAsync(p, a));
	fill(p, a);
}

static void pool_ended(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {hipMemLocationTypeDevice, 0}};
	hipMemPool_t pool;
	void *p;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, a));
	OK(hipMemPoolDestroy(pool));
	fill(p, b);
	end_on(p, b, a);
}

static void registered_and_not_begun(void)
{
	unsigned *word = hold(b);
	void *p = block(a), *host = aligned_alloc(4096, BYTES);

	OK(hipHostRegister(host, BYTES, 0));
	order(a, b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
	OK(hipDeviceSynchronize());
	OK(hipHostUnregister(host));
	free(host);
}

static void rows_not_begun(void)
{
	unsigned *word = hold(b);
	void *p = block(a);

	order(a, b);
	OK(hipMemcpy2DAsync(pinned(), 64, p, 64, 32, 8, hipMemcpyDeviceToHost, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
}

static void box_not_begun(void)
{
	unsigned *word = hold(b);
	void *p = block(a);
	const hipMemcpy3DParms box = {
		.srcPtr = {p, 64, 32, 8},
		.dstPtr = {pinned(), 64, 32, 8},
		.extent = {32, 8, 1},
		.kind = hipMemcpyDeviceToHost,
	};

	order(a, b);
	OK(hipMemcpy3DAsync(&box, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
}

static hipGraphExec_t graph_of_copy(void *to, void *from)
{
	hipGraphNode_t node;
	hipGraphExec_t exec;
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, BYTES, hipMemcpyDeviceToHost));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphDestroy(graph));
	return exec;
}

static void graph_not_begun(void)
{
	unsigned *word = hold(b);
	void *p = block(a);
	hipGraphExec_t exec = graph_of_copy(pinned(), p);

	order(a, b);
	OK(hipGraphLaunch(exec, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
}

static void part_not_begun(void)
{
	unsigned *word = hold(b);
	char *p = block(a);

	order(a, b);
	if (somashim_handed_out)
		somashim_handed_out(p + 1024, 1024, a);
	order(a, b);
	OK(hipMemcpyAsync(pinned(), p + 1024, 1024, hipMemcpyDeviceToHost, b));
	if (somashim_returned)
		somashim_returned(p + 1024, a);
	let_go(word);
	end_on(p, b, a);
}

const struct program wrong_unusual[] = {
	{"event-recorded-twice", event_recorded_twice, "use-before-alloc hipMemsetAsync 2 1"},
	{"event-made-again", event_made_again, "use-before-alloc hipMemsetAsync 2 1"},
	{"event-not-ready", event_not_ready, "use-before-alloc hipMemsetAsync 2 1"},
	{"event-before-allocation-waited-for", event_before_allocation_waited_for,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"chain-that-began-too-early", chain_that_began_too_early,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"another-threads-use", another_threads_use, "use-before-alloc hipMemsetAsync 2 1"},
	{"per-thread-stream", per_thread_stream, "use-before-alloc hipMemsetAsync 4 1"},
	{"null-then-nonblocking", null_then_nonblocking, "use-before-alloc hipMemsetAsync 1 4"},
	{"priority-is-no-order", priority_is_no_order, "use-before-alloc hipMemsetAsync 4 1"},
	{"callback-elsewhere", callback_elsewhere, "use-before-alloc hipMemsetAsync 2 1"},
	{"managed-upload", managed_upload, "use-before-alloc hipMemsetAsync 2 1"},
	{"rows-after-free", rows_after_free, "use-after-free hipMemset2DAsync 1 1"},
	{"rows-from-freed", rows_from_freed, "use-after-free hipMemcpy2DAsync 1 1"},
	{"copy-to-what-is-new", copy_to_what_is_new, "use-before-alloc hipMemcpyDtoDAsync 2 1"},
	{"uploaded-and-freed", uploaded_and_freed, "free-before-use hipMemcpyHtoDAsync 1 2"},
	{"forked-and-freed", forked_and_freed, "use-after-free hipMemsetAsync 1 1"},
	{"pool-ended", pool_ended, "use-before-alloc hipMemsetAsync 2 1"},
	{"registered-and-not-begun", registered_and_not_begun,
	 "free-before-use hipMemcpyAsync 2 1"},
	{"rows-not-begun", rows_not_begun, "free-before-use hipMemcpy2DAsync 2 1"},
	{"box-not-begun", box_not_begun, "free-before-use hipMemcpy3DAsync 2 1"},
	{"graph-not-begun", graph_not_begun, "free-before-use hipGraphLaunch 2 1"},
	{"part-not-begun", part_not_begun, "free-before-use hipMemcpyAsync 2 1"},
	{NULL, NULL, NULL},
};

/* ---- right ones -------------------------------------------------------------- */

static void event_recorded_twice_in_order(void)
{
	hipEvent_t e = mark(c);
	void *p = block(a);

	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	OK(hipEventRecord(e, c)); /* the wait is over it */
	fill(p, b);
	end_on(p, b, a);
}

static void event_of_a_capture_used_again(void)
{
	hipGraph_t graph;
	hipEvent_t e;
	void *p;

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	OK(hipEventRecord(e, c));
	OK(hipStreamEndCapture(c, &graph));
	p = block(a);
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	fill(p, b);
	end_on(p, b, a);
	OK(hipGraphDestroy(graph));
}

static void fork_of_a_capture(void)
{
	hipGraphExec_t exec;
	hipGraph_t graph;
	hipEvent_t e, f;
	void *p = block(a), *q = block(a);

	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipEventCreateWithFlags(&f, hipEventDisableTiming));
	OK(hipStreamBeginCapture(b, hipStreamCaptureModeRelaxed));
	OK(hipEventRecord(e, b));
	OK(hipStreamWaitEvent(c, e, 0)); /* c captures, too */
	fill(p, b);
	fill(q, c);
	OK(hipEventRecord(f, c));
	OK(hipStreamWaitEvent(b, f, 0));
	OK(hipStreamEndCapture(b, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
	OK(hipStreamSynchronize(a));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

static void *wait_in_thread(void *event)
{
	OK(hipStreamWaitEvent(b, event, 0));
	return NULL;
}

static void another_threads_wait(void)
{
	void *p = block(a);

	join(wait_in_thread, mark(a));
	fill(p, b);
	end_on(p, b, a);
}

static void *synchronize_in_thread(void *unused)
{
	OK(hipDeviceSynchronize());
	return NULL;
}

static void another_threads_synchronization(void)
{
	void *p = block(a);

	join(synchronize_in_thread, NULL);
	fill(p, b);
	join(synchronize_in_thread, NULL);
	OK(hipFreeAsync(p, c));
}

static void per_thread_joins_null(void)
{
	void *p = block(hipStreamPerThread);

	fill(p, NULL);
	fill(p, hipStreamPerThread);
	OK(hipFreeAsync(p, NULL));
}

static void priorities_join_null(void)
{
	int least, greatest;
	hipStream_t s, t;
	void *p;

	OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
	s = stream_with(hipStreamDefault, least);
	t = stream_with(hipStreamDefault, greatest);
	p = block(s);
	fill(p, NULL);
	fill(p, t);
	fill(p, NULL);
	OK(hipFreeAsync(p, s));
}

static void waiting_copy_between(void)
{
	hipStream_t s = stream_with(hipStreamDefault, 0), t = stream_with(hipStreamDefault, 0);
	void *p = block(s), *q;

	OK(hipMalloc(&q, BYTES));
	OK(hipMemcpy(q, pinned(), BYTES, hipMemcpyHostToDevice));
	fill(p, t);
	OK(hipMemcpy(pinned(), q, BYTES, hipMemcpyDeviceToHost));
	OK(hipFreeAsync(p, s));
	OK(hipFree(q));
}

static void waits_for_itself(void)
{
	void *p = block(a);

	order(a, a);
	fill(p, a);
	order(a, b);
	order(b, b);
	OK(hipFreeAsync(p, b));
}

static void managed_and_polled(void)
{
	void *p = block(a), *m;

	OK(hipMallocManaged(&m, BYTES, hipMemAttachGlobal));
	memset(m, 0, BYTES);
	fill(p, a);
	OK(hipMemcpyAsync(m, p, BYTES, hipMemcpyDefault, a));
	spin_on(m);
	OK(hipFreeAsync(p, b));
	OK(hipDeviceSynchronize());
	OK(hipFree(m));
}

static void registered_and_polled(void)
{
	void *p = block(a), *host = aligned_alloc(4096, BYTES);

	memset(host, 0, BYTES);
	OK(hipHostRegister(host, BYTES, 0));
	fill(p, a);
	OK(hipMemcpyDtoHAsync(host, (hipDeviceptr_t)p, BYTES, a));
	spin_on(host);
	OK(hipFreeAsync(p, b));
	OK(hipDeviceSynchronize());
	OK(hipHostUnregister(host));
	free(host);
}

static void graph_copy_polled(void)
{
	void *p = block(a), *host = pinned();
	hipGraphExec_t exec = graph_of_copy(host, p);

	fill(p, a);
	OK(hipGraphLaunch(exec, a));
	spin_on(host);
	OK(hipFreeAsync(p, b));
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
}

/* The host has seen the second copy, and so the first one. */
static void later_copy_polled(void)
{
	void *p = block(a), *q = block(a), *host = pinned();

	fill(p, a);
	fill(q, a);
	OK(hipMemcpyAsync(pinned(), p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipMemcpyAsync(host, q, BYTES, hipMemcpyDeviceToHost, a));
	spin_on(host);
	OK(hipFreeAsync(p, b));
	OK(hipFreeAsync(q, c));
}

/* A copy behind an event of another stream: whoever sees it has seen what is in front of the
 * event. */
static void copy_of_another_stream_polled(void)
{
	unsigned *word;
	void *p = block(a), *q, *host = pinned();

	OK(hipMalloc(&q, BYTES));
	fill(p, a);
	fill(q, a);
	OK(hipMemcpyAsync(pinned(), p, BYTES, hipMemcpyDeviceToHost, a));
	order(a, b);
	word = hold(a);
	OK(hipMemcpyAsync(pinned(), q, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipMemcpyAsync(host, q, BYTES, hipMemcpyDeviceToHost, b));
	spin_on(host);
	OK(hipFreeAsync(p, c));
	let_go(word);
	OK(hipFree(q));
}

static void many_copies_polled(void)
{
	void *host[32], *p[32];

	for (int i = 0; i < 32; i++) {
		host[i] = pinned();
		p[i] = block(a);
		fill(p[i], a);
		OK(hipMemcpyAsync(host[i], p[i], BYTES, hipMemcpyDeviceToHost, a));
	}
	for (int i = 0; i < 32; i++) {
		spin_on(host[i]);
		OK(hipFreeAsync(p[i], i % 2 ? b : c));
	}
}

static void stream_ends_with_copies(void)
{
	unsigned *word;
	hipStream_t s;
	void *p = block(a);

	for (int i = 0; i < 20; i++) {
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
		order(a, s);
		word = hold(s);
		OK(hipMemcpyAsync(pinned(), p, 8, hipMemcpyDeviceToHost, s));
		let_go(word);
		OK(hipStreamDestroy(s)); /* this may wait */
	}
	OK(hipFreeAsync(p, a));
}

static void waiting_copy_to_pinned(void)
{
	void *p = block(a);

	OK(hipMemcpyWithStream(pinned(), p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipFreeAsync(p, b));
}

static void forked(void)
{
	void *p = block(a);
	pid_t child = fork();

	if (!child)
		_exit(0);
	(void)waitpid(child, NULL, 0);
	fill(p, a);
	end_on(p, a, b);
}

static void hip_free_of_unbegun(void)
{
	void *p = block(a);

	order(a, b);
	OK(hipMemcpyAsync(pinned(), p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipFree(p));
}

static void graph_gone_in_flight(void)
{
	void *p = block(a);
	hipGraphExec_t exec = graph_of_copy(pinned(), p);

	OK(hipGraphLaunch(exec, a));
	OK(hipGraphExecDestroy(exec));
	OK(hipFreeAsync(p, a));
}

const struct program right_unusual[] = {
#define P(name) {"right-" #name, name, NULL}
	P(event_recorded_twice_in_order),
	P(event_of_a_capture_used_again),
	P(fork_of_a_capture),
	P(another_threads_wait),
	P(another_threads_synchronization),
	P(per_thread_joins_null),
	P(priorities_join_null),
	P(waiting_copy_between),
	P(waits_for_itself),
	P(managed_and_polled),
	P(registered_and_polled),
	P(graph_copy_polled),
	P(later_copy_polled),
	P(copy_of_another_stream_polled),
	P(many_copies_polled),
	P(stream_ends_with_copies),
	P(waiting_copy_to_pinned),
	P(forked),
	P(hip_free_of_unbegun),
	P(graph_gone_in_flight),
	{NULL, NULL, NULL},
};
