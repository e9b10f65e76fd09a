/* SPDX-License-Identifier: MIT */
/* Memory pools and regions, and allocation from them. */
#include <unistd.h>

#include "device/arena.h"
#include "device/options.h"
#include "hsa/agent.h"
#include "hsa/entry_points.h"
#include "hsa/memory_pool.h"

/* The handle of a pool is an address in here, by agent (the CPU comes first) and kind. */
enum { P_COARSE, P_FINE, P_GROUP, P_KINDS };
static int pools[SIM_MAX_DEVICES + 1][P_KINDS];

static hsa_amd_memory_pool_t pool_of(int device, int kind)
{
	return (hsa_amd_memory_pool_t){(uint64_t)(uintptr_t)&pools[device + 1][kind]};
}

static bool pool_split(hsa_amd_memory_pool_t pool, int *device, int *kind)
{
	int *p = (int *)(uintptr_t)pool.handle;
	int *first = &pools[0][0];

	if (p < first || p >= first + (sim_opt.devices + 1) * P_KINDS)
		return false;
	*device = (int)(p - first) / P_KINDS - 1;
	*kind = (int)(p - first) % P_KINDS;
	return true;
}

int hsa_pool_device(hsa_amd_memory_pool_t pool)
{
	int dev, kind;

	return pool_split(pool, &dev, &kind) ? dev : -2;
}

uint64_t sim_pool_handle(int device, bool fine)
{
	return pool_of(device, fine ? P_FINE : P_COARSE).handle;
}

hsa_status_t i_hsa_agent_iterate_regions(hsa_agent_t agent,
					 hsa_status_t (*callback)(hsa_region_t region, void *data),
					 void *data)
{
	int dev = hsa_agent_device(agent);

	if (dev < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	return callback((hsa_region_t){pool_of(dev, P_COARSE).handle}, data);
}

hsa_status_t i_hsa_region_get_info(hsa_region_t region, hsa_region_info_t attribute, void *value)
{
	hsa_amd_memory_pool_t p = {region.handle};

	switch ((int)attribute) {
	case HSA_REGION_INFO_SEGMENT:
		*(hsa_region_segment_t *)value = HSA_REGION_SEGMENT_GLOBAL;
		return HSA_STATUS_SUCCESS;
	case HSA_REGION_INFO_GLOBAL_FLAGS:
		return i_hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
						      value);
	case HSA_REGION_INFO_SIZE:
	case HSA_REGION_INFO_ALLOC_MAX_SIZE:
		return i_hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SIZE, value);
	case HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED:
		*(bool *)value = true;
		return HSA_STATUS_SUCCESS;
	case HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE:
	case HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT:
		*(size_t *)value = SIM_PAGE;
		return HSA_STATUS_SUCCESS;
	}
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool,
					    hsa_amd_memory_pool_info_t attribute, void *value)
{
	int dev, kind;

	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	if (!value)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	switch ((int)attribute) {
	case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
		*(hsa_amd_segment_t *)value = kind == P_GROUP ? HSA_AMD_SEGMENT_GROUP :
								HSA_AMD_SEGMENT_GLOBAL;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
		*(uint32_t *)value =
			kind == P_COARSE ?
				HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED :
			kind == P_FINE ?
				HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED |
					(dev < 0 ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT :
						   0) :
				0;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_SIZE:
	case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
		*(size_t *)value = kind == P_GROUP ? 65536 :
				   dev < 0         ? (size_t)sysconf(_SC_PHYS_PAGES) * SIM_PAGE :
						     (size_t)sim_opt.vram;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
		*(bool *)value = kind != P_GROUP;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
		*(size_t *)value = kind == P_GROUP ? 0 : SIM_PAGE;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
		*(size_t *)value = kind == P_GROUP ? 0 : SIM_PAGE;
		break;
	case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL: *(bool *)value = dev < 0; break;
	case 17: *(int *)value = dev < 0 ? 1 : 2; break;  /* LOCATION */
	case 18: *(size_t *)value = SIM_HUGE_PAGE; break; /* RUNTIME_ALLOC_REC_GRANULE */
	default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_agent_iterate_memory_pools(
	hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t pool, void *data),
	void *data)
{
	int dev = hsa_agent_device(agent);

	if (dev < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	if (!callback)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (int k = 0; k < P_KINDS; k++) {
		hsa_status_t s;

		if (dev < 0 && k == P_GROUP)
			continue;
		s = callback(pool_of(dev, k), data);
		if (s != HSA_STATUS_SUCCESS)
			return s;
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags,
					    void **ptr)
{
	int dev, kind;
	void *p;

	if (!ptr || !size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	if (kind == P_GROUP)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	p = dev < 0 ? sim_host_alloc(size, 0, SIM_HOST, -1) :
		      sim_device_alloc(dev, size, kind == P_FINE);
	if (!p)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*ptr = p;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_pool_free(void *ptr)
{
	if (!ptr)
		return HSA_STATUS_SUCCESS;
	return sim_free(ptr, false) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t i_hsa_memory_allocate(hsa_region_t region, size_t size, void **ptr)
{
	return i_hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){region.handle}, size, 0, ptr);
}

hsa_status_t i_hsa_memory_free(void *ptr)
{
	return i_hsa_amd_memory_pool_free(ptr);
}

hsa_status_t i_hsa_amd_memory_pool_can_migrate(hsa_amd_memory_pool_t src, hsa_amd_memory_pool_t dst,
					       _Bool *result)
{
	*result = false;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
						  hsa_amd_agent_memory_pool_info_t attribute,
						  void *value)
{
	int dev, kind, who = hsa_agent_device(agent);

	if (who < -1)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	if (!pool_split(pool, &dev, &kind))
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	switch ((int)attribute) {
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
		*(hsa_amd_memory_pool_access_t *)value =
			who == dev || dev < 0 ? HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT :
						HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT;
		return HSA_STATUS_SUCCESS;
	case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS:
		*(uint32_t *)value = who == dev ? 0 : 1;
		return HSA_STATUS_SUCCESS;
	}
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
