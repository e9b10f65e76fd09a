/* SPDX-License-Identifier: MIT */
/*
 * The entry points of the hipMalloc, hipFree, hipMallocAsync and hipFreeAsync families.
 * Each checks its arguments, asks the core, or passes the call on.
 *
 * The real runtime gets each request that the core cannot serve, so the program sees the runtime's
 * result or error. The runtime also gets pointers that are not ours.
 */
#include <stdint.h>

#include "driver/rocm/quirks.h"
#include "driver/rocm/rocm.h"
#include "shim/alloc/classic.h"
#include "shim/alloc/debt.h"
#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/process/outside.h"
#include "shim/alloc/native_pools.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/current_device.h"
#include "shim/process/exit.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/share/import.h"
#include "shim/share/mappings.h"
#include "shim/share/self_import.h"
#include "shim/stream/capture.h"
#include "shim/stream/timeline.h"

/* Looks up the pointer of a free. */
static enum ss_status find(const void *ptr, struct ss_found *out)
{
	enum ss_status status = ss_find(ss_core, ptr, out);

	return unlikely(ss_checking) && status == SS_OK && ss_check_kept(out) ? SS_ERR_INVALID :
										status;
}

#define CALL(name, ...) (ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

/* The result of a real free of memory that is not ours. */
static hipError_t freed(hipError_t err, const void *ptr)
{
	if (err == hipSuccess)
		ss_limit_drop(ptr);
	return ss_result(err);
}

#define FREED(call, ptr) __extension__({ \
	const struct ss_outside_free outside_ = ss_outside_free_begin(ptr); \
	freed(ss_outside_free_end(&outside_, call), ptr); \
})

/* ---- hipMalloc ---------------------------------------------------------- */

static __attribute__((noinline)) hipError_t malloc_long(void **ptr, size_t size)
{
	hipError_t err;

	if (unlikely(ss_pass(SS_ENTRY_SERVED)))
		return ss_real.hipMalloc ? ss_real.hipMalloc(ptr, size) : ss_real_missing();
	SS_SERVED;
	if (unlikely(ss_checking))
		ss_check_call("hipMalloc");
	err = ss_malloc(ptr, size, true);
	/* A program often makes no call for long after it has taken its memory. */
	if (likely(err == hipSuccess))
		ss_live_tick();
	return err;
}

hipError_t do_hipMalloc(void **ptr, size_t size)
{
	/* The process has one device, and one timeline orders its work. */
	if (ss_fast_path() && likely(ptr && ss_rocm_devices == 1) &&
	    (ss_debt_allowed_now(0) || ss_debt_allowed(0)) &&
	    likely(ss_hit_classic_alloc(ss_core, 0, size, ptr))) {
		ss_debt_confirm(0);
		return hipSuccess;
	}
	return malloc_long(ptr, size);
}
SS_HOT(hipMalloc)

hipError_t do_hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags)
{
	if (flags != hipDeviceMallocDefault) {
		hipError_t err;

		ss_observer_add(-1, SS_OBSERVER_FINE);
		/* Memory for signals is host memory. */
		err = SS_LIMITED(-1, flags == hipMallocSignalMemory ? 0 : size, *ptr,
				 CALL(hipExtMallocWithFlags, ptr, size, flags));
		if (err == hipSuccess && flags != hipMallocSignalMemory)
			ss_outside_keep(SS_TRACE_OUTSIDE_DEVICE, *ptr, -1, size);
		if (unlikely(ss_checking) && err == hipSuccess)
			ss_check_host_memory(*ptr, size, false);
		return ss_result(err);
	}
	return ss_malloc(ptr, size, false);
}

/* ---- hipFree ------------------------------------------------------------ */

/* The real call waits for the device. */
#define WAITING_FOR_ALL(call) __extension__({ \
	struct ss_waiting w_ = ss_waiting_begin_device(ss_core, ss_current_device(NULL)); \
	hipError_t waited_ = (call); \
	ss_waiting_end(ss_core, &w_); \
	waited_; \
})

