/* SPDX-License-Identifier: MIT */
/* Small programs with one error each, in the order of streams. */
#include "corpus.h"

/* ---- use before allocation ------------------------------------------------ */

static void use_on_another_stream(void)
{
	void *p = block(a);

	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void event_before_allocation(void)
{
	hipEvent_t e = mark(a);
	void *p = block(a);

	OK(hipStreamWaitEvent(b, e, 0)); /* recorded too early */
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void wait_before_record(void)
{
	void *p = block(a);
	hipEvent_t e;

	OK(hipEventCreate(&e));
	OK(hipStreamWaitEvent(b, e, 0)); /* nothing was recorded */
	OK(hipEventRecord(e, a));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void event_on_wrong_stream(void)
{
	void *p = block(a);

	order(c, b);
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void wait_on_wrong_stream(void)
{
	void *p = block(a);

	order(a, c);
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void copy_before_allocation(void)
{
	void *p = block(a), *q = block(b);

	OK(hipMemcpyAsync(q, p, BYTES, hipMemcpyDeviceToDevice, b));
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, b));
}

static void copy_2d_before_allocation(void)
{
	void *p = block(a), *q = block(b);

	OK(hipMemcpy2DAsync(q, 64, p, 64, 32, 16, hipMemcpyDeviceToDevice, b));
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, b));
}

static void null_stream_and_nonblocking(void)
{
	void *p = block(NULL);

	fill(p, a); /* a does not join the null stream */
	order(a, b);
	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, NULL));
}

static void nonblocking_and_null_stream(void)
{
	void *p = block(a);

	fill(p, NULL);
	OK(hipDeviceSynchronize());
	OK(hipFreeAsync(p, a));
}

static void other_pool(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;
	void *p;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, a));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipMemPoolDestroy(pool));
}

static void reused_block(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	order(a, b); /* before the second allocation */
	p = block(a);
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void free_before_allocation(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, b));
}

/* ---- use after free --------------------------------------------------------- */

static void use_after_free(void)
{
	void *p = block(a);

	fill(p, a);
	OK(hipFreeAsync(p, a));
	fill(p, a);
}

static void use_after_free_three_times(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	for (int i = 0; i < 3; i++)
		fill(p, a);
}

static void use_after_free_elsewhere(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	order(a, b);
	fill(p, b);
}

static void use_after_free_and_wait(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(a));
	fill(p, b);
}

static void use_races_with_free(void)
{
	void *p = block(a);

	order(a, b);
	OK(hipFreeAsync(p, a));
	fill(p, b);
}

static void free_without_wait(void)
{
	void *p = block(a);

	order(a, b);
	fill(p, b);
	OK(hipFreeAsync(p, a));
}

static void free_after_old_event(void)
{
	void *p = block(a);
	hipEvent_t e;

	order(a, b);
	e = mark(b);
	fill(p, b); /* after the record */
	OK(hipStreamWaitEvent(a, e, 0));
	OK(hipFreeAsync(p, a));
}

static void free_after_waiting_for_the_other(void)
{
	void *p = block(a);

	order(a, b);
	order(a, c);
	fill(p, b);
	fill(p, c);
	order(b, a); /* and not c */
	OK(hipFreeAsync(p, a));
}

static void free_on_third_stream(void)
{
	void *p = block(a);

	fill(p, a);
	order(a, b);
	fill(p, a);
	OK(hipFreeAsync(p, b));
}

static void free_while_copied_from(void)
{
	void *p = block(a), *q = block(b);

	order(a, b);
	OK(hipMemcpyAsync(q, p, BYTES, hipMemcpyDeviceToDevice, b));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, b));
}

static void free_while_copied_to_pinned(void)
{
	void *p = block(a), *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	fill(p, b); /* the host can only see that the copy has ended */
	OK(hipFreeAsync(p, a));
	OK(hipStreamSynchronize(b));
	OK(hipHostFree(host));
}

