/* SPDX-License-Identifier: MIT */
/*
 * The hipMemPool* family but for its sharing (share.c). Handles of ours are numbers that
 * are never used twice; pools that only the runtime can make (managed) stay its own.
 *
 * Locks: natives_lock (the native handles that passed through here). Leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/shim.h"

/* ---- native pools ------------------------------------------------------- */

/* The runtime does not validate a pool handle but in Destroy: it must only get
 * such as it gave. */
static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;
static hipMemPool_t *natives;
static size_t native_count, native_max;

void ss_pool_native_add(hipMemPool_t pool)
{
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count; i++)
		if (natives[i] == pool)
			goto known;
	if (native_count == native_max) {
		size_t max = native_max ? native_max * 2 : 16;
		hipMemPool_t *grown = realloc(natives, max * sizeof(*grown));

		if (grown) {
			natives = grown;
			native_max = max;
		}
	}
	if (native_count < native_max)
		natives[native_count++] = pool;
known:
	pthread_mutex_unlock(&natives_lock);
}

static void native_drop(hipMemPool_t pool)
{
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count; i++)
		if (natives[i] == pool) {
			natives[i] = natives[--native_count];
			break;
		}
	pthread_mutex_unlock(&natives_lock);
}

bool ss_pool_is_native(hipMemPool_t pool)
{
	bool known = false;

	if (!pool || ss_pool_is_handle(pool))
		return false;
	pthread_mutex_lock(&natives_lock);
	for (size_t i = 0; i < native_count && !known; i++)
		known = natives[i] == pool;
	pthread_mutex_unlock(&natives_lock);
	/* Where calls bypass us, handles may have too. */
	return known || ss_distrusted(ss_core);
}

/* Answers for a handle that is not a live pool of ours: the real call where the
 * handle is the runtime's, else the documented error. */
#define NOT_OURS(pool, name, ...) \
	(ss_pool_is_native(pool) ? ss_result(REAL(name, __VA_ARGS__)) \
				 : ss_fail(hipErrorInvalidValue))

/* Device -> the native pool that the program made current, or NULL. */
static _Atomic(hipMemPool_t) native_current[SS_MAX_DEVICES];
atomic_bool ss_native_current_set;

static void native_not_current(hipMemPool_t pool)
{
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		hipMemPool_t was = pool;

		atomic_compare_exchange_strong(&native_current[dev], &was, NULL);
	}
}

/* ---- create, destroy ---------------------------------------------------- */

/* 88 bytes in every version; the eight after win32SecurityAttributes are maxSize
 * from 6.0 on and reserved before. Reserved bytes "must be 0", but no runtime looks at
 * them, and programs leave there what was on the stack (hip-tests among them). */
struct props {
	int type, handle_types;
	struct { int type, id; } location;
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
	/* Other kinds and places of memory, right or wrong. */
	if (props.type != hipMemAllocationTypePinned ||
	    (props.handle_types != hipMemHandleTypeNone &&
	     props.handle_types != hipMemHandleTypePosixFileDescriptor) ||
	    props.location.type != hipMemLocationTypeDevice) {
		err = REAL(hipMemPoolCreate, out, given);
		if (err == hipSuccess)
			ss_pool_native_add(*out);
		return ss_result(err);
	}
	if (props.location.id >= 0 && props.location.id < ss_device_count() &&
	    ss_capture_forbids_pools())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	status = ss_pool_create(ss_core, props.location.id,
				ss_runtime()->major < 6 ? 0 : props.max_size, &pool);
	/* The error for a device that is none is InvalidValue here. */
	if (status != SS_OK)
		return ss_fail(status == SS_ERR_NO_DEVICE ? hipErrorInvalidValue
							  : ss_status_error(status));
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
	if (ss_capture_forbids_pools())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = ss_pool_hold(ss_core, handle);
	if (!pool) {
		if (ss_pool_is_handle(handle))
			return ss_fail(hipErrorInvalidValue);
		/* The one call that the runtime checks itself. */
		native_drop(handle);
		native_not_current(handle);
		return ss_result(REAL(hipMemPoolDestroy, handle));
	}
	status = ss_pool_destroy(ss_core, pool);
	ss_pool_let_go(pool);
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
	pool = ss_pool_hold(ss_core, handle);
	if (!pool)
		return ss_fail(hipErrorInvalidValue);
	status = ss_pool_set_attr(ss_core, pool, (enum ss_attr)attr, v);
	ss_pool_let_go(pool);
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
	status = ss_pool_get_attr(ss_core, pool, (enum ss_attr)attr, &v);
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
	struct ss_pool *pool = ss_pool_hold(ss_core, handle);
	enum ss_status status;

