/* SPDX-License-Identifier: MIT */
/* Programs whose kernels write what no call shows: padding, and blocks that have been freed. */
#include "corpus.h"

/* The software device runs this for the kernel `hidden`, which finds its address by itself. */
void somasim_kernel_hidden(void **args);
extern const size_t somasim_kernel_hidden_args[];
__attribute__((visibility("default"))) const size_t somasim_kernel_hidden_args[] = {8, 8, 0};
__attribute__((visibility("default"))) void somasim_kernel_hidden(void **args)
{
	memset((void *)~*(uintptr_t *)args[0], 0x11, *(size_t *)args[1]);
}

void write_hidden(void *p, size_t bytes, hipStream_t on)
{
	static hipFunction_t f;
	uintptr_t hidden = ~(uintptr_t)p;

	if (!f)
		f = kernel("hidden");
	OK(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, on, (void *[]){&hidden, &bytes}, NULL));
}

/* ---- padding ------------------------------------------------------------------ */

static void past_end_and_event(void)
{
	void *p = block(a);

	write_hidden(p, BYTES + 3, a);
	order(a, b);
	OK(hipFreeAsync(p, b));
}

static void past_end_and_events(void)
{
	void *p = block(a);

	order(a, b);
	order(b, c);
	write_hidden((char *)p + BYTES + 9, 1, c);
	OK(hipFreeAsync(p, c));
}

static void past_end_and_wait(void)
{
	void *p = block(a);

	write_hidden(p, BYTES + 3, a);
	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, b));
}

/* ---- after a free --------------------------------------------------------------- */

static void after_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	write_hidden((char *)p + 100, 3, a);
}

static void after_free_elsewhere(void)
{
	void *p = block(a);

	order(a, b);
	OK(hipFreeAsync(p, b));
	order(b, c);
	write_hidden(p, BYTES, c);
}

static void after_free_on_null_stream(void)
{
	void *p = block(NULL);

	OK(hipFreeAsync(p, NULL));
	write_hidden((char *)p + BYTES - 1, 1, NULL);
}

static void after_hip_free(void)
{
	void *p;

	OK(hipMalloc(&p, 1000));
	OK(hipFree(p));
	write_hidden(p, 8, a);
}

static void after_hip_free_of_pool_block(void)
{
	void *p = block(a);

	OK(hipFree(p));
	write_hidden(p, 8, a);
}

static void after_free_and_pool_destroyed(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;
	void *p;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&p, BYTES, pool, a));
	OK(hipFreeAsync(p, a));
	write_hidden(p, 5, a);
	OK(hipMemPoolDestroy(pool));
}

static void after_free_and_stream_destroyed(void)
{
	hipStream_t s;
	void *p;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	p = block(s);
	OK(hipFreeAsync(p, s));
	write_hidden(p, 5, s);
	OK(hipStreamDestroy(s));
}

/* The blocks that are freed later are more than what is held back. */
static void after_free_and_many_frees(void)
{
	void *p = block(a), *q;

	OK(hipFreeAsync(p, a));
	write_hidden(p, 1, a);
	for (int i = 0; i < 5; i++) {
		OK(hipMallocAsync(&q, 16 << 20, a));
		OK(hipFreeAsync(q, a));
	}
	OK(hipStreamSynchronize(a));
	_Exit(0); /* so it has been said before */
}

const struct program wrong_memory[] = {
	{"past-end-and-event", past_end_and_event,
	 "overwritten-padding hipMallocAsync 0 3|memory-fault hipMallocAsync past 0"},
	{"past-end-and-events", past_end_and_events,
	 "overwritten-padding hipMallocAsync 9 1|memory-fault hipMallocAsync past 0"},
	{"past-end-and-wait", past_end_and_wait,
	 "overwritten-padding hipMallocAsync 0 3|memory-fault hipMallocAsync past 0"},
	{"after-free", after_free, "write-after-free hipFreeAsync 1 1 100 3"},
	{"after-free-elsewhere", after_free_elsewhere, "write-after-free hipFreeAsync 2 1 0 4096"},
	{"after-free-on-null-stream", after_free_on_null_stream,
	 "write-after-free hipFreeAsync 4 4 4095 1"},
	{"after-hip-free", after_hip_free, "write-after-free hipFree 0 0 0 8"},
	{"after-hip-free-of-pool-block", after_hip_free_of_pool_block,
	 "write-after-free hipFree 0 1 0 8|memory-fault hipMallocAsync hipFree inside"},
	{"after-free-and-pool-destroyed", after_free_and_pool_destroyed,
	 "write-after-free hipFreeAsync 1 1 0 5"},
	{"after-free-and-stream-destroyed", after_free_and_stream_destroyed,
	 "write-after-free hipFreeAsync 4 4 0 5"},
	{"after-free-and-many-frees", after_free_and_many_frees,
	 "write-after-free hipFreeAsync 1 1 0 1"},
	{NULL, NULL, NULL},
};

/* ---- right ones -------------------------------------------------------------------- */

