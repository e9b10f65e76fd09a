/* SPDX-License-Identifier: MIT */
/* Two commands on the same bytes, one of which writes: without an order between them, and with one,
 * or on other bytes. */
#include "corpus.h"

#define HALF (BYTES / 2)
#define PITCH 64

/* A block that main() frees. */
static void *get(hipStream_t on)
{
	void *p = block(on);

	keep(p);
	return p;
}

/* One that both streams may use. */
static void *shared(void)
{
	void *p = get(a);

	order(a, b);
	return p;
}

static void set(void *p, int value, size_t bytes, hipStream_t on)
{
	OK(hipMemsetAsync(p, value, bytes, on));
}

static void copy(void *to, const void *from, size_t bytes, hipStream_t on)
{
	OK(hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, on));
}

static void *pinned(void)
{
	void *h;

	OK(hipHostMalloc(&h, BYTES, 0));
	memset(h, 1, BYTES);
	return h;
}

static void upload(void *to, const void *h, hipStream_t on)
{
	OK(hipMemcpyAsync(to, h, BYTES, hipMemcpyHostToDevice, on));
}

static void launch(const char *name, hipStream_t on, void **args)
{
	OK(hipModuleLaunchKernel(kernel(name), 1, 1, 1, 64, 1, 1, 0, on, args, NULL));
}

static void produce(void *p, hipStream_t on)
{
	launch("produce", on, (void *[]){&p});
}

static void consume(void *p, hipStream_t on)
{
	launch("consume", on, (void *[]){&p});
}

static void columns(void *p, size_t first, size_t count, int value, hipStream_t on)
{
	OK(hipMemset2DAsync((char *)p + first, PITCH, value, count, BYTES / PITCH, on));
}

/* A box of 4 by 4 by 4 bytes in memory with 16 bytes in a row and 16 rows in a slice. */
static void cube(void *p, size_t x, size_t y, size_t z, void *from, hipStream_t on)
{
	hipMemcpy3DParms copy = {
		.srcPtr = {.ptr = from, .pitch = 4, .xsize = 4, .ysize = 4},
		.dstPtr = {.ptr = p, .pitch = 16, .xsize = 16, .ysize = 16},
		.dstPos = {x, y, z},
		.extent = {4, 4, 4},
		.kind = hipMemcpyDeviceToDevice,
	};

	OK(hipMemcpy3DAsync(&copy, on));
}

static hipGraphExec_t graph_of_copy(void *to, void *from)
{
	hipGraphNode_t node;
	hipGraphExec_t exec;
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, BYTES,
				   hipMemcpyDeviceToDevice));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	return exec;
}

static void *block_of_1(hipStream_t s)
{
	void *p;

	OK(hipSetDevice(1));
	p = get(s);
	OK(hipSetDevice(0));
	return p;
}

/* ---- wrong ones ------------------------------------------------------------------ */

static void write_then_read(void)
{
	void *p = shared(), *q = get(b);

	set(p, 1, BYTES, a);
	copy(q, p, BYTES, b);
}

static void read_then_write(void)
{
	void *p = shared(), *q = get(a);

	copy(q, p, BYTES, a);
	set(p, 1, BYTES, b);
}

static void upload_then_write(void)
{
	void *p = shared(), *h = pinned();

	upload(p, h, a);
	set(p, 2, BYTES, b);
}

static void one_byte_in_common(void)
{
	char *p = shared();

	set(p, 1, HALF + 1, a);
	set(p + HALF, 2, HALF, b);
}

static void one_column_in_common(void)
{
	void *p = shared();

	columns(p, 0, 33, 1, a);
	columns(p, 32, 32, 2, b);
}

static void column_and_gap(void)
{
	char *p = shared(), *q = get(b);

	columns(p, 0, 33, 1, a);
	copy(q, p + 32 + 5 * PITCH, 16, b); /* begins at the last byte of a row */
}

static void corner_of_a_box(void)
{
	void *p = shared(), *q = get(a), *r = get(b);

	cube(p, 0, 0, 0, q, a);
	cube(p, 3, 3, 3, r, b);
}

