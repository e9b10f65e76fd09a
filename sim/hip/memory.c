/* SPDX-License-Identifier: MIT */
/* Device memory: allocation, free, pitched memory, and how much is free. */
#include "device/arena.h"
#include "device/device_queues.h"
#include "device/options.h"
#include "device/signal.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/graph_memory.h"
#include "hip/memory.h"
#include "hip/pool.h"
#include "hip/reentry.h"
#include "hip/thread_state.h"
#include "hip/version.h"

hipError_t device_malloc(void **ptr, size_t size, unsigned flags, int device)
{
	void *p;

	if (!ptr)
		return hipErrorInvalidValue;
	if (!size) {
		*ptr = NULL;
		return hipSuccess;
	}
	p = hip_device_alloc(device, size, flags);
	if (!p) {
		reenter_mem_get_info();
		return hipErrorOutOfMemory;
	}
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipMalloc(void **ptr, size_t size)
{
	hipError_t e = guard_unsafe();

	return e ? e : device_malloc(ptr, size, 0, current_device());
}

hipError_t i_hipExtMallocWithFlags(void **ptr, size_t size, unsigned flags)
{
	uint64_t h;

	if (!ptr || flags > (V6 ? 4u : 3u))
		return hipErrorInvalidValue;
	if (flags != hipMallocSignalMemory)
		return device_malloc(ptr, size, flags, current_device());
	if (size != 8)
		return hipErrorInvalidValue;
	h = sim_signal_new(1);
	if (!h)
		return hipErrorOutOfMemory;
	*ptr = sim_signal_value(h);
	return hipSuccess;
}

void wait_for_owner(const struct sim_alloc *a)
{
	if (a->kind == SIM_HOST || a->kind == SIM_MANAGED || a->kind == SIM_LOCKED ||
	    a->device < 0) {
		for (int i = 0; i < sim_opt.devices; i++)
			sim_device_finish(i);
		return;
	}
	sim_device_finish(a->device);
	pools_release(a->device);
}

hipError_t memory_free(void *ptr)
{
	struct sim_alloc a;

	if (!ptr)
		return hipSuccess;
	if (!hip_find(ptr, &a))
		return hipErrorInvalidValue;
	if (!a.hip && a.kind != SIM_SIGNAL)
		return hipSuccess; /* raw HSA memory is not freed */
	if (a.kind == SIM_MAPPED || a.kind == SIM_LOCKED ||
	    (a.kind == SIM_IMPORT && a.ownertype != OWNER_POOL))
		return hipErrorInvalidValue;
	if (a.ownertype != OWNER_POOL || !V7)
		wait_for_owner(&a);
	if (a.ownertype == OWNER_POOL)
		return pool_free_block(&a, NULL);
	if (a.ownertype == OWNER_GRAPH)
		return graph_memory_free(&a);
	if (a.kind == SIM_SIGNAL) {
		sim_signal_free((uint64_t)(uintptr_t)ptr - 8);
		return hipSuccess;
	}
	if (a.kind == SIM_DEVICE)
		hip_device_free((void *)a.r.base);
	else if (!sim_free((void *)a.r.base, true))
		return hipErrorInvalidValue;
	return hipSuccess;
}

hipError_t i_hipFree(void *ptr)
{
	static atomic_int frees;
	hipError_t e = guard_unsafe();

	if (!e && ptr && sim_opt.quirk[SIM_Q_FREE_QUEUE] && atomic_fetch_add(&frees, 1) == 1)
		sim_charge(current_device(), 12 << 20);
	return e ? e : memory_free(ptr);
}

hipError_t i_hipMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	hipError_t e = guard_unsafe();
	size_t p = SIM_ALIGN(width, 256);

	if (e)
		return e;
	if (!ptr || !pitch)
		return hipErrorInvalidValue;
	if (!width || !height) {
		*ptr = NULL;
		return hipSuccess;
	}
	e = device_malloc(ptr, p * height, 0, current_device());
	if (!e)
		*pitch = p;
	return e;
}

hipError_t i_hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height,
			      unsigned element)
{
	if (!width || !height || (element != 4 && element != 8 && element != 16))
		return hipErrorInvalidValue;
	return V6 ? i_hipMallocPitch(ptr, pitch, width, height) :
		    reentry.malloc_pitch(ptr, pitch, width, height);
}

hipError_t i_hipMalloc3D(hipPitchedPtr *out, hipExtent ext)
{
	hipError_t e = guard_unsafe();
	size_t pitch = ext.width && ext.height && ext.depth ? SIM_ALIGN(ext.width, 256) : 0;

	if (e)
		return e;
	if (!out)
		return hipErrorInvalidValue;
	e = device_malloc(&out->ptr, pitch * ext.height * ext.depth, 0, current_device());
	if (!e) {
		out->pitch = pitch;
		out->xsize = ext.width;
		out->ysize = ext.height;
	}
	return e;
}

hipError_t i_hipMemGetInfo(size_t *avail, size_t *total)
{
	int d = current_device();

	sim_exports_sweep(d);
	if (avail)
		*avail = sim_free_bytes(d) & ~(size_t)1023;
	if (total)
		*total = sim_opt.total;
	return hipSuccess;
}
