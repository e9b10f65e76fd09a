/* SPDX-License-Identifier: MIT */
/* Access of devices to the memory of a pool: hipMemPoolSetAccess and GetAccess. No lock. */
#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

static bool can_access(int peer, int dev)
{
	int can = 0;

	return REAL(hipDeviceCanAccessPeer, &can, peer, dev) == hipSuccess && can;
}

/* Checks one entry of the list. A peer with read-only access can write as well, as in every
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
		return d->flags == hipMemAccessFlagsProtNone ?
			       hipErrorInvalidDevice :
		       d->flags == hipMemAccessFlagsProtRead &&
				       ss_runtime_at_least(ss_runtime(), 7, 3) ?
			       hipErrorNotSupported :
			       hipSuccess; /* (7.2.4, run: success) */
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
	status = ss_pool_set_access(pool, give, take);
	/* The owner always has full access. */
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
	pool = ss_pool_ref_handle(ss_core, handle);
	if (!pool)
		return NOT_OURS(handle, hipMemPoolSetAccess, handle, list, count);
	if (count > (size_t)devices)
		err = hipErrorInvalidDevice;
	else if (count)
		err = set_access(pool, list, count, devices);
	ss_pool_unref(pool);
	return err == hipSuccess ? ss_result(err) : ss_fail(err);
}

static hipMemAccessFlags pool_flags(const struct ss_pool *pool, int dev)
{
	return !(ss_pool_access(pool) >> dev & 1) ? hipMemAccessFlagsProtNone :
	       ss_pool_readers(pool) >> dev & 1   ? hipMemAccessFlagsProtRead :
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
