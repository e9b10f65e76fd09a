/* SPDX-License-Identifier: MIT */
/* What must not leave the process as it is: addresses inside our segments. */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "shim/shim.h"

/* hipIpcOpenMemHandle opens the segment's base whatever the offset (observed on
 * 7.2.4 and 6.4.3): the wrong bytes, so only a block at the base has a handle. A
 * VMM address in there is a kernel BUG (clr#265). */
hipError_t do_hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
	struct ss_block_info info;

	if (!ptr || !ss_lookup(ss_core, ptr, &info))
		return ss_said(REAL(hipIpcGetMemHandle, handle, ptr));
	if (!info.live || info.backing == SS_BACKING_VMM || info.base != info.segment)
		return ss_fail(hipErrorInvalidValue);
	ss_seen(-1, SS_SEEN_IPC);
	return ss_said(REAL(hipIpcGetMemHandle, handle, ptr));
}

SS_EXPORT hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t size,
						 hsa_amd_ipc_memory_t *handle);

/* UCX calls this with what hsa_amd_pointer_info says, and HIP itself does. */
hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t size, hsa_amd_ipc_memory_t *handle)
{
	static _Atomic(void *) found;
	void *real = atomic_load_explicit(&found, memory_order_relaxed);
	struct ss_block_info info;

	if (atomic_load_explicit(&ss_state, memory_order_acquire) == SS_ON &&
	    ss_owns_range(ss_core, ptr, size) &&
	    (!ss_lookup(ss_core, ptr, &info) || info.backing == SS_BACKING_VMM))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!real) {
		real = ss_hsa_symbol("hsa_amd_ipc_memory_create");
		atomic_store_explicit(&found, real, memory_order_relaxed);
	}
	if (!real)
		return HSA_STATUS_ERROR_NOT_INITIALIZED;
	return ((__typeof__(hsa_amd_ipc_memory_create) *)real)(ptr, size, handle);
}
