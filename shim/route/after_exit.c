/* SPDX-License-Identifier: MIT */
/*
 * Calls with a pool or a block of ours when service has ended: after exit() has begun (a static
 * object's destructor may destroy a pool, another thread may still allocate), and in a forked
 * child. The runtime follows a pool's handle without checking it, and would share the whole segment
 * instead of a block. So neither may reach the runtime.
 *
 * This file makes no HIP call but the program's own, because the runtime may be gone. In a child
 * the core is not asked either, because threads that the child does not have may hold its locks.
 */
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/exit.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/process/submit_gate.h"
#include "shim/share/handle.h"

#define PASS(name, ...) (ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

static bool in_child(void)
{
	return atomic_load(&ss_state) == SS_OFF;
}

static bool is_ours(const void *ptr)
{
	return ptr && ss_owns_range(ss_core, ptr, 1); /* takes no lock */
}

/* ---- calls that succeed ------------------------------------------------- */

/* The end of the process releases the memory. */
hipError_t after_exit_hipMemPoolDestroy(hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipMemPoolDestroy, pool);
}

hipError_t after_exit_hipMemPoolTrimTo(hipMemPool_t pool, size_t keep)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipMemPoolTrimTo, pool, keep);
}

/* The current pool does not matter, because nothing is allocated any more. */
hipError_t after_exit_hipDeviceSetMemPool(int dev, hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipDeviceSetMemPool, dev, pool);
}

hipError_t after_exit_hipMemSetMemPool(hipMemLocation *where, hipMemAllocationType type,
				       hipMemPool_t pool)
{
	return ss_pool_is_handle(pool) ? hipSuccess : PASS(hipMemSetMemPool, where, type, pool);
}

/* For handlers that call only the core, which makes no HIP call for them. */
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

/* Removing access succeeds and does nothing; new access is refused. */
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

/* ---- calls that destroy streams ----------------------------------------- */

/* From now on the core knows streams that have been destroyed, and must not query them. No stream
 * is destroyed while the end of the process queries streams. Nothing here needs memory that sleeps,
 * and the devices may never have room for it again. */
#define DESTROYS_STREAMS(name, ...) __extension__({ \
	enum ss_gate gate_ = ss_gate_enter_as(SS_GATE_ASLEEP_TOO); \
	hipError_t err_ = hipErrorDeinitialized; \
	if (gate_ >= SS_GATE_OPEN) { \
		ss_exit_streams_unknown(); \
		err_ = PASS(name, ##__VA_ARGS__); \
	} \
	ss_gate_leave(gate_); \
	err_; })

hipError_t after_exit_hipStreamDestroy(hipStream_t stream)
{
	return DESTROYS_STREAMS(hipStreamDestroy, stream);
}

hipError_t after_exit_hipDeviceReset(void)
{
	return DESTROYS_STREAMS(hipDeviceReset);
}

hipError_t after_exit_hipExecutionCtxDestroy(void *context)
{
	return DESTROYS_STREAMS(hipExecutionCtxDestroy, context);
}

/* ---- calls that are refused --------------------------------------------- */

/* Since exit() began the runtime serves hipMallocAsync, and so this call, too. */
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
	return ss_pool_is_handle(pool) ?
		       hipErrorInvalidValue :
		       PASS(hipMemPoolExportToShareableHandle, handle, pool, type, flags);
}

/* The runtime does not check a descriptor, and ours do not have the runtime's format. */
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
