/* SPDX-License-Identifier: MIT */
/* The hsa_amd_vmem_* calls. */
#include <errno.h>

#include "device/macros.h"
#include "device/options.h"
#include "device/physical.h"
#include "device/virtual_memory.h"
#include "hsa/agent.h"
#include "hsa/entry_points.h"
#include "hsa/memory_pool.h"

static hsa_status_t status(int e)
{
	return !e           ? HSA_STATUS_SUCCESS :
	       e == -ENOMEM ? HSA_STATUS_ERROR_OUT_OF_RESOURCES :
			      HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

static struct sim_phys *phys(hsa_vmem_handle_t h)
{
	return (struct sim_phys *)(uintptr_t)h.handle;
}

hsa_status_t i_hsa_amd_vmem_address_reserve_align(void **va, size_t size, uint64_t address,
						  uint64_t alignment, uint64_t flags)
{
	if (!va || !size || size % SIM_PAGE || (alignment & (alignment - 1)))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (sim_opt.quirk[SIM_Q_NO_VMM])
		return HSA_STATUS_ERROR;
	return status(sim_vmm_reserve(va, size, alignment, (void *)(uintptr_t)address));
}

hsa_status_t i_hsa_amd_vmem_address_reserve(void **va, size_t size, uint64_t address,
					    uint64_t flags)
{
	return i_hsa_amd_vmem_address_reserve_align(va, size, address, 0, flags);
}

hsa_status_t i_hsa_amd_vmem_address_free(void *va, size_t size)
{
	return status(sim_vmm_unreserve(va, size));
}

hsa_status_t i_hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, int type,
					  uint64_t flags, hsa_vmem_handle_t *handle)
{
	int device;
	struct sim_phys *h;

	if (!handle || !size || size % SIM_PAGE)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	device = hsa_pool_device(pool);
	if (device < 0)
		return (hsa_status_t)HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
	h = sim_phys_create(device, size, true);
	if (!h)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	handle->handle = (uint64_t)(uintptr_t)h;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_vmem_handle_release(hsa_vmem_handle_t handle)
{
	return sim_phys_release(phys(handle)) ? HSA_STATUS_SUCCESS :
						HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

hsa_status_t i_hsa_amd_vmem_map(void *va, size_t size, size_t offset, hsa_vmem_handle_t handle,
				uint64_t flags)
{
	/* The real runtime ignores the offset. */
	if (sim_opt.quirk[SIM_Q_MAP_FAILS])
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	return status(sim_vmm_map(va, size, phys(handle), false));
}

hsa_status_t i_hsa_amd_vmem_unmap(void *va, size_t size)
{
	return status(sim_vmm_unmap(va, size, true));
}

hsa_status_t i_hsa_amd_vmem_set_access(void *va, size_t size, const hsa_access_desc_t *desc,
				       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int dev = hsa_agent_device(desc[i].agent_handle);
		int e;

		if (dev < -1)
			return HSA_STATUS_ERROR_INVALID_AGENT;
		e = sim_vmm_access(va, size, dev, desc[i].permissions ? 3 : 0);
		if (e)
			return status(e);
	}
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_vmem_get_access(void *va, int *perms, hsa_agent_t agent)
{
	int dev = hsa_agent_device(agent);

	if (dev < 0)
		return HSA_STATUS_ERROR_INVALID_AGENT;
	return status(sim_vmm_get_access(va, dev, perms));
}

hsa_status_t i_hsa_amd_vmem_export_shareable_handle(int *fd, hsa_vmem_handle_t handle,
						    uint64_t flags)
{
	int n = sim_phys_export(phys(handle));

	if (n < 0)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*fd = n;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_vmem_import_shareable_handle(int fd, hsa_vmem_handle_t *handle)
{
	struct sim_phys *h = sim_phys_import(fd);

	if (!h)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	handle->handle = (uint64_t)(uintptr_t)h;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_vmem_retain_alloc_handle(hsa_vmem_handle_t *handle, void *addr)
{
	struct sim_phys *h = sim_phys_at(addr);

	if (!h || !sim_phys_retain(h))
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	handle->handle = (uint64_t)(uintptr_t)h;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_vmem_get_alloc_properties_from_handle(hsa_vmem_handle_t handle,
							     hsa_amd_memory_pool_t *pool, int *type)
{
	int device;
	size_t size;
	bool exportable;

	if (!sim_phys_info(phys(handle), &device, &size, &exportable))
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	pool->handle = sim_pool_handle(device, false);
	*type = 1;
	return HSA_STATUS_SUCCESS;
}