/* An imported block, memory of the runtime, or a wild pointer. */
static __attribute__((noinline)) hipError_t free_foreign(void *ptr)
{
	hipError_t err;

	if (ptr && ss_import_free(ptr, &err))
		return err;
	if (ss_exiting())
		return ss_real.hipFree ? ss_real.hipFree(ptr) : hipSuccess;
	return FREED(WAITING_FOR_ALL(REAL(hipFree, ptr)), ptr);
}

static __attribute__((noinline)) hipError_t free_long(void *ptr)
{
	enum ss_status status;
	struct ss_found found;
	hipError_t err;

	if (unlikely(ss_pass(SS_ENTRY_ALWAYS)))
		return ss_real.hipFree ? ss_real.hipFree(ptr) : ss_real_missing();
	SS_SERVED;
	if (unlikely(atomic_load(&ss_self_imports)) && ss_self_import_release(ptr))
		return ss_result(hipSuccess);
	if (unlikely(ss_checking))
		ss_check_call("hipFree");
	status = ptr ? find(ptr, &found) : SS_ERR_FOREIGN;
	if (likely(status == SS_OK))
		return ss_free_owned(ptr, &found, false);
	err = status == SS_ERR_FOREIGN ? free_foreign(ptr) : ss_fail(hipErrorInvalidValue);
	if (unlikely(ss_checking) && ptr)
		ss_check_freed(NULL, ptr,
			       err != hipErrorInvalidValue && err != hipErrorInvalidDevicePointer);
	return err;
}

hipError_t do_hipFree(void *ptr)
{
	int dev;

	if (ss_fast_path() && likely(!atomic_load(&ss_self_imports))) {
		dev = ss_hit_classic_free(ss_core, ptr, ss_debt_add);
		if (likely(dev >= 0)) {
			ss_debt_confirm(dev);
			return hipSuccess;
		}
	}
	return free_long(ptr);
}
SS_HOT(hipFree)

/* ---- hipMallocAsync ----------------------------------------------------- */

/* pool NULL: the current pool of the timeline's device. */
static inline enum ss_status alloc_from(struct ss_timeline *tl, struct ss_pool *pool, size_t size,
					void **ptr)
{
	return pool ? ss_alloc_async(ss_core, pool, tl, size, ptr) :
		      ss_alloc_current(ss_core, tl, size, ptr);
}

static __attribute__((noinline, cold)) enum ss_status alloc_checked(struct ss_timeline *tl,
								    struct ss_pool *pool,
								    size_t size, void **ptr)
{
	size_t room = ss_check_size(size);
	enum ss_status status = ss_check_guarded(tl, pool, size, ptr);

	if (status != SS_OK)
		status = alloc_from(tl, pool, room, ptr);
	if (status != SS_OK && ss_check_release())
		status = alloc_from(tl, pool, room, ptr);
	if (status != SS_OK) { /* there may be room without padding */
		room = size;
		status = alloc_from(tl, pool, size, ptr);
	}
	if (status == SS_OK)
		ss_check_allocated(tl, *ptr, size, room);
	return status;
}