/* The host can see the end of the copy, but the copy has not begun. */
static void free_before_copy_begins(void)
{
	unsigned *word = hold(b);
	void *p = block(a), *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
	OK(hipDeviceSynchronize());
	OK(hipHostFree(host));
}

/* The second copy proves that what comes behind it has not begun either. */
static void free_behind_copy_that_waits(void)
{
	unsigned *word;
	void *p = block(a), *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	order(a, b);
	OK(hipMemcpyAsync(host, p, BYTES, hipMemcpyDeviceToHost, b));
	OK(hipStreamSynchronize(b));
	word = hold(b);
	OK(hipMemcpyAsync(host, p, 8, hipMemcpyDeviceToHost, b));
	fill(p, b);
	OK(hipMemcpyAsync(host, p, 8, hipMemcpyDeviceToHost, b));
	OK(hipFreeAsync(p, a));
	let_go(word);
	OK(hipDeviceSynchronize());
	OK(hipHostFree(host));
}

/* The host learns nothing from memory that the device reads. */
static void *pinned(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	memset(host, 1, BYTES);
	return host;
}

static void use_after_upload(void)
{
	void *p = block(a);

	OK(hipMemcpyAsync(p, pinned(), BYTES, hipMemcpyHostToDevice, a));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
}

static void free_while_uploaded(void)
{
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	OK(hipMemcpyAsync(p, pinned(), BYTES, hipMemcpyHostToDevice, a));
	OK(hipFreeAsync(p, b));
}

static void free_while_uploaded_in_rows(void)
{
	void *p = block(a), *host;

	OK(hipStreamSynchronize(a));
	OK(hipMallocManaged(&host, BYTES, hipMemAttachGlobal));
	OK(hipMemcpy2DAsync(p, 64, host, 64, 32, 16, hipMemcpyHostToDevice, a));
	OK(hipFreeAsync(p, b));
	OK(hipDeviceSynchronize());
	OK(hipFree(host));
}

