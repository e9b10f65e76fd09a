/* SPDX-License-Identifier: MIT */
/*
 * Pools that frameworks have above HIP. Such a pool takes its segments from HIP, so a recording
 * does not show the owners of the tensors and arrays inside. Functions in the call stack identify
 * the pool.
 */
#include <string.h>

#include "cli/report/report.h"

static const struct pool {
	const char *function;   /* part of a name */
	const char *name, *how; /* to see what is inside */
} pools[] = {
	{"DeviceCachingAllocator", "PyTorch's caching allocator",
	 "somashim record --framework pytorch"},
	{"BFCAllocator", "the arena of JAX or TensorFlow", "somashim record --framework jax"},
	{"SingleDeviceMemoryPool", "CuPy's memory pool", "cupy.cuda.set_allocator(None)"},
	{"pool_memory_resource", "RMM's pool", "rmm.mr.CudaAsyncMemoryResource()"},
	{"arena_memory_resource", "RMM's arena", "rmm.mr.CudaAsyncMemoryResource()"},
	{"amrex::CArena", "AMReX's arena", "the argument amrex.the_arena_init_size=0"},
	{"umpire::strategy::QuickPool", "Umpire's pool", "the resource \"DEVICE\" without a pool"},
	{"umpire::strategy::DynamicPool", "Umpire's pool",
	 "the resource \"DEVICE\" without a pool"},
};

#define POOLS (sizeof(pools) / sizeof(pools[0]))

/* The pool in the stack of a call site; POOLS: none. */
static size_t pool_of(const struct ss_sites *s, uint32_t site)
{
	const struct ss_site *at = &s->site[site];

	for (uint32_t i = 0; i < at->frames; i++)
		for (size_t k = 0; k < POOLS; k++)
			if (strstr(s->frame[at->frame[i]].function, pools[k].function))
				return k;
	return POOLS;
}

const char *ss_report_pool_above(const struct ss_sites *s, const struct ss_snapshot *p,
				 const char **how)
{
	/* Of groups, the call sites of the blocks are not known. */
	if (s->by != SS_BY_SITE)
		return NULL;
	for (size_t k = 0; k < POOLS; k++) {
		uint64_t held = 0;

		for (size_t i = 0; i < p->holders; i++)
			if (pool_of(s, p->holder[i].site) == k)
				held += p->holder[i].bytes;
		if (held > p->level.used / 2) {
			*how = pools[k].how;
			return pools[k].name;
		}
	}
	return NULL;
}
