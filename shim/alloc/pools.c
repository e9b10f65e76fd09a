/* SPDX-License-Identifier: MIT */
/*
 * hipMemPool*: creates and destroys pools, and serves their attributes. Handles of ours are numbers
 * that are never used twice. Pools that only the runtime can make (managed memory) stay the
 * runtime's (native_pools.c). No lock.
 */
#include <string.h>

#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/alloc/pools.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

static bool (*_Atomic capture_rule)(void);

void ss_pools_set_capture_rule(bool (*forbidden)(void))
{
	atomic_store(&capture_rule, forbidden);
}

bool ss_pools_forbidden(void)
{
	bool (*forbidden)(void) = atomic_load(&capture_rule);

	return ss_capture_live() && forbidden && forbidden();
}

/* ---- create, destroy ---------------------------------------------------- */

/* hipMemPoolProps has 88 bytes in every release. The eight bytes after win32SecurityAttributes are
 * maxSize from 6.0 on and reserved before. Reserved bytes "must be 0", but no runtime checks that,
 * and programs (hip-tests among them) leave garbage from the stack there. */
struct props {
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *win32;
	uint64_t max_size;
	unsigned char reserved[56];
};

_Static_assert(sizeof(struct props) == sizeof(hipMemPoolProps), "hipMemPoolProps");

hipError_t do_hipMemPoolCreate(hipMemPool_t *out, const hipMemPoolProps *given)
{
	struct ss_pool *pool = NULL;
	enum ss_status status;
	struct props props;
	hipError_t err;

	if (!out || !given)
		return ss_fail(hipErrorInvalidValue);
	memcpy(&props, given, sizeof(props));
	/* The runtime answers for other kinds and places of memory, valid or not. */
	if (props.type != hipMemAllocationTypePinned ||
	    (props.handle_types != hipMemHandleTypeNone &&
	     props.handle_types != hipMemHandleTypePosixFileDescriptor) ||
	    props.location.type != hipMemLocationTypeDevice) {
		err = REAL(hipMemPoolCreate, out, given);
		if (err == hipSuccess)
			ss_pool_native_add(*out);
		return ss_result(err);
	}
	if (props.location.id >= 0 && props.location.id < ss_device_count() && ss_pools_forbidden())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	status = ss_pool_create(ss_core, props.location.id,
				ss_runtime()->major < 6 ? 0 : props.max_size, &pool);
	/* In this call the error for a device that does not exist is InvalidValue. */
	if (status != SS_OK)
		return ss_fail(status == SS_ERR_NO_DEVICE ? hipErrorInvalidValue :
							    ss_status_error(status));
	if (props.handle_types != hipMemHandleTypeNone)
		ss_pool_share(pool);
	*out = ss_pool_handle(pool);
	return ss_result(hipSuccess);
}

hipError_t do_hipMemPoolDestroy(hipMemPool_t handle)
{
	struct ss_pool *pool;
	enum ss_status status;

	if (!handle)
		return ss_fail(hipErrorInvalidValue);
	if (ss_pools_forbidden())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = ss_pool_ref_handle(ss_core, handle);
	if (!pool) {
		if (ss_pool_is_handle(handle)) {
			if (unlikely(ss_checking))
				ss_check_pool_used(handle);
			return ss_fail(hipErrorInvalidValue);
		}
		/* The one call in which the runtime checks the handle itself. */
		ss_pool_native_remove(handle);
		return ss_result(REAL(hipMemPoolDestroy, handle));
	}
	status = ss_pool_destroy(ss_core, pool);
	ss_pool_unref(pool);
	if (unlikely(ss_checking) && status == SS_OK)
		ss_check_pool_destroyed(handle);
	return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

/* ---- attributes --------------------------------------------------------- */

/* The reuse flags are int, the rest uint64_t (hip_runtime_api.h). */
static bool is_flag(int attr)
{
	return attr >= SS_ATTR_REUSE_FOLLOW_EVENTS && attr <= SS_ATTR_REUSE_INTERNAL;
}

hipError_t do_hipMemPoolSetAttribute(hipMemPool_t handle, hipMemPoolAttr attr, void *value)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, handle);
	enum ss_status status;
	uint64_t v;

	if (!handle || !value)
		return ss_fail(hipErrorInvalidValue);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolSetAttribute, handle, attr, value);
	if (is_flag((int)attr)) {
		int flag;

		memcpy(&flag, value, sizeof(flag));
		v = flag != 0;
	} else if ((int)attr >= SS_ATTR_RELEASE_THRESHOLD && (int)attr <= SS_ATTR_USED_HIGH) {
		memcpy(&v, value, sizeof(v));
	} else {
		return ss_fail(hipErrorInvalidValue);
	}
	pool = ss_pool_ref_handle(ss_core, handle);
	if (!pool)
		return ss_fail(hipErrorInvalidValue);
	status = ss_pool_set_attr(ss_core, pool, (enum ss_attr)attr, v);
	ss_pool_unref(pool);
	return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

hipError_t do_hipMemPoolGetAttribute(hipMemPool_t handle, hipMemPoolAttr attr, void *value)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, handle);
	enum ss_status status;
	uint64_t v = 0;

	if (!handle || !value)
		return ss_fail(hipErrorInvalidValue);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolGetAttribute, handle, attr, value);
	if ((int)attr < SS_ATTR_REUSE_FOLLOW_EVENTS || (int)attr > SS_ATTR_USED_HIGH)
		return ss_fail(hipErrorInvalidValue);
	status = ss_pool_get_attr(pool, (enum ss_attr)attr, &v);
	if (status != SS_OK)
		return ss_fail(ss_status_error(status));
	if (is_flag((int)attr)) {
		int flag = (int)v;

		memcpy(value, &flag, sizeof(flag));
	} else {
		memcpy(value, &v, sizeof(v));
	}
	return ss_result(hipSuccess);
}

hipError_t do_hipMemPoolTrimTo(hipMemPool_t handle, size_t keep)
{
	struct ss_pool *pool = ss_pool_ref_handle(ss_core, handle);
	enum ss_status status;

	if (!handle)
		return ss_fail(hipErrorInvalidValue);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolTrimTo, handle, keep);
	status = ss_pool_trim(ss_core, pool, keep);
	ss_pool_unref(pool);
	return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}