static void other_elements(void)
{
	char *p = shared();

	OK(hipMemsetD16Async((hipDeviceptr_t)p, 0x0102, HALF / 2, a));
	OK(hipMemsetD16Async((hipDeviceptr_t)(p + 1), 0x0102, HALF / 2, b)); /* others, so */
}

static void copy_that_waits(void)
{
	static char h[BYTES];
	void *p = get(a);

	OK(hipStreamSynchronize(a));
	set(p, 1, BYTES, a);
	OK(hipMemcpy(h, p, BYTES, hipMemcpyDeviceToHost)); /* for the null stream */
}

static void classic_block(void)
{
	void *p, *q = get(b);

	OK(hipMalloc(&p, BYTES));
	set(p, 1, BYTES, a);
	copy(q, p, BYTES, b);
	OK(hipFree(p));
}

static void event_in_front_of_the_write(void)
{
	void *p = shared(), *q = get(b);
	hipEvent_t e = mark(a);

	set(p, 1, BYTES, a);
	OK(hipStreamWaitEvent(b, e, 0));
	copy(q, p, BYTES, b);
}

static void event_of_another_stream(void)
{
	void *p = shared(), *q = get(b);

	set(p, 1, BYTES, a);
	order(c, b);
	copy(q, p, BYTES, b);
}

static void earlier_value(void)
{
	void *p = shared();

	set(p, 1, BYTES, a);
	set(p, 2, BYTES, a);
	set(p, 1, BYTES, b); /* which of the two is the last one? */
}

static void upload_after_a_kernel(void)
{
	void *p = shared(), *h = pinned();
	int n = 1;

	upload(p, h, a);
	launch("fill", a, (void *[]){&p, &n});
	upload(p, h, b);
}

static void upload_of_the_next_frame(void)
{
	void *p = shared(), *q = get(a), *h = pinned();

	upload(p, h, a);
	OK(hipStreamSynchronize(a));
	memset(h, 2, BYTES);
	copy(q, p, BYTES, a);
	upload(p, h, b);
}

static void graph_and_memset(void)
{
	void *p = shared(), *q = get(a);
	hipGraphExec_t exec = graph_of_copy(p, q);

	OK(hipGraphLaunch(exec, a));
	set(p, 1, BYTES, b);
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
}

static void peer_copy(void)
{
	hipStream_t s = stream_of_1();
	void *p = get(a), *q = block_of_1(s);

	order(a, s);
	set(p, 1, BYTES, a);
	OK(hipMemcpyPeerAsync(q, 1, p, 0, BYTES, s));
	OK(hipStreamSynchronize(s));
}

static void kernel_writes(void)
{
	void *p = shared(), *q = get(b);

	produce(p, a);
	copy(q, p, BYTES, b);
}

static void kernel_reads(void)
{
	void *p = shared(), *h = pinned();

	consume(p, a);
	upload(p, h, b);
}

static void kernel_reads_what_is_written(void)
{
	void *p = shared(), *h = pinned();

	upload(p, h, b);
	consume(p, a);
}

static void kernel_may_choose(void)
{
	void *p = shared(), *q = get(a), *h = pinned();

	launch("choose", a, (void *[]){&p, &q});
	upload(p, h, b);
}

static void kernel_with_an_option(void)
{
	void *p = shared(), *q = get(a), *r = get(a), *h = pinned();
	int use = 0;

	launch("bias", a, (void *[]){&q, &r, &p, &use});
	upload(p, h, b);
}

static void three_streams(void)
{
	void *p = shared(), *q = get(c);

	set(p, 1, BYTES, a);
	order(a, b);
	set(p, 2, BYTES, b);
	order(a, c); /* after the first write only */
	copy(q, p, BYTES, c);
}

static void download(void)
{
	void *p = shared(), *h = pinned();

	set(p, 1, BYTES, a);
	OK(hipMemcpyAsync(h, p, BYTES, hipMemcpyDeviceToHost, b));
}

