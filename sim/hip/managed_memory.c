/* SPDX-License-Identifier: MIT */
/* Managed memory: host pages that the devices may touch. */
#include <string.h>

#include "device/arena.h"
#include "device/command.h"
#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/submit.h"
#include "hip/thread_state.h"

hipError_t i_hipMallocManaged(void **ptr, size_t size, unsigned flags)
{
	void *p;

	if (!ptr || !size || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
		return hipErrorInvalidValue;
	p = sim_host_alloc(size, flags, SIM_MANAGED, current_device());
	if (!p)
		return hipErrorOutOfMemory;
	hip_adopt(p, size, flags, ~0u);
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipMemPrefetchAsync(const void *p, size_t n, int device, hipStream_t h)
{
	if (!p || !n)
		return hipErrorInvalidValue;
	if (device != hipCpuDeviceId && (device < 0 || device >= sim_opt.devices))
		return hipErrorInvalidDevice;
	return submit(h, sim_marker(), false);
}

hipError_t i_hipMemAdvise(const void *p, size_t n, hipMemoryAdvise advice, int device)
{
	return p && n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t i_hipMemRangeGetAttribute(void *data, size_t size, hipMemRangeAttribute attribute,
				     const void *p, size_t n)
{
	if (!data || !size || !p || !n)
		return hipErrorInvalidValue;
	memset(data, 0, size);
	if (attribute == hipMemRangeAttributePreferredLocation ||
	    attribute == hipMemRangeAttributeLastPrefetchLocation)
		*(int *)data = hipInvalidDeviceId;
	return hipSuccess;
}
