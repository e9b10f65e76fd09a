/* SPDX-License-Identifier: MIT */
/* Facts about a pointer, the agents that may use it, and locked host memory. */
#include <string.h>

#include "device/address_map.h"
#include "device/options.h"
#include "device/virtual_memory.h"
#include "hsa/agent.h"
#include "hsa/entry_points.h"

/* As in the runtime, an agent that is not in the list loses its access. */
static void set_access(struct sim_alloc *a, void *arg)
{
	a->access = *(uint32_t *)arg;
	if (a->device >= 0)
		a->access |= 1u << a->device;
}

hsa_status_t i_hsa_amd_agents_allow_access(uint32_t n, const hsa_agent_t *list,
					   const uint32_t *flags, const void *ptr)
{
	uint32_t mask = 0;

	if (!n || !list || flags || !ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < n; i++) {
		int dev = hsa_agent_device(list[i]);

		if (dev < -1)
			return HSA_STATUS_ERROR_INVALID_AGENT;
		if (dev >= 0)
			mask |= 1u << dev;
	}
	return sim_update(ptr, set_access, &mask) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_pointer_info(const void *ptr, hsa_amd_pointer_info_t *info,
				    void *(*alloc)(size_t), uint32_t *n, hsa_agent_t **accessible)
{
	static const int types[] = {
		[SIM_DEVICE] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_HOST] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_LOCKED] = HSA_EXT_POINTER_TYPE_LOCKED,
		[SIM_MANAGED] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_SIGNAL] = HSA_EXT_POINTER_TYPE_HSA,
		[SIM_IMPORT] = HSA_EXT_POINTER_TYPE_IPC,
		[SIM_MAPPED] = 6,
	};
	hsa_amd_pointer_info_t r = {.size = sizeof r, .type = HSA_EXT_POINTER_TYPE_UNKNOWN};
	struct sim_alloc a;
	uint32_t size;
	bool found;

	if (!ptr || !info)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	found = sim_find(ptr, &a);
	if (found) {
		r.type = (hsa_amd_pointer_type_t)types[a.kind];
		r.agentBaseAddress = (void *)a.r.base;
		r.hostBaseAddress = a.alias ? a.alias : (void *)a.r.base;
		r.sizeInBytes = a.kind == SIM_LOCKED ? a.size : a.r.size;
		r.userData = a.userdata;
		r.agentOwner = hsa_device_agent(a.kind == SIM_DEVICE || a.kind == SIM_IMPORT ||
								a.kind == SIM_MAPPED ?
							a.device :
							-1);
		r.global_flags = a.kind == SIM_DEVICE && !a.flags ?
					 HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED :
					 HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
	} else if (sim_vmm_reserved(ptr)) {
		r.type = (hsa_amd_pointer_type_t)5;
	}
	size = info->size < sizeof r && info->size ? info->size : (uint32_t)sizeof r;
	memcpy(info, &r, size);
	info->size = size;
	if (n && accessible && alloc) {
		int count = 0;
		hsa_agent_t *list = alloc((size_t)(sim_opt.devices + 1) * sizeof *list);

		if (!list)
			return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
		for (int i = 0; found && i < sim_opt.devices; i++)
			if (a.access & 1u << i)
				list[count++] = hsa_device_agent(i);
		*n = (uint32_t)count;
		*accessible = list;
	}
	return HSA_STATUS_SUCCESS;
}

static void set_userdata(struct sim_alloc *a, void *arg)
{
	a->userdata = arg;
}

hsa_status_t i_hsa_amd_pointer_info_set_userdata(const void *ptr, void *userdata)
{
	if (!ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return sim_update(ptr, set_userdata, userdata) ? HSA_STATUS_SUCCESS :
							 HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_amd_memory_lock(void *host, size_t size, hsa_agent_t *agents, int n,
				   void **agent_ptr)
{
	struct sim_alloc a = {.kind = SIM_LOCKED, .device = -1, .access = ~0u, .slot = -1};

	if (!host || !size || !agent_ptr)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	a.r.base = (uintptr_t)host;
	a.r.size = a.size = size;
	a.id = sim_next_id();
	a.alias = host;
	*agent_ptr = NULL;
	if (!sim_map_add(&a))
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*agent_ptr = host;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_memory_lock_to_pool(void *host, size_t size, hsa_agent_t *agents, int n,
					   hsa_amd_memory_pool_t pool, uint32_t flags,
					   void **agent_ptr)
{
	return i_hsa_amd_memory_lock(host, size, agents, n, agent_ptr);
}

hsa_status_t i_hsa_amd_memory_unlock(void *host)
{
	struct sim_alloc a;

	if (!sim_find(host, &a) || a.kind != SIM_LOCKED)
		return HSA_STATUS_SUCCESS;
	sim_map_remove(host, &a);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_memory_register(void *ptr, size_t size)
{
	void *p;

	return i_hsa_amd_memory_lock(ptr, size, NULL, 0, &p);
}

hsa_status_t i_hsa_memory_deregister(void *ptr, size_t size)
{
	return i_hsa_amd_memory_unlock(ptr);
}

hsa_status_t i_hsa_memory_assign_agent(void *ptr, hsa_agent_t agent, hsa_access_permission_t access)
{
	return ptr ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