const struct program wrong_races[] = {
	{"race-write-then-read", write_then_read, "race hipMemcpyAsync 2 1"},
	{"race-read-then-write", read_then_write, "race hipMemsetAsync 2 1"},
	{"race-upload-then-write", upload_then_write, "race hipMemsetAsync 2 1"},
	{"race-one-byte", one_byte_in_common, "race hipMemsetAsync 2 1"},
	{"race-one-column", one_column_in_common, "race hipMemset2DAsync 2 1"},
	{"race-column-and-gap", column_and_gap, "race hipMemcpyAsync 2 1"},
	{"race-corner-of-a-box", corner_of_a_box, "race hipMemcpy3DAsync 2 1"},
	{"race-other-elements", other_elements, "race hipMemsetD16Async 2 1"},
	{"race-copy-that-waits", copy_that_waits, "race hipMemcpy 4 1"},
	{"race-classic-block", classic_block, "race hipMemcpyAsync 2 1"},
	{"race-event-in-front", event_in_front_of_the_write, "race hipMemcpyAsync 2 1"},
	{"race-event-of-another-stream", event_of_another_stream, "race hipMemcpyAsync 2 1"},
	{"race-earlier-value", earlier_value, "race hipMemsetAsync 2 1"},
	{"race-upload-after-kernel", upload_after_a_kernel, "race hipMemcpyAsync 2 1"},
	{"race-next-frame", upload_of_the_next_frame, "race hipMemcpyAsync 2 1"},
	{"race-graph-and-memset", graph_and_memset, "race hipMemsetAsync 2 1"},
	{"race-peer-copy", peer_copy, "race hipMemcpyPeerAsync 4 1"},
	{"race-kernel-writes", kernel_writes, "race hipMemcpyAsync 2 1"},
	{"race-kernel-reads", kernel_reads, "race hipMemcpyAsync 2 1"},
	{"race-kernel-reads-what-is-written", kernel_reads_what_is_written,
	 "race hipModuleLaunchKernel 1 2"},
	{"race-kernel-may-choose", kernel_may_choose, "possible race hipMemcpyAsync 2 1"},
	{"race-kernel-with-an-option", kernel_with_an_option, "possible race hipMemcpyAsync 2 1"},
	{"race-three-streams", three_streams, "race hipMemcpyAsync 3 2"},
	{"race-download", download, "race hipMemcpyAsync 2 1"},
	{0},
};

/* ---- right ones ------------------------------------------------------------------ */

static void halves(void)
{
	char *p = shared();

	set(p, 1, HALF, a);
	set(p + HALF, 2, HALF, b);
}

static void interleaved_columns(void)
{
	void *p = shared();

	columns(p, 0, 32, 1, a);
	columns(p, 32, 32, 2, b);
}

static void between_the_columns(void)
{
	char *p = shared(), *q = get(b);

	columns(p, 0, 32, 1, a);
	for (int row = 0; row < BYTES / PITCH; row++)
		copy(q, p + row * PITCH + 32, 32, b);
}

static void rows_of_other_pitches(void)
{
	char *p = shared();

	/* Bytes 0 to 15 of 64, and 16 to 31 of 32. */
	OK(hipMemset2DAsync(p, 64, 1, 16, 32, a));
	OK(hipMemset2DAsync(p + 16, 32, 2, 16, 64, b));
}

static void boxes_side_by_side(void)
{
	void *p = shared(), *q = get(a), *r = get(b);

	cube(p, 0, 0, 0, q, a);
	cube(p, 4, 0, 0, r, b);
	cube(p, 0, 4, 0, r, b);
	cube(p, 0, 0, 4, r, b);
	cube(p, 12, 12, 8, r, b);
}

static void both_clear(void)
{
	void *p = shared(), *q = get(b);

	set(p, 0, BYTES, a);
	set(p, 0, BYTES, b);
	copy(q, p, BYTES, b);
}

