/* SPDX-License-Identifier: MIT */
/* Virtual memory management by HIP, as each release does it. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "device/device_queues.h"
#include "device/macros.h"
#include "device/options.h"
#include "device/physical.h"
#include "device/queue.h"
#include "device/virtual_memory.h"
#include "hip/entry_points.h"
#include "hip/reentry.h"
#include "hip/thread_state.h"
#include "hip/virtual_memory.h"
#include "hip/version.h"

/* hipMemAllocationProp since 5.7; its members had another order in 5.2. */
struct prop57 {
	int type, handle;
	hipMemLocation location;
	void *win32;
	unsigned char flags[8];
};

static void read_prop(const hipMemAllocationProp *p, int *type, int *handle, hipMemLocation *at)
{
	const struct prop57 *n = (const void *)p;

	if (V52) {
		*type = (int)p->type;
		*handle = (int)p->requestedHandleType;
		*at = p->location;
		return;
	}
	*type = n->type;
	*handle = n->handle;
	*at = n->location;
}

static bool no_vmm(void)
{
	return !V6 || sim_opt.quirk[SIM_Q_NO_VMM];
}

hipError_t i_hipMemGetAllocationGranularity(size_t *g, const hipMemAllocationProp *prop,
					    hipMemAllocationGranularity_flags option)
{
	int type, handle;
	hipMemLocation at;

	if (!g || !prop)
		return hipErrorInvalidValue;
	read_prop(prop, &type, &handle, &at);
	if (type != hipMemAllocationTypePinned || at.type != hipMemLocationTypeDevice ||
	    check_device(at.id))
		return hipErrorInvalidValue;
	*g = sim_opt.quirk[SIM_Q_GRANULARITY_2M] ? SIM_HUGE_PAGE : SIM_PAGE;
	return hipSuccess;
}

hipError_t i_hipMemAddressReserve(void **out, size_t size, size_t align, void *hint,
				  unsigned long long flags)
{
	if (!out || flags || (align & (align - 1)))
		return hipErrorInvalidValue;
	if (no_vmm()) {
		/* Before 6.1 the call succeeds and reserves nothing. 5.2 does not even write
		 * *out. */
		if (!V52)
			*out = NULL;
		return V6 ? hipErrorNotSupported : hipSuccess;
	}
	if (!size || size % SIM_PAGE)
		return V7 ? hipErrorInvalidValue : hipErrorOutOfMemory;
	return sim_vmm_reserve(out, size, align, hint) ? hipErrorOutOfMemory : hipSuccess;
}

hipError_t i_hipMemAddressFree(void *ptr, size_t size)
{
	if (no_vmm())
		return V6 ? hipErrorNotSupported : hipSuccess;
	if (!ptr || !size)
		return hipErrorInvalidValue;
	return sim_vmm_unreserve(ptr, size) ? hipErrorInvalidValue : hipSuccess;
}

hipError_t i_hipMemCreate(hipMemGenericAllocationHandle_t *out, size_t size,
			  const hipMemAllocationProp *prop, unsigned long long flags)
{
	int type, handle;
	hipMemLocation at;
	struct sim_phys *h;

	if (!out || !prop || flags || !size || size % 2048)
		return hipErrorInvalidValue;
	read_prop(prop, &type, &handle, &at);
	if (type != hipMemAllocationTypePinned || at.type != hipMemLocationTypeDevice ||
	    check_device(at.id))
		return hipErrorInvalidValue;
	if (V6 && !V7 && size > (size_t)sysconf(_SC_PHYS_PAGES) * SIM_PAGE)
		return hipErrorOutOfMemory;
	if (sim_opt.quirk[SIM_Q_GRANULARITY_2M] && size % SIM_HUGE_PAGE)
		return hipErrorInvalidValue;
	h = sim_phys_create(at.id, SIM_ALIGN(size, SIM_PAGE),
			    handle == hipMemHandleTypePosixFileDescriptor);
	if (!h) {
		reenter_mem_get_info();
		return hipErrorOutOfMemory;
	}
	*out = (hipMemGenericAllocationHandle_t)h;
	return hipSuccess;
}

hipError_t i_hipMemRelease(hipMemGenericAllocationHandle_t h)
{
	return h && sim_phys_release((struct sim_phys *)h) ? hipSuccess : hipErrorInvalidValue;
}