static void use_after_captured_upload(void)
{
	void *p = block(a), *host = pinned();
	hipGraphExec_t exec;
	hipGraph_t graph;

	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	OK(hipMemcpyAsync(p, host, BYTES, hipMemcpyHostToDevice, c));
	OK(hipStreamEndCapture(c, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, a));
	fill(p, b);
	order(b, a);
	OK(hipFreeAsync(p, a));
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

static void free_after_waiting_on_the_wrong_stream(void)
{
	void *p = block(a);

	order(a, b);
	fill(p, b);
	OK(hipStreamSynchronize(c));
	OK(hipFreeAsync(p, a));
}

static void free_on_null_stream(void)
{
	void *p = block(a);

	fill(p, a);
	OK(hipFreeAsync(p, NULL)); /* a is non-blocking */
}

static void free_then_null_stream(void)
{
	void *p = block(NULL);

	fill(p, NULL);
	order(NULL, a);
	fill(p, a);
	OK(hipFreeAsync(p, NULL));
}

static void classic_use_after_free(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	fill(p, a);
	OK(hipFree(p));
	(void)hipMemsetAsync(p, 1, BYTES, b); /* which the runtime may refuse */
}

static void classic_copy_after_free(void)
{
	void *p, *q;

	OK(hipMalloc(&p, BYTES));
	OK(hipMalloc(&q, BYTES));
	OK(hipFree(p));
	(void)hipMemcpyAsync(q, p, BYTES, hipMemcpyDeviceToDevice, a);
	OK(hipFree(q));
}

static void pool_block_freed_by_hip_free(void)
{
	void *p = block(a);

	fill(p, a);
	OK(hipFree(p));
	fill(p, a);
}

static void inside_of_freed_block(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	OK(hipMemsetAsync((char *)p + 100, 1, 10, a));
}

const struct program wrong_programs[] = {
	{"use-on-another-stream", use_on_another_stream, "use-before-alloc hipMemsetAsync 2 1"},
	{"event-before-allocation", event_before_allocation, "use-before-alloc hipMemsetAsync 2 1"},
	{"wait-before-record", wait_before_record, "use-before-alloc hipMemsetAsync 2 1"},
	{"event-on-wrong-stream", event_on_wrong_stream, "use-before-alloc hipMemsetAsync 2 1"},
	{"wait-on-wrong-stream", wait_on_wrong_stream, "use-before-alloc hipMemsetAsync 2 1"},
	{"copy-before-allocation", copy_before_allocation, "use-before-alloc hipMemcpyAsync 2 1"},
	{"copy-2d-before-allocation", copy_2d_before_allocation,
	 "use-before-alloc hipMemcpy2DAsync 2 1"},
	{"null-stream-and-nonblocking", null_stream_and_nonblocking,
	 "use-before-alloc hipMemsetAsync 1 4"},
	{"nonblocking-and-null-stream", nonblocking_and_null_stream,
	 "use-before-alloc hipMemsetAsync 4 1"},
	{"other-pool", other_pool, "use-before-alloc hipMemsetAsync 2 1"},
	{"reused-block", reused_block, "use-before-alloc hipMemsetAsync 2 1"},
	{"free-before-allocation", free_before_allocation, "free-before-alloc hipFreeAsync 2 1"},
	{"use-after-free", use_after_free, "use-after-free hipMemsetAsync 1 1"},
	{"use-after-free-three-times", use_after_free_three_times,
	 "use-after-free hipMemsetAsync 1 1"},
	{"use-after-free-elsewhere", use_after_free_elsewhere, "use-after-free hipMemsetAsync 2 1"},
	{"use-after-free-and-wait", use_after_free_and_wait, "use-after-free hipMemsetAsync 2 1"},
	{"use-races-with-free", use_races_with_free, "use-after-free-race hipMemsetAsync 2 1"},
	{"free-without-wait", free_without_wait, "free-before-use hipMemsetAsync 2 1"},
	{"free-after-old-event", free_after_old_event, "free-before-use hipMemsetAsync 2 1"},
	{"free-after-waiting-for-the-other", free_after_waiting_for_the_other,
	 "free-before-use hipMemsetAsync 3 1"},
	{"free-on-third-stream", free_on_third_stream, "free-before-use hipMemsetAsync 1 2"},
	{"free-while-copied-from", free_while_copied_from, "free-before-use hipMemcpyAsync 2 1"},
	{"free-while-copied-to-pinned", free_while_copied_to_pinned,
	 "free-before-use hipMemsetAsync 2 1"},
	{"free-before-copy-begins", free_before_copy_begins, "free-before-use hipMemcpyAsync 2 1"},
	{"free-behind-copy-that-waits", free_behind_copy_that_waits,
	 "free-before-use hipMemcpyAsync 2 1"},
	{"use-after-upload", use_after_upload, "use-before-alloc hipMemsetAsync 2 1"},
	{"free-while-uploaded", free_while_uploaded, "free-before-use hipMemcpyAsync 1 2"},
	{"free-while-uploaded-in-rows", free_while_uploaded_in_rows,
	 "free-before-use hipMemcpy2DAsync 1 2"},
	{"use-after-captured-upload", use_after_captured_upload,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"free-after-waiting-on-the-wrong-stream", free_after_waiting_on_the_wrong_stream,
	 "free-before-use hipMemsetAsync 2 1"},
	{"free-on-null-stream", free_on_null_stream,
	 "free-before-alloc hipFreeAsync 4 1;free-before-use hipMemsetAsync 1 4"},
	{"free-then-null-stream", free_then_null_stream, "free-before-use hipMemsetAsync 1 4"},
	{"classic-use-after-free", classic_use_after_free, "use-after-free hipMemsetAsync 2 0"},
	{"classic-copy-after-free", classic_copy_after_free, "use-after-free hipMemcpyAsync 1 0"},
	{"pool-block-freed-by-hip-free", pool_block_freed_by_hip_free,
	 "use-after-free hipMemsetAsync 1 0"},
	{"inside-of-freed-block", inside_of_freed_block, "use-after-free hipMemsetAsync 1 1"},
	{NULL, NULL, NULL},
};
