/* SPDX-License-Identifier: MIT */
/* UMF's disjoint pool as a peer, over addresses that nobody touches: it keeps what it knows
 * elsewhere, as a pool of device memory must. */
#include <sys/mman.h>

#include <umf/memory_pool.h>
#include <umf/memory_provider.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/providers/provider_fixed_memory.h>

#include "bench/bench.h"

#define REGION (512ull << 30) /* bytes of addresses */
#define POOLABLE (2ull << 30) /* the largest block that the pool keeps: by default 2 MiB */

#define OK(call) do { \
	if ((call) != UMF_RESULT_SUCCESS) \
		die("%s failed", #call); \
} while (0)

static umf_memory_pool_handle_t pool;

void umf_start(void)
{
	umf_fixed_memory_provider_params_handle_t region;
	umf_disjoint_pool_params_handle_t params;
	umf_memory_provider_handle_t provider;
	void *at = mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			0);

	if (at == MAP_FAILED)
		die("no addresses for UMF");
	OK(umfFixedMemoryProviderParamsCreate(at, REGION, &region));
	OK(umfMemoryProviderCreate(umfFixedMemoryProviderOps(), region, &provider));
	OK(umfDisjointPoolParamsCreate(&params));
	OK(umfDisjointPoolParamsSetMaxPoolableSize(params, POOLABLE));
	OK(umfPoolCreate(umfDisjointPoolOps(), provider, params, 0, &pool));
}

void *umf_take(size_t size)
{
	void *p = umfPoolMalloc(pool, size);

	if (!p)
		die("UMF has no memory");
	return p;
}

void umf_give(void *ptr)
{
	OK(umfPoolFree(pool, ptr));
}
