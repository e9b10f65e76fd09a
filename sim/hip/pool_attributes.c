/* SPDX-License-Identifier: MIT */
/*
 * Pools as objects: creation, default and current pool, attributes, access.
 *
 * Locks: pool_lock (pool.c).
 */
#include "device/options.h"
#include "hip/allocation.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/pool.h"
#include "hip/thread_state.h"
#include "hip/version.h"

struct props6 { /* hipMemPoolProps since 6.0, with a maximal size */
	hipMemAllocationType type;
	hipMemAllocationHandleType handles;
	hipMemLocation location;
	void *win32;
	size_t max;
};

hipError_t i_hipMemPoolCreate(hipMemPool_t *out, const hipMemPoolProps *props)
{
	hipError_t e;

	if (!out || !props || props->allocType != hipMemAllocationTypePinned ||
	    props->location.type != hipMemLocationTypeDevice || check_device(props->location.id))
		return hipErrorInvalidValue;
	/* The kind of handle is not checked before a handle is asked for (5.7.1 to 7.2.4). */
	e = guard_mempool();
	if (e)
		return e;
	pthread_mutex_lock(&pool_lock);
	*out = (hipMemPool_t)pool_new(props->location.id, (int)props->handleTypes,
				      V6 ? ((const struct props6 *)(const void *)props)->max : 0);
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

hipError_t i_hipMemPoolDestroy(hipMemPool_t h)
{
	struct pool *p;
	hipError_t e;

	if (!h)
		return hipErrorInvalidValue;
	e = guard_mempool();
	if (e)
		return e;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p || p == pool_standard[p->device] || p == pool_managed[p->device]) {
		pthread_mutex_unlock(&pool_lock);
		return hipErrorInvalidValue;
	}
	if (pool_current[p->device] == p)
		pool_current[p->device] = pool_standard[p->device];
	p->destroyed = true;
	pool_release_idle(p, 0);
	pool_free_if_empty(p);
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

hipError_t i_hipDeviceGetDefaultMemPool(hipMemPool_t *out, int device)
{
	if (!out)
		return hipErrorInvalidValue;
	if (check_device(device))
		return V52 ? hipErrorInvalidValue : hipErrorInvalidDevice;
	pthread_mutex_lock(&pool_lock);
	*out = (hipMemPool_t)pool_default(device);
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

hipError_t i_hipDeviceGetMemPool(hipMemPool_t *out, int device)
{
	if (!out || check_device(device))
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	pool_default(device);
	*out = (hipMemPool_t)pool_current[device];
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

hipError_t i_hipDeviceSetMemPool(int device, hipMemPool_t h)
{
	struct pool *p;
	hipError_t e;

	if (!h || check_device(device))
		return hipErrorInvalidValue;
	e = guard_mempool();
	if (e)
		return e;
	pthread_mutex_lock(&pool_lock);
	pool_default(device);
	p = pool_of(h);
	e = !p ? hipErrorInvalidValue : p->device != device ? hipErrorInvalidDevice : hipSuccess;
	if (!e)
		pool_current[device] = p;
	pthread_mutex_unlock(&pool_lock);
	return e;
}

hipError_t i_hipMemPoolTrimTo(hipMemPool_t h, size_t keep)
{
	struct pool *p;

	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (p)
		pool_release_idle(p, keep);
	pthread_mutex_unlock(&pool_lock);
	return p ? hipSuccess : hipErrorInvalidValue;
}

hipError_t i_hipMemPoolSetAttribute(hipMemPool_t h, hipMemPoolAttr attr, void *v)
{
	hipError_t e = hipSuccess;
	struct pool *p;

	if (!h || !v)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p)
		e = hipErrorInvalidValue;
	else if (attr >= hipMemPoolReuseFollowEventDependencies &&
		 attr <= hipMemPoolReuseAllowInternalDependencies)
		p->reuse[attr - 1] = *(int *)v;
	else if (attr == hipMemPoolAttrReleaseThreshold)
		p->threshold = *(uint64_t *)v;
	else if (attr == hipMemPoolAttrReservedMemHigh && !*(uint64_t *)v)
		p->reserved_high = p->reserved;
	else if (attr == hipMemPoolAttrUsedMemHigh && !*(uint64_t *)v)
		p->used_high = p->used;
	else
		e = hipErrorInvalidValue;
	pthread_mutex_unlock(&pool_lock);
	return e;
}

hipError_t i_hipMemPoolGetAttribute(hipMemPool_t h, hipMemPoolAttr attr, void *v)
{
	hipError_t e = hipSuccess;
	struct pool *p;

	if (!h || !v)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p) {
		pthread_mutex_unlock(&pool_lock);
		return hipErrorInvalidValue;
	}
	switch (attr) {
	case hipMemPoolReuseFollowEventDependencies:
	case hipMemPoolReuseAllowOpportunistic:
	case hipMemPoolReuseAllowInternalDependencies: *(int *)v = p->reuse[attr - 1]; break;
	case hipMemPoolAttrReleaseThreshold: *(uint64_t *)v = p->threshold; break;
	case hipMemPoolAttrReservedMemCurrent: *(uint64_t *)v = p->reserved; break;
	case hipMemPoolAttrReservedMemHigh: *(uint64_t *)v = p->reserved_high; break;
	case hipMemPoolAttrUsedMemCurrent: *(uint64_t *)v = p->used; break;
	case hipMemPoolAttrUsedMemHigh: *(uint64_t *)v = p->used_high; break;
	default: e = hipErrorInvalidValue;
	}
	pthread_mutex_unlock(&pool_lock);
	return e;
}

hipError_t i_hipMemPoolSetAccess(hipMemPool_t h, const hipMemAccessDesc *list, size_t n)
{
	struct pool *p;
	hipError_t e = hipSuccess;

	if (!h || !list) /* even if the list is empty (hip_mempool.cpp) */
		return hipErrorInvalidValue;
	if (n > (size_t)sim_opt.devices)
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (!p)
		e = hipErrorInvalidValue;
	for (size_t i = 0; i < n && !e; i++) {
		int d = list[i].location.id, f = (int)list[i].flags;

		if (f > 3 || f == 2 || list[i].location.type != hipMemLocationTypeDevice)
			e = hipErrorInvalidValue;
		else if (check_device(d))
			e = hipErrorInvalidDevice;
		else if (!f && (!V7 || d == p->device))
			e = hipErrorInvalidDevice;
		else if (f == hipMemAccessFlagsProtRead && d == p->device && V7_14)
			e = hipErrorNotSupported;
		else if (d != p->device)
			p->access[d] = f;
	}
	if (!e)
		pool_update_access(p);
	pthread_mutex_unlock(&pool_lock);
	return e;
}

hipError_t i_hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t h, hipMemLocation *at)
{
	struct pool *p;

	if (!flags || !h || !at || at->type != hipMemLocationTypeDevice || check_device(at->id))
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	p = pool_of(h);
	if (p)
		*flags = (hipMemAccessFlags)p->access[at->id];
	pthread_mutex_unlock(&pool_lock);
	return p ? hipSuccess : hipErrorInvalidValue;
}