static inline hipError_t alloc_on(struct ss_timeline *tl, struct ss_pool *pool, size_t size,
				  void **ptr)
{
	enum ss_status status = SS_OK;
	void *p = NULL;

	if (likely(size != 0))
		status = unlikely(ss_checking) ? alloc_checked(tl, pool, size, &p) :
						 alloc_from(tl, pool, size, &p);
	*ptr = p;       /* NULL for size 0 and for a failure */
	ss_live_tick(); /* as in malloc_long */
	return likely(status == SS_OK) ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

/* While a blocking stream captures, the null stream cannot order anything. The runtime's pools
 * crash in this case (hip_mempool.cpp); CUDA returns this error. */
static bool null_beside_capture(const struct ss_timeline *tl)
{
	return ss_timeline_kind(tl) == SS_TL_NULL && atomic_load(&ss_captures_blocking) > 0;
}

/* Handles an allocation during or inside a capture, or from a pool of the runtime. True: *err is
 * the answer. False: allocate as usual. */
static __attribute__((noinline, cold)) bool alloc_async_rare(struct ss_timeline *tl, void **ptr,
							     size_t size, hipStream_t stream,
							     hipError_t *err)
{
	if (size && atomic_load(&ss_captures_blocking) && !ss_timeline_capturing(tl)) {
		*err = null_beside_capture(tl) ? hipErrorStreamCaptureImplicit :
		       ss_capture_refuses_alloc(ss_timeline_device(tl)) ?
						 hipErrorStreamCaptureUnsupported :
						 hipSuccess;
		if (*err != hipSuccess) {
			*err = ss_fail(*err);
			return true;
		}
	}
	/* On a capturing stream the allocation becomes a graph node of the runtime. */
	if (!ss_timeline_capturing(tl) && !ss_pool_native_current(ss_timeline_device(tl)) &&
	    ss_pool_current(ss_core, ss_timeline_device(tl)))
		return false;
	if (ss_timeline_capturing(tl))
		ss_graph_memory_add(ss_timeline_device(tl), size);
	*err = ss_result(SS_LIMITED(ss_timeline_device(tl), size, *ptr,
				    CALL(hipMallocAsync, ptr, size, stream)));
	if (unlikely(ss_checking) && *err == hipSuccess)
		ss_check_device_memory(*ptr, size);
	return true;
}

static inline struct ss_core *hits_core(void)
{
	return atomic_load_explicit(&ss_hits_core, memory_order_acquire);
}

static int malloc_async(void **ptr, size_t size, void *native)
{
	hipStream_t stream = native;
	struct ss_timeline *tl;
	hipError_t err;

	if (unlikely(ss_pass(SS_ENTRY_SERVED)))
		return ss_real.hipMallocAsync ? ss_real.hipMallocAsync(ptr, size, stream) :
						ss_real_missing();
	SS_SERVED;
	if (unlikely(ss_checking))
		ss_check_call("hipMallocAsync");
	if (unlikely(!ptr))
		return ss_fail(hipErrorInvalidValue);
	tl = ss_stream(stream, &err);
	if (unlikely(!tl))
		return ss_fail(err);
	if ((unlikely(!ss_pool_current(ss_core, ss_timeline_device(tl))) || ss_capture_live() ||
	     ss_pools_native()) &&
	    alloc_async_rare(tl, ptr, size, stream, &err))
		return err;
	return alloc_on(tl, NULL, size, ptr);
}

hipError_t do_hipMallocAsync(void **ptr, size_t size, hipStream_t stream)
{
	/* The core checks the rest of ss_fast_path() itself (ss_hits_gate). */
	if (ss_tls_clear() && likely(ptr))
		return (hipError_t)ss_hit_alloc(ptr, size, stream, hits_core(), malloc_async);
	return (hipError_t)malloc_async(ptr, size, stream);
}
SS_HOT(hipMallocAsync)

hipError_t do_hipMallocFromPoolAsync(void **ptr, size_t size, hipMemPool_t handle,
				     hipStream_t stream)
{
	struct ss_timeline *tl;
	struct ss_pool *pool;
	hipError_t err;

	if (!ptr || !handle)
		return ss_fail(hipErrorInvalidValue);
	if (!ss_pool_from_handle(ss_core, handle)) {
		if (!ss_pool_is_native(handle))
			return ss_fail(hipErrorInvalidValue);
		err = SS_LIMITED(ss_device_of(stream), size, *ptr,
				 CALL(hipMallocFromPoolAsync, ptr, size, handle, stream));
		if (err == hipSuccess)
			ss_outside_keep(SS_TRACE_OUTSIDE_DEVICE, *ptr, ss_device_of(stream), size);
		return ss_result(err);
	}
	tl = ss_stream(stream, &err);
	if (!tl)
		return ss_fail(err);
	if (size && ss_capture_live()) {
		/* The runtime does not know our pool. A graph node gets memory of the
		 * device's graph pool in any case. */
		if (ss_timeline_capturing(tl)) {
			ss_graph_memory_add(ss_timeline_device(tl), size);
			err = ss_result(SS_LIMITED(ss_timeline_device(tl), size, *ptr,
						   CALL(hipMallocAsync, ptr, size, stream)));
			if (unlikely(ss_checking) && err == hipSuccess)
				ss_check_device_memory(*ptr, size);
			return err;
		}
		if (null_beside_capture(tl))
			return ss_fail(hipErrorStreamCaptureImplicit);
	}
	pool = ss_pool_ref_handle(ss_core, handle);
	if (!pool)
		return ss_fail(hipErrorInvalidValue);
	err = alloc_on(tl, pool, size, ptr);
	ss_pool_unref(pool);
	return err;
}

/* ---- hipFreeAsync ------------------------------------------------------- */

/* The runtime of 5.2 takes any pointer for its own allocation and crashes; the runtime of 5.7
 * returns success for any pointer. So first ask the runtime whether it knows the pointer. */
static hipError_t foreign_free_async(void *ptr, hipStream_t stream)
{
	size_t size = 0;

	if ((ss_quirk_flags(ss_runtime()->major, ss_runtime()->minor, NULL) &
	     SS_Q_CHECK_FREE_ASYNC) &&
	    REAL(hipMemPtrGetInfo, ptr, &size) != hipSuccess)
		return ss_fail(hipErrorInvalidValue);
	return FREED(REAL(hipFreeAsync, ptr, stream), ptr);
}

/* After exit() has begun. */
static hipError_t free_async_at_exit(void *ptr, hipStream_t stream)
{
	struct ss_found found;
	hipError_t err;

	switch (find(ptr, &found)) {
	case SS_OK:
		if (found.classic)
			return ss_free_owned(ptr, &found, true);
		if (unlikely(ss_checking))
			ss_check_freeing(NULL, ptr);
		ss_free_at_exit(&found);
		return hipSuccess;
	case SS_ERR_FOREIGN:
		if (ss_import_free_async(ptr, 0, &err))
			return err;
		return ss_real.hipFreeAsync ? ss_real.hipFreeAsync(ptr, stream) : hipSuccess;
	default:
		if (unlikely(ss_checking))
			ss_check_freed(NULL, ptr, false);
		return hipSuccess;
	}
}

/* `status`: the result of ss_find() for ptr. */
static hipError_t free_found_async(enum ss_status status, const struct ss_found *found, void *ptr,
				   struct ss_timeline *tl, hipStream_t stream)
{
	hipError_t err;

	if (unlikely(status == SS_ERR_FOREIGN))
		return ss_import_free_async(ptr, ss_timeline_device(tl), &err) ?
			       err :
			       foreign_free_async(ptr, stream);
	if (likely(status == SS_OK)) {
		if (unlikely(ss_checking) && !found->classic) {
			ss_check_freeing(tl, ptr);
			if (ss_check_keep(tl, ptr, found))
				return ss_result(hipSuccess);
		}
		status = ss_free_found_async(ss_core, found, tl);
	}
	if (unlikely(status == SS_ERR_CLASSIC))
		return ss_free_owned(ptr, found, true);
	return likely(status == SS_OK) ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

static int free_async(void *ptr, void *native)
{
	hipStream_t stream = native;
	struct ss_timeline *tl;
	struct ss_found found;
	hipError_t err;

	if (unlikely(ss_pass(SS_ENTRY_ALWAYS)))
		return ss_real.hipFreeAsync ? ss_real.hipFreeAsync(ptr, stream) : ss_real_missing();
	SS_SERVED;
	if (unlikely(ss_checking))
		ss_check_call("hipFreeAsync");
	/* Every release checks this before it looks at the stream. */
	if (unlikely(!ptr))
		return ss_runtime()->major < 7 ? ss_fail(hipErrorInvalidValue) :
						 ss_result(hipSuccess);
	if (ss_exiting())
		return free_async_at_exit(ptr, stream);
	tl = ss_stream(stream, &err);
	if (unlikely(!tl))
		return ss_fail(err);
	if (ss_capture_live()) {
		if (ss_timeline_capturing(tl)) {
			if (ss_find(ss_core, ptr, &found) != SS_ERR_FOREIGN)
				return ss_fail(hipErrorInvalidValue);
			return FREED(REAL(hipFreeAsync, ptr, stream), ptr);
		}
		if (null_beside_capture(tl))
			return ss_fail(hipErrorStreamCaptureImplicit);
	}
	if (unlikely(atomic_load_explicit(&ss_self_imports, memory_order_relaxed)) &&
	    ss_self_import_release(ptr))
		return ss_result(hipSuccess);
	err = free_found_async(find(ptr, &found), &found, ptr, tl, stream);
	if (unlikely(ss_checking))
		ss_check_freed(tl, ptr,
			       err != hipErrorInvalidValue && err != hipErrorInvalidDevicePointer);
	return err;
}

hipError_t do_hipFreeAsync(void *ptr, hipStream_t stream)
{
	if (ss_tls_clear())
		return (hipError_t)ss_hit_free(ptr, stream, hits_core(), free_async);
	return (hipError_t)free_async(ptr, stream);
}
SS_HOT(hipFreeAsync)

/* ---- calls for host memory that are given a block of ours --------------- */

static bool is_ours(void *ptr)
{
	struct ss_block_info info;
	struct ss_found found;
	unsigned number;

	return ptr && (ss_find(ss_core, ptr, &found) != SS_ERR_FOREIGN ||
		       ss_import_find(ptr, &info, &number));
}

static hipError_t free_ours(void *ptr)
{
	if (unlikely(ss_checking))
		ss_check_host_free(ptr);
	return do_hipFree(ptr);
}

static hipError_t freed_host(hipError_t err, void *ptr)
{
	if (unlikely(ss_checking) && err != hipSuccess)
		ss_check_host_memory_kept(ptr);
	if (unlikely(ss_checking) && err == hipErrorInvalidValue)
		ss_check_freed(NULL, ptr, false);
	return ss_result(err);
}

#define FREED_HOST(call, ptr) __extension__({ \
	const struct ss_outside_free outside_ = ss_outside_free_begin(ptr); \
	freed_host(ss_outside_free_end(&outside_, call), ptr); \
})