static void both_upload_the_same(void)
{
	void *p = shared(), *h = pinned();

	upload(p, h, a);
	consume(p, a);
	upload(p, h, b);
	consume(p, b);
}

static void both_read(void)
{
	void *p = shared(), *q = get(a), *r = get(b);

	set(p, 1, BYTES, a);
	order(a, b);
	copy(q, p, BYTES, a);
	copy(r, p, BYTES, b);
}

static void there_and_back(void)
{
	void *p = shared(), *q = get(b);

	for (int i = 0; i < 10; i++) {
		set(p, i, BYTES, a);
		order(a, b);
		copy(q, p, BYTES, b);
		order(b, a);
	}
}

static void through_the_null_stream(void)
{
	hipStream_t s;
	void *p, *q;

	OK(hipStreamCreate(&s));
	p = get(s);
	q = get(NULL);
	set(p, 1, BYTES, s);
	copy(q, p, BYTES, NULL);
	set(p, 2, BYTES, s);
	OK(hipStreamSynchronize(s));
}

static void host_waits(void)
{
	void *p = shared(), *q = get(b);

	set(p, 1, BYTES, a);
	OK(hipStreamSynchronize(a));
	copy(q, p, BYTES, b);
	OK(hipStreamSynchronize(b));
	set(p, 2, BYTES, c);
}

static void host_polls_pinned_memory(void)
{
	volatile char *h = pinned();
	void *p = shared(), *q = get(b);

	set(p, 7, BYTES, a);
	OK(hipMemcpyAsync((void *)h, p, 1, hipMemcpyDeviceToHost, a));
	while (*h != 7)
		;
	copy(q, p, BYTES, b);
}

static void pageable_upload(void)
{
	static char h[BYTES];
	void *p = shared();

	OK(hipMemcpyAsync(p, h, BYTES, hipMemcpyHostToDevice, a));
	set(p, 1, BYTES, b);
}

static void kernel_and_half(void)
{
	char *p = shared();

	consume(p, a); /* perhaps the first half */
	set(p + HALF, 1, HALF, b);
}

static void two_kernels(void)
{
	char *p = shared(), *q = p + HALF;

	produce(p, a); /* a half each */
	consume(q, b);
}

static void graph_on_two_streams(void)
{
	void *p = shared(), *q = get(a);
	hipGraphExec_t exec = graph_of_copy(p, q);

	order(a, b);
	OK(hipGraphLaunch(exec, a));
	OK(hipGraphLaunch(exec, b)); /* one launch at a time */
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
}

static void peer_copy_in_order(void)
{
	hipStream_t s = stream_of_1();
	void *p = get(a), *q = block_of_1(s);
	hipEvent_t e;

	set(p, 1, BYTES, a);
	order(a, s);
	OK(hipMemcpyPeerAsync(q, 1, p, 0, BYTES, s));
	OK(hipSetDevice(1));
	e = mark(s);
	OK(hipSetDevice(0));
	OK(hipStreamWaitEvent(a, e, 0));
	set(p, 2, BYTES, a);
	OK(hipStreamSynchronize(s));
}

/* It waits for both devices. */
static void peer_copy_that_waits(void)
{
	hipStream_t s;
	void *p = get(NULL), *q;

	OK(hipSetDevice(1));
	OK(hipStreamCreate(&s));
	q = get(s);
	set(q, 1, BYTES, s);
	OK(hipSetDevice(0));
	OK(hipDeviceSynchronize());
	OK(hipSetDevice(1));
	OK(hipStreamSynchronize(s));
	set(q, 2, BYTES, s);
	OK(hipSetDevice(0));
	OK(hipMemcpyPeer(p, 0, q, 1, BYTES));
	OK(hipMemcpy(p, q, BYTES, hipMemcpyDeviceToDevice));
	OK(hipStreamSynchronize(s));
}

/* Each chunk is read once its own event has come. */
static void chunks_with_events(void)
{
	char *p = shared(), *q = get(b);

	for (int i = 0; i < 16; i++) {
		set(p + i * 256, i, 256, a);
		order(a, b);
		copy(q + i * 256, p + i * 256, 256, b);
	}
}