static void many_blocks(void)
{
	void *p, *q;

	for (int i = 0; i < 12; i++) {
		OK(hipMallocAsync(&p, 16 << 20, a));
		OK(hipMalloc(&q, 16 << 20));
		write_hidden(p, 16 << 20, a);
		write_hidden(q, 16 << 20, b);
		order(a, b);
		OK(hipFreeAsync(p, i % 2 ? a : b));
		OK(hipFree(q));
	}
}

/* A pool that has room for one block. */
static void pool_of_one_block(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	uint64_t used = 1, most = 8 << 20;
	hipMemPool_t pool;
	void *p;

	memcpy(props.reserved, &most, sizeof(most)); /* maxSize in newer headers */
	OK(hipMemPoolCreate(&pool, &props));
	for (int i = 0; i < 3; i++) {
		OK(hipMallocFromPoolAsync(&p, 6 << 20, pool, a));
		write_hidden(p, 6 << 20, a);
		OK(hipFreeAsync(p, a));
	}
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	if (used)
		exit(2); /* a block is held back while the program asks */
	OK(hipMemPoolDestroy(pool));
}

static void per_thread_frees(void)
{
	void *p;

	for (int i = 0; i < 3; i++) {
		p = block(hipStreamPerThread);
		write_hidden(p, BYTES, hipStreamPerThread);
		OK(hipFreeAsync(p, hipStreamPerThread));
	}
	OK(hipStreamSynchronize(hipStreamPerThread));
}

static void reset_after_frees(void)
{
	void *p = block(a), *q;

	OK(hipMalloc(&q, BYTES));
	OK(hipFreeAsync(p, a));
	OK(hipFree(q));
	OK(hipDeviceReset());
	OK(hipMalloc(&q, BYTES));
	OK(hipFree(q));
}

/* The free waits for a value that is written after the last use. */
static void held_until_written(void)
{
	void *p = block(a);
	unsigned *value;

	OK(hipExtMallocWithFlags((void **)&value, 8, hipMallocSignalMemory));
	*value = 0;
	order(a, b);
	OK(hipStreamWaitValue32(a, value, 1, hipStreamWaitValueEq, ~0u));
	OK(hipFreeAsync(p, a));
	write_hidden(p, BYTES, b);
	OK(hipStreamWriteValue32(b, value, 1, 0));
	OK(hipStreamSynchronize(a));
	OK(hipFree(value));
}

/* The device may lose a fill in them (command.sh). */
static void two_blocks_and_a_wait(void)
{
	void *p = block(a), *q = block(a);

	OK(hipStreamSynchronize(a));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
}

static void hip_malloc_and_hip_free(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipFree(p));
}

/* ---- never written: only the tools init and unused say so (command.sh) --------------- */

static void *pinned(void)
{
	void *h;

	OK(hipHostMalloc(&h, BYTES, 0));
	return h;
}

static void copies_what_is_new(void)
{
	static char pageable[BYTES];
	void *p = block(a), *h = pinned();

	OK(hipMemcpyAsync(h, p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipStreamSynchronize(a));
	OK(hipMemcpy(pageable, (char *)p + 64, 1000, hipMemcpyDeviceToHost));
	OK(hipFreeAsync(p, a));
}

static void copies_what_is_half_new(void)
{
	void *p = block(a), *h = pinned();

	OK(hipMemsetAsync(p, 0, BYTES / 2, a));
	OK(hipMemcpyAsync(h, p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipFreeAsync(p, a));
}

static void copies_what_a_kernel_may_have_written(void)
{
	void *p = block(a), *h = pinned();
	int n = 1;

	OK(hipModuleLaunchKernel(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, a, (void *[]){&p, &n},
				 NULL));
	OK(hipMemcpyAsync(h, p, BYTES, hipMemcpyDeviceToHost, a));
	OK(hipFreeAsync(p, a));
}

/* New memory at the addresses of what was written. */
static void copies_what_is_written(void)
{
	void *p, *q, *h = pinned();

	for (int i = 0; i < 3; i++) {
		p = block(a);
		q = block(a);
		OK(hipMemsetAsync(p, i, BYTES, a));
		OK(hipMemcpyAsync(q, p, BYTES, hipMemcpyDeviceToDevice, a));
		OK(hipMemcpyAsync(h, q, BYTES, hipMemcpyDeviceToHost, a));
		order(a, b);
		OK(hipFreeAsync(p, b));
		OK(hipFreeAsync(q, b));
		order(b, a);
	}
}

static void frees_what_is_new(void)
{
	void *p = block(a), *q;

	OK(hipFreeAsync(p, a));
	OK(hipMalloc(&q, 1000));
	OK(hipFree(q));
}

const struct program right_memory[] = {
#define P(name) {"right-" #name, name, NULL}
	P(many_blocks),
	P(pool_of_one_block),
	P(per_thread_frees),
	P(reset_after_frees),
	P(held_until_written),
	P(two_blocks_and_a_wait),
	P(hip_malloc_and_hip_free),
	P(copies_what_is_new),
	P(copies_what_is_half_new),
	P(copies_what_a_kernel_may_have_written),
	P(copies_what_is_written),
	P(frees_what_is_new),
	{NULL, NULL, NULL},
};
