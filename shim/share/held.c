/* SPDX-License-Identifier: MIT */
/*
 * Calls by which others get hold of memory that is mapped: descriptors and handles of HSA, and the
 * handle of a mapping. Other processes and network cards then go on writing to it whatever
 * this process unmaps, so it never sleeps from then on (core/sleep.h). The memory is
 * marked before the call, so it is awake meanwhile; a call that fails leaves the mark.
 *
 * A handle of ours that is passed to hipMemExportToShareableHandle, or to
 * hsa_amd_vmem_export_shareable_handle, came from a call here. Handles of hipIpcGetMemHandle and
 * hipMemGetHandleForAddressRange are for whole segments (export.c), which never sleep.
 *
 * Locks: none of its own.
 */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "core/sleep.h"
#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

/* Prototypes for what the headers of some releases lack. */
SS_EXPORT hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t size,
						 hsa_amd_ipc_memory_t *handle);
SS_EXPORT hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd,
						      uint64_t *offset);
SS_EXPORT hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd,
							 uint64_t *offset, uint64_t flags);
/* Under a name of ours, because newer headers declare it with a type that older ones lack. */
SS_EXPORT hsa_status_t retain_alloc_handle(void *handle,
					   void *ptr) __asm__("hsa_amd_vmem_retain_alloc_handle");

static void *find(_Atomic(void *) *found, const char *name)
{
	void *real = atomic_load_explicit(found, memory_order_relaxed);

	if (!real) {
		real = ss_hsa_symbol(name);
		atomic_store_explicit(found, real, memory_order_relaxed);
	}
	return real;
}

/* The real call, or the error of a runtime that lacks it. */
#define HSA_REAL_AS(function, name, ...) __extension__({ \
	static _Atomic(void *) found_; \
	void *real_ = find(&found_, name); \
	real_ ? ((__typeof__(function) *)real_)(__VA_ARGS__) : HSA_STATUS_ERROR_NOT_INITIALIZED; })
#define HSA_REAL(name, ...) HSA_REAL_AS(name, #name, __VA_ARGS__)

/* A call of the runtime's own, on behalf of one that the program made, was seen already. */
static void stays(const void *ptr, size_t size, const char *by)
{
	SS_UNCANCELLED;

	if (ptr && !ss_tls.depth && atomic_load_explicit(&ss_state, memory_order_acquire) == SS_ON)
		(void)ss_core_stays(ss_core, ptr, size, by);
}

hipError_t do_hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *ptr)
{
	stays(ptr, 1, "hipMemRetainAllocationHandle");
	return ss_result(REAL(hipMemRetainAllocationHandle, handle, ptr));
}

hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	stays(ptr, size, "hsa_amd_portable_export_dmabuf");
	return HSA_REAL(hsa_amd_portable_export_dmabuf, ptr, size, fd, offset);
}

hsa_status_t hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd,
					       uint64_t *offset, uint64_t flags)
{
	stays(ptr, size, "hsa_amd_portable_export_dmabuf_v2");
	return HSA_REAL(hsa_amd_portable_export_dmabuf_v2, ptr, size, fd, offset, flags);
}

hsa_status_t retain_alloc_handle(void *handle, void *ptr)
{
	stays(ptr, 1, "hsa_amd_vmem_retain_alloc_handle");
	return HSA_REAL_AS(retain_alloc_handle, "hsa_amd_vmem_retain_alloc_handle", handle, ptr);
}

/* UCX calls this with the base that hsa_amd_pointer_info reports, and so does HIP. With an address
 * of virtual memory management this call runs into a kernel BUG (clr#265). So the shim refuses a
 * range of ours that is virtual memory, or may be. */
hsa_status_t hsa_amd_ipc_memory_create(void *ptr, size_t size, hsa_amd_ipc_memory_t *handle)
{
	int state = atomic_load_explicit(&ss_state, memory_order_acquire);
	struct ss_block_info info;

	/* In a forked child the core's locks may be held, so a child shares no memory of ours. */
	if (state != SS_UNKNOWN && ss_core && ss_owns_range(ss_core, ptr, size) &&
	    (state == SS_OFF || !ss_lookup(ss_core, ptr, &info) || info.backing == SS_BACKING_VMM))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return HSA_REAL(hsa_amd_ipc_memory_create, ptr, size, handle);
}