	if (!handle)
		return ss_fail(hipErrorInvalidValue);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolTrimTo, handle, keep);
	status = ss_pool_trim(ss_core, pool, keep);
	ss_pool_let_go(pool);
	return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

/* ---- access ------------------------------------------------------------- */

static bool can_access(int peer, int dev)
{
	int can = 0;

	return REAL(hipDeviceCanAccessPeer, &can, peer, dev) == hipSuccess && can;
}

/* One entry of the list. A peer that is to read only may write as well: so it is in every
 * release. */
static hipError_t access_check(const struct ss_pool *pool, const hipMemAccessDesc *d, int devices)
{
	int owner = ss_pool_device(pool);

	if (d->location.type != hipMemLocationTypeDevice || (unsigned)d->flags > 3 ||
	    (unsigned)d->flags == 2)
		return hipErrorInvalidValue;
	if (d->location.id < 0 || d->location.id >= devices)
		return hipErrorInvalidDevice;
	if (d->location.id == owner)
		return d->flags == hipMemAccessFlagsProtNone ? hipErrorInvalidDevice :
		       d->flags == hipMemAccessFlagsProtRead && ss_runtime_at_least(ss_runtime(), 7, 3) ?
		       hipErrorNotSupported : hipSuccess; /* (7.2.4, run: success) */
	if (d->flags != hipMemAccessFlagsProtNone && !can_access(d->location.id, owner))
		return hipErrorInvalidDevice;
	return hipSuccess;
}

static hipError_t set_access(struct ss_pool *pool, const hipMemAccessDesc *list, size_t count,
			     int devices)
{
	uint64_t give = 0, take = 0, readers = 0, own = 1ull << ss_pool_device(pool);
	enum ss_status status;

	for (size_t i = 0; i < count; i++) {
		hipError_t err = access_check(pool, &list[i], devices);
		uint64_t bit;

		if (err != hipSuccess)
			return err;
		bit = 1ull << list[i].location.id;
		give &= ~bit; /* the last entry of a device counts */
		take &= ~bit;
		readers &= ~bit;
		*(list[i].flags == hipMemAccessFlagsProtNone ? &take : &give) |= bit;
		if (list[i].flags == hipMemAccessFlagsProtRead)
			readers |= bit;
	}
	if (give & ~own)
		ss_observer_add(ss_pool_device(pool), SS_OBSERVER_PEER);
	status = ss_pool_set_access(ss_core, pool, give, take);
	/* What the owner is told says nothing. */
	if (status == SS_OK)
		ss_pool_set_readers(pool, readers & ~own, (give | take) & ~readers);
	return ss_status_error(status);
}

hipError_t do_hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc *list, size_t count)
{
	int devices = ss_device_count();
	struct ss_pool *pool;
	hipError_t err = hipSuccess;

	if (!handle || !list)
		return ss_fail(hipErrorInvalidValue);
	pool = ss_pool_hold(ss_core, handle);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolSetAccess, handle, list, count);
	if (count > (size_t)devices)
		err = hipErrorInvalidDevice;
	else if (count)
		err = set_access(pool, list, count, devices);
	ss_pool_let_go(pool);
	return err == hipSuccess ? ss_result(err) : ss_fail(err);
}

static hipMemAccessFlags pool_flags(const struct ss_pool *pool, int dev)
{
	return !(ss_pool_access(pool) >> dev & 1) ? hipMemAccessFlagsProtNone :
	       ss_pool_readers(pool) >> dev & 1 ? hipMemAccessFlagsProtRead :
	       hipMemAccessFlagsProtReadWrite;
}

