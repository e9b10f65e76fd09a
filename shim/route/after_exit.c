/* SPDX-License-Identifier: MIT */
/*
 * Calls that bring a pool or a block of ours when nothing is served any more: after exit()
 * began (a pool in a static object is destroyed then, another thread may still allocate),
 * and in a forked child. The runtime follows a pool's handle without looking at it, and
 * to share a block it would share the segment around it: so neither may reach it.
 *
 * No call into HIP but the one that was asked for: the runtime may have gone. In a child
 * the core is not asked either, since its locks may be held by threads that are not there.
 */
#include "shim/share/import.h"

#define PASS(name, ...) (ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

static bool in_child(void)
{
	return atomic_load(&ss_state) == SS_OFF;
}

static bool is_ours(const void *ptr)
{
	return ptr && ss_owns_range(ss_core, ptr, 1); /* takes no lock */
}

/* ---- what is answered --------------------------------------------------- */

/* The memory goes with the process. */
hipError_t after_exit_hipMemPoolDestroy(hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipMemPoolDestroy, pool);
}

hipError_t after_exit_hipMemPoolTrimTo(hipMemPool_t pool, size_t keep)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipMemPoolTrimTo, pool, keep);
}

/* Nothing is allocated from it any more, whichever it is. */
hipError_t after_exit_hipDeviceSetMemPool(int dev, hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipDeviceSetMemPool, dev, pool);
}

hipError_t after_exit_hipMemSetMemPool(hipMemLocation *where, hipMemAllocationType type,
				 hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess :
	       PASS(hipMemSetMemPool, where, type, pool);
}

/* Where the handler asks the core alone, which makes no call for it. */
#define ANSWERED(pool, name, ...) \
	(!ss_pool_is_handle(pool) ? PASS(name, __VA_ARGS__) : \
	 in_child() ? hipErrorNotInitialized : do_##name(__VA_ARGS__))

hipError_t after_exit_hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attr, void *value)
{
	return ANSWERED(pool, hipMemPoolSetAttribute, pool, attr, value);
}

hipError_t after_exit_hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attr, void *value)
{
	return ANSWERED(pool, hipMemPoolGetAttribute, pool, attr, value);
}

hipError_t after_exit_hipMemPoolGetAccess(hipMemAccessFlags *flags, hipMemPool_t pool,
				    hipMemLocation *location)
{
	return ANSWERED(pool, hipMemPoolGetAccess, flags, pool, location);
}

/* To take access away is to do nothing; nobody is let in. */
hipError_t after_exit_hipMemPoolSetAccess(hipMemPool_t handle, const hipMemAccessDesc *list,
				    size_t count)
{
	struct ss_pool *pool;

	if (!ss_pool_is_handle(handle))
		return PASS(hipMemPoolSetAccess, handle, list, count);
	if (in_child())
		return hipErrorNotInitialized;
	pool = ss_pool_from_handle(ss_core, handle);
	if (!pool || !list)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < count; i++)
		if (list[i].location.id < 0 || list[i].location.id >= ss_device_count())
			return hipErrorInvalidDevice;
		else if (list[i].flags != hipMemAccessFlagsProtNone &&
			 !(ss_pool_access(pool) >> list[i].location.id & 1))
			return hipErrorNotSupported;
	return hipSuccess;
}

/* ---- what is not done --------------------------------------------------- */

/* As hipMallocAsync is served by the runtime from exit() on. */
hipError_t after_exit_hipMallocFromPoolAsync(void **ptr, size_t size, hipMemPool_t pool,
				       hipStream_t stream)
{
	if (!ss_pool_is_handle(pool))
		return PASS(hipMallocFromPoolAsync, ptr, size, pool, stream);
	return in_child() ? hipErrorNotInitialized : PASS(hipMallocAsync, ptr, size, stream);
}

hipError_t after_exit_hipMemPoolExportToShareableHandle(void *handle, hipMemPool_t pool,
						  hipMemAllocationHandleType type,
						  unsigned int flags)
{
	return ss_pool_is_handle(pool) ? hipErrorInvalidValue :
	       PASS(hipMemPoolExportToShareableHandle, handle, pool, type, flags);
}

/* The runtime believes every byte of a descriptor, and ours are none of its own. */
hipError_t after_exit_hipMemPoolImportFromShareableHandle(hipMemPool_t *pool, void *handle,
						    hipMemAllocationHandleType type,
						    unsigned int flags)
{
	(void)pool, (void)handle, (void)type, (void)flags;
	return hipErrorInvalidValue;
}

hipError_t after_exit_hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *ptr)
{
	return is_ours(ptr) ? hipErrorInvalidValue : PASS(hipMemPoolExportPointer, data, ptr);
}

hipError_t after_exit_hipMemPoolImportPointer(void **ptr, hipMemPool_t pool,
					hipMemPoolPtrExportData *data)
{
	struct ss_handle h;

	if (ss_pool_is_handle(pool) || (data && ss_pointer_parse(data, &h)))
		return hipErrorInvalidValue;
	return PASS(hipMemPoolImportPointer, ptr, pool, data);
}

hipError_t after_exit_hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
	return is_ours(ptr) ? hipErrorInvalidValue : PASS(hipIpcGetMemHandle, handle, ptr);
}
