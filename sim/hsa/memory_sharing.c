/* SPDX-License-Identifier: MIT */
/* Memory that other processes may map: IPC handles and dmabuf descriptors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/arena.h"
#include "device/ipc.h"
#include "device/options.h"
#include "hsa/entry_points.h"

_Static_assert(sizeof(struct sim_ipc_handle) == sizeof(hsa_amd_ipc_memory_t),
	       "a handle fills hsa_amd_ipc_memory_t");

hsa_status_t i_hsa_amd_ipc_memory_create(void *ptr, size_t len, hsa_amd_ipc_memory_t *handle)
{
	struct sim_alloc a;

	if (!ptr || !handle || !sim_find(ptr, &a))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (a.kind == SIM_MAPPED && sim_opt.quirk[SIM_Q_IPC_VMM]) {
		/* On a real machine this is a kernel BUG and the memory is lost, so it must not
		 * pass unseen. */
		fprintf(stderr, "somasim: VMM address %p reached hsa_amd_ipc_memory_create\n", ptr);
		abort();
	}
	if (a.kind != SIM_DEVICE || a.r.base != (uintptr_t)ptr ||
	    (len != a.r.size && len != a.size))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return sim_ipc_export(&a, (struct sim_ipc_handle *)handle) ?
		       HSA_STATUS_ERROR_OUT_OF_RESOURCES :
		       HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_ipc_memory_attach(const hsa_amd_ipc_memory_t *handle, size_t len, uint32_t n,
					 const hsa_agent_t *list, void **ptr)
{
	void *p;

	if (!handle || !ptr || !len)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	p = sim_ipc_import((const struct sim_ipc_handle *)handle, len, 0, false);
	if (!p)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*ptr = p;
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_ipc_memory_detach(void *ptr)
{
	return sim_ipc_close(ptr, false) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

hsa_status_t i_hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd,
					      uint64_t *offset)
{
	struct sim_alloc a;

	if (!ptr || !fd || !offset || !size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sim_find(ptr, &a) || a.kind != SIM_DEVICE)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	if ((uintptr_t)ptr + size > a.r.base + a.r.size)
		return HSA_STATUS_ERROR_INVALID_ALLOCATION;
	*fd = fcntl(sim_devices[a.device].fd, F_DUPFD_CLOEXEC, 3);
	*offset = (uintptr_t)ptr - (uintptr_t)sim_devices[a.device].arena;
	return *fd < 0 ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd,
						 uint64_t *offset, uint64_t flags)
{
	return i_hsa_amd_portable_export_dmabuf(ptr, size, fd, offset);
}

hsa_status_t i_hsa_amd_portable_close_dmabuf(int fd)
{
	return close(fd) ? HSA_STATUS_ERROR_INVALID_ARGUMENT : HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_interop_map_buffer(uint32_t n, hsa_agent_t *list, int fd, uint32_t flags,
					  size_t *size, void **ptr, size_t *metasize,
					  const void **meta)
{
	return HSA_STATUS_ERROR;
}

hsa_status_t i_hsa_amd_interop_unmap_buffer(void *ptr)
{
	return HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