static void event_between_the_chunks(void)
{
	char *p = shared(), *q = get(b);
	hipEvent_t e;

	set(p, 1, HALF, a);
	e = mark(a);
	set(p + HALF, 2, HALF, a);
	OK(hipStreamWaitEvent(b, e, 0));
	copy(q, p, HALF, b);
}

static void addresses_again(void)
{
	void *p = block(a);

	order(a, b);
	set(p, 1, BYTES, a);
	OK(hipFreeAsync(p, a));
	p = shared();
	set(p, 2, BYTES, b);
	order(b, a);
}

static void refused_copy(void)
{
	void *p = shared();

	if (hipMemcpyAsync(p, NULL, BYTES, hipMemcpyDeviceToDevice, a) == hipSuccess)
		exit(2);
	set(p, 2, BYTES, b);
}

static void waits_for_a_value(void)
{
	void *p = shared(), *q = get(b);
	uint32_t *flag;

	OK(hipExtMallocWithFlags((void **)&flag, 8, hipMallocSignalMemory));
	*flag = 0;
	OK(hipStreamWaitValue32(b, flag, 1, hipStreamWaitValueEq, ~0u));
	copy(q, p, BYTES, b);
	set(p, 1, BYTES, a); /* in front of it, whatever the order of the calls */
	OK(hipStreamWriteValue32(a, flag, 1, 0));
	OK(hipDeviceSynchronize());
	OK(hipFree(flag));
}

static void device_waits_in_free(void)
{
	void *p = shared(), *q = get(b), *r;

	OK(hipMalloc(&r, BYTES));
	set(p, 1, BYTES, a);
	OK(hipFree(r));
	copy(q, p, BYTES, b);
}

static void through_a_third_stream(void)
{
	void *p = shared(), *q = get(b);

	set(p, 1, BYTES, a);
	order(a, c);
	order(c, b);
	copy(q, p, BYTES, b);
}

static void one_row_of_many(void)
{
	char *p = shared();

	/* A pitch that nobody looks at, of a single row. */
	OK(hipMemset2DAsync(p, 4 * BYTES, 1, HALF, 1, a));
	set(p + HALF, 2, HALF, b);
}

const struct program right_races[] = {
	{"right-race-halves", halves, NULL},
	{"right-race-columns", interleaved_columns, NULL},
	{"right-race-between-columns", between_the_columns, NULL},
	{"right-race-other-pitches", rows_of_other_pitches, NULL},
	{"right-race-boxes", boxes_side_by_side, NULL},
	{"right-race-both-clear", both_clear, NULL},
	{"right-race-both-upload", both_upload_the_same, NULL},
	{"right-race-both-read", both_read, NULL},
	{"right-race-there-and-back", there_and_back, NULL},
	{"right-race-null-stream", through_the_null_stream, NULL},
	{"right-race-host-waits", host_waits, NULL},
	{"right-race-host-polls", host_polls_pinned_memory, NULL},
	{"right-race-pageable", pageable_upload, NULL},
	{"right-race-kernel-and-half", kernel_and_half, NULL},
	{"right-race-two-kernels", two_kernels, NULL},
	{"right-race-graph-on-two-streams", graph_on_two_streams, NULL},
	{"right-race-peer-copy", peer_copy_in_order, NULL},
	{"right-race-peer-copy-waits", peer_copy_that_waits, NULL},
	{"right-race-chunks", chunks_with_events, NULL},
	{"right-race-event-between-chunks", event_between_the_chunks, NULL},
	{"right-race-addresses-again", addresses_again, NULL},
	{"right-race-refused-copy", refused_copy, NULL},
	{"right-race-waits-for-a-value", waits_for_a_value, NULL},
	{"right-race-device-waits", device_waits_in_free, NULL},
	{"right-race-third-stream", through_a_third_stream, NULL},
	{"right-race-one-row", one_row_of_many, NULL},
	{0},
};