hipError_t do_hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t handle,
				  hipMemLocation *location)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, handle);

	if (!flags || !handle || !location)
		return ss_fail(hipErrorInvalidValue);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolGetAccess, flags, handle, location);
	if (location->type != hipMemLocationTypeDevice || location->id < 0 ||
	    location->id >= ss_device_count())
		return ss_fail(hipErrorInvalidValue);
	*flags = pool_flags(pool, location->id);
	return ss_result(hipSuccess);
}

/* ---- which pool a device uses ------------------------------------------- */

hipError_t do_hipDeviceGetDefaultMemPool(hipMemPool_t *out, int dev)
{
	struct ss_pool *pool;

	if (!out)
		return ss_fail(hipErrorInvalidValue);
	pool = ss_pool_default(ss_core, dev);
	if (!pool) /* a device that is none: the version's own error */
		return ss_result(REAL(hipDeviceGetDefaultMemPool, out, dev));
	*out = ss_pool_handle(pool);
	return ss_result(hipSuccess);
}

hipMemPool_t ss_pool_native_current(int dev)
{
	return atomic_load_explicit(&native_current[dev], memory_order_relaxed);
}

void ss_pool_native_reset(int dev)
{
	atomic_store(&native_current[dev], NULL);
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
	if (!pool)
		return ss_result(REAL(hipDeviceGetMemPool, out, dev));
	*out = ss_pool_handle(pool);
	return ss_result(hipSuccess);
}

static hipError_t make_current(int dev, struct ss_pool *pool)
{
	enum ss_status status = ss_pool_set_current(ss_core, dev, pool);

	ss_pool_let_go(pool);
	if (status != SS_OK)
		return ss_fail(ss_status_error(status));
	ss_pool_native_reset(dev);
	return ss_result(hipSuccess);
}

static hipError_t native_made_current(int dev, hipMemPool_t handle, hipError_t err)
{
	if (err == hipSuccess) {
		atomic_store(&native_current[dev], handle);
		if (!atomic_exchange(&ss_native_current_set, true))
			ss_slow_reasons_add(1);
	}
	return ss_result(err);
}

hipError_t do_hipDeviceSetMemPool(int dev, hipMemPool_t handle)
{
	struct ss_pool *pool;

	if (!handle || dev < 0 || dev >= ss_device_count())
		return ss_fail(hipErrorInvalidValue);
	if (ss_capture_forbids_pools())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = ss_pool_hold(ss_core, handle);
	if (pool)
		return make_current(dev, pool);
	if (!ss_pool_is_native(handle))
		return ss_fail(hipErrorInvalidValue);
	return native_made_current(dev, handle, REAL(hipDeviceSetMemPool, dev, handle));
}

/* By place and kind of memory (7.14). Ours are pinned memory of a device; a managed pool
 * can be current as well, beside them, and is the runtime's. */
static bool place_is_ours(const hipMemLocation *where, hipMemAllocationType type)
{
	return where && where->type == hipMemLocationTypeDevice && where->id >= 0 &&
	       where->id < ss_device_count() && type == hipMemAllocationTypePinned;
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

	if (ss_capture_forbids_pools())
		return ss_fail(hipErrorStreamCaptureUnsupported);
	pool = handle ? ss_pool_hold(ss_core, handle) : NULL;
	if (!pool) {
		if (handle && !ss_pool_is_native(handle))
			return ss_fail(hipErrorInvalidValue);
		err = REAL(hipMemSetMemPool, where, type, handle);
		return place_is_ours(where, type) ? native_made_current(where->id, handle, err) :
						    ss_result(err);
	}
	if (place_is_ours(where, type) && where->id == ss_pool_device(pool))
		return make_current(where->id, pool);
	ss_pool_let_go(pool);
	return ss_fail(hipErrorInvalidValue);
}

/* ---- hipDeviceGetAttribute ---------------------------------------------- */

/* 5.x has the calls and says that it has not. */
hipError_t do_hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attr, int dev)
{
	hipError_t err = REAL(hipDeviceGetAttribute, value, attr, dev);

	if (err == hipSuccess && attr == hipDeviceAttributeMemoryPoolsSupported && value)
		*value = 1;
	return ss_result(err);
}
