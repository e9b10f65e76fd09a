/* SPDX-License-Identifier: MIT */
/* The pool that hipMallocAsync of a device uses: the default pool or the current one. No lock. */
#include "shim/alloc/last_error.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/pools.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

hipError_t do_hipDeviceGetDefaultMemPool(hipMemPool_t *out, int dev)
{
	struct ss_pool *pool;

	if (!out)
		return ss_fail(hipErrorInvalidValue);
	pool = ss_pool_default(ss_core, dev);
	if (!pool && ss_pool_none(ss_core, dev) == SS_ERR_NOMEM)
		return ss_fail(hipErrorOutOfMemory);
	if (!pool) /* no such device: each release has its own error */
		return ss_result(REAL(hipDeviceGetDefaultMemPool, out, dev));
	*out = ss_pool_handle(pool);
	return ss_result(hipSuccess);
}

hipError_t do_hipDeviceGetMemPool(hipMemPool_t *out, int dev)
{
	struct ss_pool *pool;

	if (!out || dev < 0 || dev >= ss_device_count())
		return ss_fail(hipErrorInvalidValue);
	*out = ss_pool_native_current(dev);
	if (*out)
		return ss_result(hipSuccess);
	pool = ss_pool_current(ss_core, dev);
	if (!pool && ss_pool_none(ss_core, dev) == SS_ERR_NOMEM)
		return ss_fail(hipErrorOutOfMemory);
	if (!pool)
		return ss_result(REAL(hipDeviceGetMemPool, out, dev));
	*out = ss_pool_handle(pool);
	return ss_result(hipSuccess);
}

static hipError_t make_current(int dev, struct ss_pool *pool)
{
	enum ss_status status = ss_pool_set_current(ss_core, dev, pool);

	ss_pool_unref(pool);
	if (status != SS_OK)
		return ss_fail(ss_status_error(status));
	ss_pool_native_reset(dev);
	return ss_result(hipSuccess);
}

static hipError_t native_made_current(int dev, hipMemPool_t handle, hipError_t err)
{
	struct ss_pool *pool = ss_pool_default(ss_core, dev);

	if (err == hipSuccess) {
		ss_pool_native_set_current(dev, handle);
		/* The default pool becomes current again when the program destroys that pool. */
		if (pool)
			(void)ss_pool_set_current(ss_core, dev, pool);
	}
	return ss_result(err);
}

hipError_t do_hipDeviceSetMemPool(int dev, hipMemPool_t handle)
{
	struct ss_pool *pool;

	if (!handle || dev < 0 || dev >= ss_device_count())
		return ss_fail(hipErrorInvalidValue);
	if (ss_pools_forbidden())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = ss_pool_ref_handle(ss_core, handle);
	if (pool)
		return make_current(dev, pool);
	if (!ss_pool_is_native(handle))
		return ss_fail(hipErrorInvalidValue);
	return native_made_current(dev, handle, REAL(hipDeviceSetMemPool, dev, handle));
}

/* Since 7.14 a location has a current pool per kind of memory. Our pools are for pinned memory of a
 * device. A managed pool, which is the runtime's, can be current beside a pool of ours. */
static bool place_is_ours(const hipMemLocation *where, hipMemAllocationType type)
{
	return where && where->type == hipMemLocationTypeDevice && where->id >= 0 &&
	       where->id < ss_device_count() && type == hipMemAllocationTypePinned;
}

hipError_t do_hipMemGetDefaultMemPool(hipMemPool_t *out, hipMemLocation *where,
				      hipMemAllocationType type)
{
	hipError_t err;

	if (out && place_is_ours(where, type))
		return do_hipDeviceGetDefaultMemPool(out, where->id);
	err = REAL(hipMemGetDefaultMemPool, out, where, type);
	if (err == hipSuccess)
		ss_pool_native_add(*out);
	return ss_result(err);
}

hipError_t do_hipMemGetMemPool(hipMemPool_t *out, hipMemLocation *where, hipMemAllocationType type)
{
	hipError_t err;

	if (out && place_is_ours(where, type))
		return do_hipDeviceGetMemPool(out, where->id);
	err = REAL(hipMemGetMemPool, out, where, type);
	if (err == hipSuccess)
		ss_pool_native_add(*out);
	return ss_result(err);
}

hipError_t do_hipMemSetMemPool(hipMemLocation *where, hipMemAllocationType type,
			       hipMemPool_t handle)
{
	struct ss_pool *pool;
	hipError_t err;

	if (ss_pools_forbidden())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = handle ? ss_pool_ref_handle(ss_core, handle) : NULL;
	if (!pool) {
		if (handle && !ss_pool_is_native(handle))
			return ss_fail(hipErrorInvalidValue);
		err = REAL(hipMemSetMemPool, where, type, handle);
		return place_is_ours(where, type) ? native_made_current(where->id, handle, err) :
						    ss_result(err);
	}
	if (place_is_ours(where, type) && where->id == ss_pool_device(pool))
		return make_current(where->id, pool);
	ss_pool_unref(pool);
	return ss_fail(hipErrorInvalidValue);
}
