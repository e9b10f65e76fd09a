/* SPDX-License-Identifier: MIT */
/* Allocating and freeing: device, host, managed, registered, pitched. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "hip.h"

bool hip_find(const void *p, struct sim_alloc *a)
{
	if (!p || !sim_find(p, a))
		return false;
	if (a->kind == SIM_LOCKED && !a->hip)
		return false;
	if (a->kind == SIM_MAPPED && !a->hip)
		return false;
	if (a->kind == SIM_LOCKED && (uintptr_t)p - a->r.base >= a->size)
		return false;
	return true;
}

bool host_pageable(const void *p)
{
	struct sim_alloc a;

	return !hip_find(p, &a);
}

struct adopt {
	size_t size;
	unsigned flags;
	uint32_t access;
};

static void adopt(struct sim_alloc *a, void *arg)
{
	struct adopt *d = arg;

	a->hip = true;
	a->size = d->size;
	a->flags = d->flags;
	a->access |= d->access;
}

/* Through HSA's exports, as the real library: who patches those sees it. */
void *hip_device_memory(int device, size_t size, unsigned flags)
{
	hsa_amd_memory_pool_t pool = { sim_pool_handle(device, flags == hipDeviceMallocFinegrained) };
	struct adopt d = { size, flags, (uint32_t)peer_mask(device) };
	struct sim_thread *t = sim_self();
	void *p = NULL;
	hsa_status_t s;

	t->depth++;
	s = hsa_amd_memory_pool_allocate(pool, size, 0, &p);
	t->depth--;
	if (s != HSA_STATUS_SUCCESS)
		return NULL;
	sim_update(p, adopt, &d);
	return p;
}

void hip_device_release(void *base)
{
	struct sim_thread *t = sim_self();

	t->depth++;
	hsa_amd_memory_pool_free(base);
	t->depth--;
}

static _Atomic uint64_t told;

/* The real one asks too (for its log, or to decide): a preload is re-entered. */
void ask_free(void)
{
	size_t avail = 0, total;

	PLT(hipMemGetInfo(&avail, &total));
	atomic_store(&told, avail);
}

#pragma GCC visibility push(default)
uint64_t somasim_told_free(void);
#pragma GCC visibility pop

uint64_t somasim_told_free(void)
{
	return atomic_load(&told);
}

hipError_t device_malloc(void **ptr, size_t size, unsigned flags, int device)
{
	void *p;

	if (!ptr)
		return hipErrorInvalidValue;
	if (!size) {
		*ptr = NULL;
		return hipSuccess;
	}
	p = hip_device_memory(device, size, flags);
	if (!p) {
		ask_free();
		return hipErrorOutOfMemory;
	}
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipMalloc(void **ptr, size_t size)
{
	hipError_t e = guard_unsafe();

	return e ? e : device_malloc(ptr, size, 0, cur_device());
}

hipError_t i_hipExtMallocWithFlags(void **ptr, size_t size, unsigned flags)
{
	uint64_t h;

	if (!ptr || flags > (V6 ? 4u : 3u))
		return hipErrorInvalidValue;
	if (flags != hipMallocSignalMemory)
		return device_malloc(ptr, size, flags, cur_device());
	if (size != 8)
		return hipErrorInvalidValue;
	h = sim_signal_new(1);
	if (!h)
		return hipErrorOutOfMemory;
	*ptr = sim_signal_value(h);
	return hipSuccess;
}

void wait_owner(const struct sim_alloc *a)
{
	if (a->kind == SIM_HOST || a->kind == SIM_MANAGED || a->kind == SIM_LOCKED || a->device < 0) {
		for (int i = 0; i < sim_opt.devices; i++)
			device_finish(i);
		return;
	}
	device_finish(a->device);
	pools_release(a->device);
}

hipError_t host_release(void *ptr)
{
	struct sim_alloc a;

	if (!ptr)
		return hipSuccess;
	if (!hip_find(ptr, &a))
		return hipErrorInvalidValue;
	if (!a.hip && a.kind != SIM_SIGNAL)
		return hipSuccess;            /* raw HSA memory: nothing happens */
	if (a.kind == SIM_MAPPED || a.kind == SIM_LOCKED ||
	    (a.kind == SIM_IMPORT && a.ownertype != O_POOL))
		return hipErrorInvalidValue;
	if (a.ownertype == O_GRAPH)
		return graph_mem_free(&a);
	if (a.ownertype == O_POOL) {
		if (!V7)
			wait_owner(&a);
		return pool_free_block(&a, NULL, false);
	}
	wait_owner(&a);
	if (a.kind == SIM_SIGNAL) {
		sim_signal_free((uint64_t)(uintptr_t)ptr - 8);
		return hipSuccess;
	}
	if (a.kind == SIM_DEVICE)
		hip_device_release((void *)a.r.base);
	else if (!sim_free((void *)a.r.base, true))
		return hipErrorInvalidValue;
	return hipSuccess;
}

hipError_t i_hipFree(void *ptr)
{
	hipError_t e = guard_unsafe();

	return e ? e : host_release(ptr);
}

/* ---- host memory ---- */

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
	p = sim_host_alloc(size, flags, SIM_HOST, cur_device());
	if (!p)
		return hipErrorOutOfMemory;
	sim_update(p, adopt, &(struct adopt){ size, flags, ~0u });
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipHostAlloc(void **ptr, size_t size, unsigned flags)
{
	return i_hipHostMalloc(ptr, size, flags);
}

/* 5.x comes back through its own export here. */
hipError_t i_hipMallocHost(void **ptr, size_t size)
{
	return V6 ? i_hipHostMalloc(ptr, size, 0) : PLT(hipHostMalloc(ptr, size, 0));
}

hipError_t i_hipMemAllocHost(void **ptr, size_t size)
{
	return V6 ? i_hipHostMalloc(ptr, size, 0) : PLT(hipHostMalloc(ptr, size, 0));
}

hipError_t i_hipHostFree(void *ptr)
{
	hipError_t e = guard_unsafe();

	return e ? e : host_release(ptr);
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
	struct sim_alloc a = { .kind = SIM_LOCKED, .hip = true, .device = cur_device(), .access = ~0u, .slot = -1 };

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
	    (a.kind != SIM_LOCKED && a.kind != SIM_DEVICE) || a.ownertype == O_POOL)
		return hipErrorHostMemoryNotRegistered;
	wait_owner(&a);
	if (a.kind == SIM_DEVICE) {
		hip_device_release(host); /* 7.2 forgets that too */
		return hipSuccess;
	}
	sim_map_remove(host, &a);
	return hipSuccess;
}

