/* SPDX-License-Identifier: MIT */
/*
 * Memory of pools between processes: hipMemPoolExportPointer and its import. A pointer's export
 * data names the segment and the offset in it. The importer opens and closes the memory as memory
 * of hipIpc* (import.c).
 *
 * Locks: natives_lock (the pools of the runtime that import the runtime's own pointers). Leaf.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "shim/alloc/last_error.h"
#include "shim/alloc/native_pools.h"
#include "shim/alloc/observers.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/share/export.h"
#include "shim/share/import.h"
#include "shim/share/mappings.h"
#include "shim/share/pool_pointer.h"
#include "shim/share/self_import.h"

_Static_assert(sizeof(hipMemPoolPtrExportData) == SS_HANDLE_BYTES, "hipMemPoolPtrExportData");

hipError_t do_hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *ptr)
{
	struct ss_ipc_place place;
	struct ss_handle h;
	enum ss_status s;
	hipError_t err;

	if (!data || !ptr)
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	s = ss_ipc_find(ss_core, ptr, &place);
	if (s == SS_ERR_FOREIGN && !ss_import_inside(ptr))
		return ss_result(REAL(hipMemPoolExportPointer, data, ptr));
	if (s != SS_OK && unlikely(ss_checking))
		ss_check_no_handle("hipMemPoolExportPointer", ptr);
	if (s != SS_OK)
		return ss_fail(hipErrorInvalidValue);
	err = ss_export_handle(&place, &h);
	if (err != hipSuccess)
		return ss_fail(err);
	if (!ss_pointer_pack(&h, data))
		return ss_fail(hipErrorInvalidValue);
	ss_ipc_export(ss_core, &place);
	return ss_result(hipSuccess);
}

static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;
static hipMemPool_t natives[SS_MAX_DEVICES];

void ss_pool_pointer_reset(int dev)
{
	pthread_mutex_lock(&natives_lock);
	natives[dev] = NULL;
	pthread_mutex_unlock(&natives_lock);
}

/* The pool of the runtime that imports pointers of a process without the shim; NULL: the pool could
 * not be made. */
static hipMemPool_t native_pool(int dev)
{
	hipMemPoolProps props;
	hipMemPool_t pool, mine = NULL;

	pthread_mutex_lock(&natives_lock);
	pool = natives[dev];
	pthread_mutex_unlock(&natives_lock);
	if (pool)
		return pool;
	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = hipMemHandleTypePosixFileDescriptor;
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = dev;
	ss_import_watch(); /* a reset of the device destroys the pool */
	if (REAL(hipMemPoolCreate, &mine, &props) != hipSuccess)
		return NULL;
	pthread_mutex_lock(&natives_lock);
	pool = natives[dev];
	if (!pool)
		pool = natives[dev] = mine;
	pthread_mutex_unlock(&natives_lock);
	if (pool != mine)
		(void)REAL(hipMemPoolDestroy, mine);
	return pool;
}

hipError_t do_hipMemPoolImportPointer(void **ptr, hipMemPool_t which, hipMemPoolPtrExportData *data)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, which);
	hipMemPool_t native = ss_pool_is_native(which) ? which : NULL;
	hipError_t err = hipErrorInvalidValue;
	struct ss_handle h;
	int dev;

	if (!ptr || !data || (!pool && !native))
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	dev = pool ? ss_pool_device(pool) : ss_current_device(&err);
	if (dev < 0)
		return ss_fail(err);
	if (ss_pointer_parse(data, &h)) {
		if (h.pid != (uint32_t)getpid() || !ss_self_import_add(&h, ptr, &err))
			err = ss_import_pointer(&h, dev, ptr);
		return err == hipSuccess ? ss_result(err) : ss_fail(err);
	}
	if (!ss_pointer_native(data))
		return ss_fail(hipErrorInvalidValue);
	if (!native)
		native = native_pool(dev);
	if (!native)
		return ss_fail(hipErrorNotSupported);
	return ss_result(REAL(hipMemPoolImportPointer, ptr, native, data));
}
