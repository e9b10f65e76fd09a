/* SPDX-License-Identifier: MIT */
/* Small programs with one error each: frees, the ends of blocks, leaks. */
#include "corpus.h"

/* ---- frees ------------------------------------------------------------------- */

static void refused(hipError_t err)
{
	if (err == hipSuccess) {
		fprintf(stderr, "an invalid free succeeded\n");
		exit(2);
	}
}

static void double_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	refused(hipFreeAsync(p, a));
}

static void double_hip_free(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipFree(p));
	refused(hipFree(p));
}

static void double_free_in_both_ways(void)
{
	void *p = block(a);

	OK(hipFreeAsync(p, a));
	refused(hipFree(p));
}

static void interior_free(void)
{
	void *p = block(a);

	OK(hipFreeAsync((char *)p + 64, a)); /* HIP frees the block around it */
}

static void interior_hip_free(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipFree((char *)p + 256));
}

static void host_pointer_free(void)
{
	static char here[64];

	refused(hipFree(here));
}

static void host_free_of_device_memory(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	(void)hipHostFree(p); /* which the runtime lets do it */
}

static void host_free_of_pool_block(void)
{
	void *p = block(a);

	OK(hipStreamSynchronize(a));
	(void)hipHostFree(p);
}

static void hip_free_of_host_memory(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	(void)hipFree(host);
}

static void double_free_of_managed(void)
{
	void *p;

	OK(hipMallocManaged(&p, BYTES, hipMemAttachGlobal));
	OK(hipFree(p));
	refused(hipFree(p));
}

static void hip_free_of_freed_host_memory(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	OK(hipHostFree(host));
	refused(hipFree(host));
}

static void free_after_reset(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipDeviceReset());
	refused(hipFree(p));
}

static void leak_at_reset(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES));
	(void)block(a);
	OK(hipDeviceReset());
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	fill(block(a), a);
}

static hipMemPool_t destroyed_pool(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMemPoolDestroy(pool));
	return pool;
}

static void allocation_from_destroyed_pool(void)
{
	void *p;

	refused(hipMallocFromPoolAsync(&p, BYTES, destroyed_pool(), a));
}

static void trim_of_destroyed_pool(void)
{
	refused(hipMemPoolTrimTo(destroyed_pool(), 0));
}

static void pool_destroyed_twice(void)
{
	refused(hipMemPoolDestroy(destroyed_pool()));
}

static void destroyed_pool_made_current(void)
{
	refused(hipDeviceSetMemPool(0, destroyed_pool()));
}

/* ---- bounds -------------------------------------------------------------------- */

static void memset_past_end(void)
{
	void *p = block(a);

	refused(hipMemsetAsync(p, 1, BYTES + 1, a));
	OK(hipFreeAsync(p, a));
}

static void copy_past_end(void)
{
	void *p = block(a), *q = block(a);

	refused(hipMemcpyAsync((char *)q + 1, p, BYTES, hipMemcpyDeviceToDevice, a));
	OK(hipFreeAsync(p, a));
	OK(hipFreeAsync(q, a));
}

/* A copy that begins outside of every block is no less wrong. */
static void copy_from_before_start(void)
{
	char here[64] = {0}, *p, *q;

	OK(hipMalloc((void **)&p, BYTES));
	OK(hipMalloc((void **)&q, BYTES));
	(void)hipMemcpy((p > q ? p : q) - 8, here, 64, hipMemcpyHostToDevice);
	OK(hipFree(p));
	OK(hipFree(q));
}

static void copy_far_past_end(void)
{
	char here[64] = {0}, *p;

	OK(hipMalloc((void **)&p, BYTES));
	refused(hipMemcpy(p + BYTES + 4096, here, 64, hipMemcpyHostToDevice));
	OK(hipFree(p));
}

static void memset_far_past_end(void)
{
	char *p = block(a);

	(void)hipMemsetAsync(p + BYTES + 4096, 1, 64, b); /* which the pools let do it */
	OK(hipFreeAsync(p, a));
}

/* ---- leaks ----------------------------------------------------------------------- */

static void leak(void)
{
	(void)block(a);
}

static void leak_of_many(void)
{
	void *p;

	for (int i = 0; i < 3; i++)
		OK(hipMalloc(&p, BYTES));
}

static void leak_of_overwritten_pointer(void)
{
	void *p = block(a);

	p = block(a);
	OK(hipFreeAsync(p, a));
}

const struct program wrong_frees[] = {
	{"double-free", double_free, "double-free hipFreeAsync 1 1"},
	{"double-hip-free", double_hip_free, "double-free hipFree 0 0"},
	{"double-free-in-both-ways", double_free_in_both_ways, "double-free hipFree 0 1"},
	{"interior-free", interior_free, "interior-free hipFreeAsync 1 0"},
	{"interior-hip-free", interior_hip_free, "interior-free hipFree 0 0"},
	{"host-pointer-free", host_pointer_free, "invalid-free hipFree 0 0"},
	{"host-free-of-device-memory", host_free_of_device_memory,
	 "wrong-family-free hipHostFree 0 0"},
	{"host-free-of-pool-block", host_free_of_pool_block, "wrong-family-free hipHostFree 0 0"},
	{"hip-free-of-host-memory", hip_free_of_host_memory, "wrong-family-free hipFree 0 0"},
	{"double-free-of-managed", double_free_of_managed, "double-free hipFree 0 0"},
	{"hip-free-of-freed-host-memory", hip_free_of_freed_host_memory, "double-free hipFree 0 0"},
	{"free-after-reset", free_after_reset, "double-free hipFree 0 0;leak hipMalloc 4096 1"},
	{"leak-at-reset", leak_at_reset,
	 "leak hipMalloc 4096 1;leak hipMallocAsync 4096 1;leak hipMallocAsync 4096 1"},
	{"allocation-from-destroyed-pool", allocation_from_destroyed_pool,
	 "destroyed-pool hipMallocFromPoolAsync 0 0"},
	{"trim-of-destroyed-pool", trim_of_destroyed_pool, "destroyed-pool hipMemPoolTrimTo 0 0"},
	{"pool-destroyed-twice", pool_destroyed_twice, "destroyed-pool hipMemPoolDestroy 0 0"},
	{"destroyed-pool-made-current", destroyed_pool_made_current,
	 "destroyed-pool hipDeviceSetMemPool 0 0"},
	{"memset-past-end", memset_past_end, "out-of-bounds hipMemsetAsync 1 1"},
	{"copy-past-end", copy_past_end, "out-of-bounds hipMemcpyAsync 1 1"},
	{"copy-from-before-start", copy_from_before_start, "out-of-bounds hipMemcpy 4 0"},
	{"copy-far-past-end", copy_far_past_end,
	 "out-of-bounds hipMemcpy 4 0|memory-fault hipMalloc past 4096"},
	{"memset-far-past-end", memset_far_past_end, "out-of-bounds hipMemsetAsync 2 1|-"},
	{"leak", leak, "leak hipMallocAsync 4096 1"},
	{"leak-of-many", leak_of_many, "leak hipMalloc 12288 3"},
	{"leak-of-overwritten-pointer", leak_of_overwritten_pointer, "leak hipMallocAsync 4096 1"},
	{NULL, NULL, NULL},
};