/* The runtime frees device memory in this call, too: the runtime looks the address up and frees the
 * allocation, which would be our segment with every other block in it (7.2.4). */
hipError_t do_hipHostFree(void *ptr)
{
	if (unlikely(ss_checking))
		ss_check_host_memory_gone(ptr);
	return is_ours(ptr) ? free_ours(ptr) :
			      FREED_HOST(WAITING_FOR_ALL(REAL(hipHostFree, ptr)), ptr);
}

hipError_t do_hipFreeHost(void *ptr)
{
	if (unlikely(ss_checking))
		ss_check_host_memory_gone(ptr);
	return is_ours(ptr) ? free_ours(ptr) :
			      FREED_HOST(WAITING_FOR_ALL(REAL(hipFreeHost, ptr)), ptr);
}

/* The program may have registered part of a segment. Then the runtime knows a range that starts at
 * ptr. Without such a range the runtime would find and forget the segment. */
hipError_t do_hipHostUnregister(void *ptr)
{
	hipDeviceptr_t base = NULL;
	struct ss_block_info info;
	size_t size = 0;

	if (unlikely(ss_checking))
		ss_check_host_memory_gone(ptr);
	if (ptr && ss_lookup(ss_core, ptr, &info) &&
	    (info.backing != SS_BACKING_HIP ||
	     REAL(hipMemGetAddressRange, &base, &size, (hipDeviceptr_t)ptr) != hipSuccess ||
	     base != (hipDeviceptr_t)ptr || base == (hipDeviceptr_t)info.segment))
		return ss_fail(hipErrorHostMemoryNotRegistered);
	return ss_result(REAL(hipHostUnregister, ptr));
}