/* ---- managed memory: host pages that the device may touch ---- */

hipError_t i_hipMallocManaged(void **ptr, size_t size, unsigned flags)
{
	void *p;

	if (!ptr || !size || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
		return hipErrorInvalidValue;
	p = sim_host_alloc(size, flags, SIM_MANAGED, cur_device());
	if (!p)
		return hipErrorOutOfMemory;
	sim_update(p, adopt, &(struct adopt){ size, flags, ~0u });
	*ptr = p;
	return hipSuccess;
}

hipError_t i_hipMemPrefetchAsync(const void *p, size_t n, int device, hipStream_t h)
{
	if (!p || !n)
		return hipErrorInvalidValue;
	if (device != hipCpuDeviceId && (device < 0 || device >= sim_opt.devices))
		return hipErrorInvalidDevice;
	return submit(h, cmd_new(C_MARKER), false);
}

hipError_t i_hipMemAdvise(const void *p, size_t n, hipMemoryAdvise advice, int device)
{
	return p && n ? hipSuccess : hipErrorInvalidValue;
}

hipError_t i_hipMemRangeGetAttribute(void *data, size_t size, hipMemRangeAttribute attribute, const void *p, size_t n)
{
	if (!data || !size || !p || !n)
		return hipErrorInvalidValue;
	memset(data, 0, size);
	if (attribute == hipMemRangeAttributePreferredLocation ||
	    attribute == hipMemRangeAttributeLastPrefetchLocation)
		*(int *)data = hipInvalidDeviceId;
	return hipSuccess;
}

hipError_t i_hipMemRangeGetAttributes(void **data, size_t *sizes, hipMemRangeAttribute *attributes, size_t count, const void *p, size_t n)
{
	hipError_t e = data && sizes && attributes && count ? hipSuccess : hipErrorInvalidValue;

	for (size_t i = 0; !e && i < count; i++)
		e = i_hipMemRangeGetAttribute(data[i], sizes[i], attributes[i], p, n);
	return e;
}

/* ---- pitched ---- */

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
	e = device_malloc(ptr, p * height, 0, cur_device());
	if (!e)
		*pitch = p;
	return e;
}

hipError_t i_hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height, unsigned element)
{
	if (!width || !height || (element != 4 && element != 8 && element != 16))
		return hipErrorInvalidValue;
	return V6 ? i_hipMallocPitch(ptr, pitch, width, height) : PLT(hipMallocPitch(ptr, pitch, width, height));
}

hipError_t i_hipMalloc3D(hipPitchedPtr *out, hipExtent ext)
{
	hipError_t e = guard_unsafe();
	size_t pitch = ext.width && ext.height && ext.depth ? SIM_ALIGN(ext.width, 256) : 0;

	if (e)
		return e;
	if (!out)
		return hipErrorInvalidValue;
	e = device_malloc(&out->ptr, pitch * ext.height * ext.depth, 0, cur_device());
	if (!e) {
		out->pitch = pitch;
		out->xsize = ext.width;
		out->ysize = ext.height;
	}
	return e;
}

hipError_t i_hipMemGetInfo(size_t *avail, size_t *total)
{
	int d = cur_device();

	sim_ipc_sweep(d);
	if (avail)
		*avail = sim_free_bytes(d) & ~(size_t)1023;
	if (total)
		*total = sim_opt.vram;
	return hipSuccess;
}
