/* SPDX-License-Identifier: MIT */
/* Host memory that devices may touch: pinned and registered. */
#include "device/arena.h"
#include "device/device_queues.h"
#include "device/options.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/memory.h"
#include "hip/reentry.h"
#include "hip/thread_state.h"
#include "hip/version.h"

hipError_t i_hipHostMalloc(void **ptr, size_t size, unsigned flags)
{
	const unsigned coherent = hipHostMallocCoherent, non = hipHostMallocNonCoherent;
	hipError_t e = guard_unsafe();
	void *p;

	if (e)
		return e;
	if (!ptr || ((flags & coherent) && (flags & non)))
		return hipErrorInvalidValue;
	if (!size) {
		*ptr = NULL;
		return hipSuccess;
	}
	if (sim_opt.quirk[SIM_Q_PINNED_WAITS])
		sim_device_finish(current_device());
	p = sim_host_alloc(size, flags, SIM_HOST, current_device());
	if (!p)
		return hipErrorOutOfMemory;
	hip_adopt(p, size, flags, ~0u);
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipHostAlloc(void **ptr, size_t size, unsigned flags)
{
	return i_hipHostMalloc(ptr, size, flags);
}

/* 5.x calls its own export here. */
hipError_t i_hipMallocHost(void **ptr, size_t size)
{
	return V6 ? i_hipHostMalloc(ptr, size, 0) : reentry.host_malloc(ptr, size, 0);
}

hipError_t i_hipMemAllocHost(void **ptr, size_t size)
{
	return V6 ? i_hipHostMalloc(ptr, size, 0) : reentry.host_malloc(ptr, size, 0);
}

hipError_t i_hipHostFree(void *ptr)
{
	hipError_t e = guard_unsafe();

	return e ? e : memory_free(ptr);
}

hipError_t i_hipFreeHost(void *ptr)
{
	return i_hipHostFree(ptr);
}

hipError_t i_hipHostGetDevicePointer(void **out, void *host, unsigned flags)
{
	struct sim_alloc a;

	if (!out || !host || flags)
		return hipErrorInvalidValue;
	if (!hip_find(host, &a))
		return hipErrorInvalidValue;
	*out = host;
	return hipSuccess;
}

hipError_t i_hipHostGetFlags(unsigned *flags, void *host)
{
	struct sim_alloc a;

	if (!flags || !host || !hip_find(host, &a) || (a.kind != SIM_HOST && a.kind != SIM_LOCKED))
		return hipErrorInvalidValue;
	*flags = a.flags;
	return hipSuccess;
}

hipError_t i_hipHostRegister(void *host, size_t size, unsigned flags)
{
	struct sim_alloc a = {
		.kind = SIM_LOCKED,
		.hip = true,
		.device = current_device(),
		.access = ~0u,
		.slot = -1,
	};

	if (!host || !size || flags > 15)
		return hipErrorInvalidValue;
	a.r.base = (uintptr_t)host;
	a.r.size = a.size = size;
	a.flags = flags;
	a.id = sim_next_id();
	a.alias = host;
	return sim_map_add(&a) ? hipSuccess : hipErrorHostMemoryAlreadyRegistered;
}

hipError_t i_hipHostUnregister(void *host)
{
	struct sim_alloc a;

	if (!host)
		return hipErrorInvalidValue;
	if (!hip_find(host, &a) || !a.hip || a.r.base != (uintptr_t)host ||
	    (a.kind != SIM_LOCKED && a.kind != SIM_DEVICE) || a.ownertype == OWNER_POOL)
		return hipErrorHostMemoryNotRegistered;
	wait_for_owner(&a);
	if (a.kind == SIM_DEVICE) {
		hip_device_free(host); /* 7.2 frees device memory here */
		return hipSuccess;
	}
	sim_map_remove(host, &a);
	return hipSuccess;
}