/* ---- pools by location (7.14) ---- */

static bool is_device_pool(const hipMemLocation *at, hipMemAllocationType type)
{
	return at && at->type == hipMemLocationTypeDevice && type == hipMemAllocationTypePinned &&
	       !check_device(at->id);
}

hipError_t i_hipMemGetMemPool(hipMemPool_t *out, hipMemLocation *at, hipMemAllocationType type)
{
	return out && is_device_pool(at, type) ? i_hipDeviceGetMemPool(out, at->id) :
						 hipErrorInvalidValue;
}

hipError_t i_hipMemSetMemPool(hipMemLocation *at, hipMemAllocationType type, hipMemPool_t pool)
{
	hipError_t e = is_device_pool(at, type) ? i_hipDeviceSetMemPool(at->id, pool) :
						  hipErrorInvalidValue;

	return e == hipErrorInvalidDevice ? hipErrorInvalidValue : e;
}

/* Since 7.15. The default pool of managed memory is another one than that of the device's own. (Its
 * memory is the device's here.) */
hipError_t i_hipMemGetDefaultMemPool(hipMemPool_t *out, hipMemLocation *at,
				     hipMemAllocationType type)
{
	if (!out || !at || at->type != hipMemLocationTypeDevice || check_device(at->id))
		return hipErrorInvalidValue;
	if (type == hipMemAllocationTypePinned)
		return i_hipDeviceGetDefaultMemPool(out, at->id);
	if ((int)type != 2 /* hipMemAllocationTypeManaged */)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&pool_lock);
	if (!pool_managed[at->id])
		pool_managed[at->id] = pool_new(at->id, 0, 0);
	*out = (hipMemPool_t)pool_managed[at->id];
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

/* ---- test control, found by dlsym ---- */

__attribute__((visibility("default"))) hipMemPool_t somasim_new_pool(int device);

hipMemPool_t somasim_new_pool(int device)
{
	struct pool *p;

	pthread_mutex_lock(&pool_lock);
	p = pool_new(device, 0, 0);
	pthread_mutex_unlock(&pool_lock);
	return (hipMemPool_t)p;
}