/* Up to 7.13 map and unmap are commands of the null stream that the host waits for. */
static void join_blocking(void)
{
	struct sim_queue *q = sim_null_queue(current_device());

	sim_queue_drain(q);
	sim_queue_unref(q);
}

/* Since 7.14 an unmap waits for every stream of the devices that can reach the range. */
static void wait_for_users(void *ptr)
{
	int prot;

	for (int d = 0; d < sim_opt.devices; d++)
		if (!sim_vmm_get_access(ptr, d, &prot) && prot)
			sim_device_drain(d);
}

/* Maps and unmaps so far */
static atomic_ullong maps;

unsigned long long virtual_memory_maps(void)
{
	return atomic_load(&maps);
}

hipError_t i_hipMemMap(void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t h,
		       unsigned long long flags)
{
	if (no_vmm())
		return V6 ? hipErrorNotSupported : hipSuccess;
	if (!ptr || !size || !h || offset || flags)
		return hipErrorInvalidValue;
	if (!V7_14)
		join_blocking();
	atomic_fetch_add(&maps, 1);
	if (sim_opt.quirk[SIM_Q_MAP_FAILS])
		return V7 ? hipErrorUnknown : hipSuccess;
	return sim_vmm_map(ptr, size, (struct sim_phys *)h, true) ? hipErrorInvalidValue :
								    hipSuccess;
}

hipError_t i_hipMemUnmap(void *ptr, size_t size)
{
	if (no_vmm())
		return V6 ? hipErrorNotSupported : hipSuccess;
	if (!ptr || !size)
		return hipErrorInvalidValue;
	if (V7_14)
		wait_for_users(ptr);
	else
		join_blocking();
	atomic_fetch_add(&maps, 1);
	/* 6.4 unmaps only the first handle of a range. */
	return sim_vmm_unmap(ptr, size, V7) ? hipErrorInvalidValue : hipSuccess;
}

hipError_t i_hipMemSetAccess(void *ptr, size_t size, const hipMemAccessDesc *desc, size_t n)
{
	if (no_vmm())
		return V6 ? hipErrorNotSupported : hipSuccess;
	if (!ptr || !size || !desc || !n)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < n; i++) {
		bool host = (int)desc[i].location.type > hipMemLocationTypeDevice;

		if (!host && (desc[i].location.type != hipMemLocationTypeDevice ||
			      check_device(desc[i].location.id)))
			return hipErrorInvalidValue;
		if (sim_vmm_access(ptr, size, host ? -1 : desc[i].location.id, (int)desc[i].flags))
			return hipErrorInvalidValue;
	}
	return hipSuccess;
}

hipError_t i_hipMemGetAccess(unsigned long long *flags, const hipMemLocation *at, void *ptr)
{
	int prot;

	if (!flags || !at || !ptr || at->type != hipMemLocationTypeDevice || check_device(at->id))
		return hipErrorInvalidValue;
	if (sim_vmm_get_access(ptr, at->id, &prot))
		return hipErrorInvalidValue;
	*flags = (unsigned long long)prot;
	return hipSuccess;
}

hipError_t i_hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *out, void *addr)
{
	struct sim_phys *h;

	if (!out || !addr)
		return hipErrorInvalidValue;
	h = sim_phys_at(addr);
	/* 6.4 does not count a reference here. */
	if (!h || (V7 && !sim_phys_retain(h)))
		return hipErrorInvalidValue;
	*out = (hipMemGenericAllocationHandle_t)h;
	return hipSuccess;
}

hipError_t i_hipMemExportToShareableHandle(void *out, hipMemGenericAllocationHandle_t h,
					   hipMemAllocationHandleType type,
					   unsigned long long flags)
{
	int fd;

	if (!out || !h || flags || type != hipMemHandleTypePosixFileDescriptor)
		return hipErrorInvalidValue;
	fd = sim_phys_export((struct sim_phys *)h);
	if (fd < 0)
		return hipErrorInvalidValue;
	*(int *)out = fd;
	return hipSuccess;
}

hipError_t i_hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *out, void *handle,
					     hipMemAllocationHandleType type)
{
	struct sim_phys *h;

	if (!out || !handle || type != hipMemHandleTypePosixFileDescriptor)
		return hipErrorInvalidValue;
	h = sim_phys_import((uintptr_t)handle < 65536 ? (int)(uintptr_t)handle : *(int *)handle);
	if (!h)
		return hipErrorInvalidValue;
	*out = (hipMemGenericAllocationHandle_t)h;
	return hipSuccess;
}
