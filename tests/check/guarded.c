/* SPDX-License-Identifier: MIT */
/* Programs about what lies around blocks: bytes in front of them, and pages that are not mapped. */
#include "corpus.h"

#define LARGE ((3 << 20) - 512)

/* ---- wrong ones ------------------------------------------------------------------ */

static void before_start(void)
{
	void *p = block(a);

	write_hidden((char *)p - 8, 3, a);
	OK(hipFreeAsync(p, a));
}

static void before_start_and_past_end(void)
{
	char *p;

	OK(hipMalloc((void **)&p, 1000));
	write_hidden(p - 1, 1002, a);
	OK(hipFree(p));
}

static void before_start_of_leak(void)
{
	write_hidden((char *)block(a) - 100, 1, a);
}

static void fill_from_before_start(void)
{
	char *p = block(a);

	(void)hipMemsetAsync(p - 8, 1, 16, a);
	OK(hipFreeAsync(p, a));
}

static void large_past_end(void)
{
	char *p;

	OK(hipMallocAsync((void **)&p, LARGE, a));
	write_hidden(p + LARGE, 1, a);
	OK(hipStreamSynchronize(a));
}

static void large_past_end_of_hip_malloc(void)
{
	char *p;

	OK(hipMalloc((void **)&p, 4 << 20));
	write_hidden(p + (4 << 20) + 5000, 1, a);
	OK(hipDeviceSynchronize());
}

static void large_after_hip_free(void)
{
	char *p;

	OK(hipMalloc((void **)&p, LARGE));
	OK(hipFree(p));
	write_hidden(p, 1, a);
	OK(hipDeviceSynchronize());
}

/* ---- right ones ------------------------------------------------------------------- */

/* All that a program is told of a block is the block's own. */
static void what_pointers_are(void)
{
	hipDeviceptr_t base;
	hipPointerAttribute_t at;
	uint64_t used;
	hipMemPool_t pool;
	size_t size;
	char *p;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 4; i++) {
		size_t want = i % 2 ? LARGE - 1 : 1001;

		OK(i < 2 ? hipMalloc((void **)&p, want) : hipMallocAsync((void **)&p, want, a));
		OK(hipMemGetAddressRange(&base, &size, p + want - 1));
		OK(hipPointerGetAttributes(&at, p + 5));
		if (base != p || size != want || at.devicePointer != p + 5)
			exit(2);
		OK(hipMemsetAsync(p, 7, want, a));
		OK(hipStreamSynchronize(a));
		OK(i < 2 ? hipFree(p) : hipFreeAsync(p, a));
	}
	OK(hipStreamSynchronize(a));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	if (used)
		exit(2);
}

/* Blocks are used up to the last byte until the stream that frees them has come there. */
static void large_until_freed(void)
{
	char *p;

	for (int i = 0; i < 30; i++) {
		OK(hipMallocAsync((void **)&p, (size_t)LARGE + (size_t)i * 100, a));
		write_hidden(p, (size_t)LARGE + (size_t)i * 100, a);
		order(a, b);
		write_hidden(p, 100, b);
		OK(hipFreeAsync(p, b));
		if (i % 7 == 0)
			OK(hipStreamSynchronize(a));
		if (i % 10 == 0)
			OK(hipDeviceSynchronize());
	}
}

const struct program wrong_guarded[] = {
	{"before-start", before_start, "-|overwritten-padding hipMallocAsync before 8 3"},
	{"before-start-and-past-end", before_start_and_past_end,
	 "-|overwritten-padding hipMalloc before 1 "
	 "1;overwritten-padding hipMalloc 0 1"},
	{"before-start-of-leak", before_start_of_leak,
	 "-|overwritten-padding hipMallocAsync before 100 1;leak "
	 "hipMallocAsync 4096 1"},
	{"fill-from-before-start", fill_from_before_start, "-|out-of-bounds hipMemsetAsync 1 1"},
	{"large-past-end", large_past_end, "memory-fault hipMallocAsync past 0"},
	{"large-past-end-of-hip-malloc", large_past_end_of_hip_malloc,
	 "memory-fault hipMalloc past 4096"},
	{"large-after-hip-free", large_after_hip_free, "memory-fault hipMalloc hipFree inside"},
	{NULL, NULL, NULL},
};

const struct program right_guarded[] = {
#define P(name) {"right-" #name, name, NULL}
	P(what_pointers_are),
	P(large_until_freed),
	{NULL, NULL, NULL},
};
