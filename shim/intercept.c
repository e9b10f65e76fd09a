/* SPDX-License-Identifier: MIT */
/*
 * hipMalloc and hipFree, hipMallocAsync and hipFreeAsync: check, convert, call
 * the core, or pass on.
 *
 * What the core cannot serve goes to the real runtime, so that its result, and
 * its error, are what the program sees. Pointers that are not ours likewise.
 */
#include <stdint.h>
#include <stdlib.h>

#include "driver/rocm.h"
#include "shim/share/import.h"

/* ---- hipMalloc ---------------------------------------------------------- */

/* Beside a capture the runtime decides whether an allocation is legal, and ends
 * the capture where it is not (CHECK_STREAM_CAPTURE_SUPPORTED). */
static hipError_t malloc_guard(void)
{
	void *none = NULL;

	return REAL(hipMalloc, &none, 0);
}

/* hipMalloc and everything that is one inside. */
hipError_t ss_malloc(void **ptr, size_t size, bool guarded)
{
	enum ss_status status;
	hipError_t err;
	void *p = NULL;
	bool only;
	int dev;

	if (!ptr)
		return ss_fail(hipErrorInvalidValue);
	if (guarded && ss_capture_live()) {
		err = malloc_guard();
		if (err != hipSuccess)
			return ss_result(err);
	}
	if (!size) {
		*ptr = NULL;
		return ss_result(hipSuccess);
	}
	dev = ss_current_device(&err);
	if (dev < 0)
		return ss_result(err);
	only = ss_debt_allowed(dev);
	if (!only)
		status = ss_alloc_classic(ss_core, dev, size, &p);
	else if (likely(ss_hit_only_alloc(ss_core, dev, size, &p)))
		status = SS_OK;
	else
		status = ss_alloc_only(ss_core, ss_timeline_null(ss_core, dev), size, &p);
	if (only)
		ss_debt_confirm(dev);
	if (likely(status == SS_OK)) {
		*ptr = p;
		return ss_result(hipSuccess);
	}
	/* The runtime may still find a place for the exact size; and if not, the
	 * error is its own. Not past a limit that the user set, though. */
	if (status == SS_ERR_NOMEM && ss_options.limit.set)
		return ss_fail(hipErrorOutOfMemory);
	return ss_result(REAL(hipExtMallocWithFlags, ptr, size, hipDeviceMallocDefault));
}

static __attribute__((noinline)) hipError_t malloc_long(void **ptr, size_t size)
{
	if (unlikely(ss_pass(SS_SERVE)))
		return ss_real.hipMalloc ? ss_real.hipMalloc(ptr, size) : ss_real_missing();
	return ss_malloc(ptr, size, true);
}

hipError_t do_hipMalloc(void **ptr, size_t size)
{
	/* The one device there is, and one timeline. */
	if (ss_fast_path() && likely(ptr && ss_rocm.devices == 1) &&
	    (ss_debt_allowed_now(0) || ss_debt_allowed(0)) &&
	    likely(ss_hit_only_alloc(ss_core, 0, size, ptr))) {
		ss_debt_confirm(0);
		return hipSuccess;
	}
	return malloc_long(ptr, size);
}
SS_HOT(hipMalloc)

hipError_t do_hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags)
{
	if (flags != hipDeviceMallocDefault) {
		ss_observer_add(-1, SS_OBSERVER_FINE);
		return ss_result(REAL_RETRY(-1, hipExtMallocWithFlags, ptr, size, flags));
	}
	return ss_malloc(ptr, size, false);
}

/* ---- hipFree ------------------------------------------------------------ */

#define STREAMS_AT_ONCE 64

/* As SyncAllStreams in the runtime: the null stream, which joins the blocking
 * ones (also those of other threads), then each non-blocking one. */
hipError_t ss_wait_streams(int dev)
{
	void *few[STREAMS_AT_ONCE], **list = few;
	size_t n, max = STREAMS_AT_ONCE;
	hipError_t err = REAL(hipStreamSynchronize, NULL);

	while ((n = ss_streams_nonblocking(ss_core, dev, list, max)) > max) {
		if (list != few)
			free(list);
		max = n + 16;
		list = malloc(max * sizeof(*list));
		if (!list)
			return hipErrorOutOfMemory;
	}
	for (size_t i = 0; i < n && err == hipSuccess; i++) {
		struct ss_stream_pin *pin = ss_stream_pin(list[i]);

		if (!pin)
			continue; /* destroyed meanwhile: its retirement tells */
		err = REAL(hipStreamSynchronize, list[i]);
		ss_stream_unpin(pin);
	}
	if (list != few)
		free(list);
	return err;
}

/* Waits for what the real hipFree waits for. True: `t` may be granted. */
static bool wait_for_device(int dev, struct ss_token *t)
{
	bool distrusted = ss_distrusted(ss_core);
	struct ss_device_switch s;
	hipError_t err;

	if (!ss_device_switch(&s, dev))
		return false;
	*t = distrusted ? ss_device_sync_begin(ss_core, dev)
			: ss_streams_sync_begin(ss_core, dev);
	/* With a stream about that nobody saw, only the device knows them all. */
	err = distrusted ? REAL(hipDeviceSynchronize) : ss_wait_streams(dev);
	ss_device_restore(&s);
	if (err == hipSuccess)
		return true;
	ss_sync_end(ss_core, t, false, false);
	return false;
}

/* Beside a capture nothing of ours may touch a null stream, but the real hipFree
 * may (it waits inside); and after exit() began we do not know any more which streams there
 * are, but it does. So a page is allocated to be freed. */
static hipError_t wait_by_page(int dev)
{
	hipError_t err = hipSuccess;
	void *page = NULL;
	struct ss_device_switch s;

	if (!ss_device_switch(&s, dev))
		return err;
	if (REAL(hipExtMallocWithFlags, &page, 4096, hipDeviceMallocDefault) == hipSuccess)
		err = REAL(hipFree, page);
	else if (!ss_capture_live())
		err = REAL(hipDeviceSynchronize);
	ss_device_restore(&s);
	return err;
}

static hipError_t wait_inside(int dev)
{
	hipError_t err = REAL(hipFree, NULL); /* the guard: beside some captures that is an error */

	return err != hipSuccess || ss_options.free_sync == SS_FREE_SYNC_NEVER ? err
									       : wait_by_page(dev);
}

/* hipFreeAsync has no such guard, nor has hipIpcCloseMemHandle, and costs nobody his
 * capture. */
static hipError_t relaxed(hipError_t (*wait)(int), int dev)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	hipError_t err = REAL(hipThreadExchangeStreamCaptureMode, &mode);

	if (err != hipSuccess)
		return err;
	err = wait(dev);
	(void)REAL(hipThreadExchangeStreamCaptureMode, &mode);
	return err;
}

hipError_t ss_wait_in_runtime(int dev)
{
	return relaxed(wait_by_page, dev);
}

/* A classic free of a live block of ours on `dev`; `async`: by hipFreeAsync. */
static hipError_t free_here(void *ptr, int dev, bool async)
{
	struct ss_token t = {0};
	enum ss_status status;
	bool waited = false;

	/* The memory goes with the process. */
	if (ss_exiting())
		return ss_exit_waits() ? wait_inside(dev) : hipSuccess;
	if (!ss_scarce(ss_core, dev) && ss_debt_add(dev)) {
		status = ss_free_only(ss_core, ptr, ss_timeline_null(ss_core, dev));
		ss_debt_confirm(dev);
		return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
	}
	if (ss_capture_live()) {
		hipError_t err = async ? relaxed(wait_inside, dev) : wait_inside(dev);

		if (err != hipSuccess)
			return ss_result(err);
	} else if (ss_options.free_sync != SS_FREE_SYNC_NEVER) {
		waited = wait_for_device(dev, &t);
	}
	status = ss_free_classic(ss_core, ptr, waited ? &t : NULL);
	if (status != SS_OK)
		return ss_fail(ss_status_error(status));
	if (waited)
		ss_freed_idle(ss_core, dev);
	return ss_result(hipSuccess);
}

/* Nobody's, or the runtime's. */
static __attribute__((noinline)) hipError_t free_foreign(void *ptr)
{
	hipError_t err;

	if (ptr && ss_import_free(ptr, &err))
		return err;
	if (ss_exiting())
		return ss_real.hipFree ? ss_real.hipFree(ptr) : hipSuccess;
	return ss_result(REAL(hipFree, ptr));
}

static __attribute__((noinline)) hipError_t free_long(void *ptr)
{
	enum ss_status status;
	int dev;

	if (unlikely(ss_pass(SS_LATE)))
		return ss_real.hipFree ? ss_real.hipFree(ptr) : ss_real_missing();
	if (unlikely(atomic_load(&ss_self_imports)) && ss_self_import_release(ptr))
		return ss_result(hipSuccess);
	status = ptr ? ss_where(ss_core, ptr, &dev) : SS_ERR_FOREIGN;
	if (likely(status == SS_OK))
		return free_here(ptr, dev, false);
	return status == SS_ERR_FOREIGN ? free_foreign(ptr) : ss_fail(hipErrorInvalidValue);
}

hipError_t do_hipFree(void *ptr)
{
	int dev;

	if (ss_fast_path() && likely(!atomic_load(&ss_self_imports))) {
		dev = ss_hit_only_free(ss_core, ptr, ss_debt_add_now, ss_debt_add);
		if (likely(dev >= 0)) {
			ss_debt_confirm(dev);
			return hipSuccess;
		}
	}
	return free_long(ptr);
}
SS_HOT(hipFree)

/* ---- hipMallocAsync ----------------------------------------------------- */

/* pool NULL: the current one. */
static inline hipError_t alloc_on(struct ss_timeline *tl, struct ss_pool *pool, size_t size,
				  void **ptr)
{
	enum ss_status status = SS_OK;
	void *p = NULL;

	if (likely(size != 0))
		status = pool ? ss_alloc_async(ss_core, pool, tl, size, &p)
			      : ss_alloc_current(ss_core, tl, size, &p);
	*ptr = p; /* NULL for nothing, and where it failed */
	return likely(status == SS_OK) ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
}

/* A null stream that some capturing stream joins cannot order anything; the
 * native pools crash there (hip_mempool.cpp), CUDA says what we say. */
static bool null_beside_capture(const struct ss_timeline *tl)
{
	return ss_timeline_kind(tl) == SS_TL_NULL && atomic_load(&ss_captures_blocking) > 0;
}

/* Beside or inside a capture, or from a pool that is the runtime's. True: done. */
static __attribute__((noinline, cold)) bool
alloc_async_rare(struct ss_timeline *tl, void **ptr, size_t size, hipStream_t stream,
		 hipError_t *err)
{
	if (size && atomic_load(&ss_captures_blocking) && !ss_timeline_capturing(tl)) {
		*err = null_beside_capture(tl) ? hipErrorStreamCaptureImplicit :
		       ss_capture_refuses_alloc(ss_timeline_device(tl)) ?
		       hipErrorStreamCaptureUnsupported : hipSuccess;
		if (*err != hipSuccess) {
			*err = ss_fail(*err);
			return true;
		}
	}
	/* On a capturing stream it is a graph node. */
	if (!ss_timeline_capturing(tl) && !ss_pool_native_current(ss_timeline_device(tl)) &&
	    ss_pool_current(ss_core, ss_timeline_device(tl)))
		return false;
	if (ss_timeline_capturing(tl))
		ss_graph_memory_add(ss_timeline_device(tl), size);
	*err = ss_result(REAL_RETRY(ss_timeline_device(tl), hipMallocAsync, ptr, size, stream));
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

	if (unlikely(ss_pass(SS_SERVE)))
		return ss_real.hipMallocAsync ? ss_real.hipMallocAsync(ptr, size, stream)
					      : ss_real_missing();
	if (unlikely(!ptr))
		return ss_fail(hipErrorInvalidValue);
	tl = ss_stream(stream, &err);
	if (unlikely(!tl))
		return ss_fail(err);
	if ((unlikely(!ss_pool_current(ss_core, ss_timeline_device(tl))) || ss_capture_live() ||
	     ss_pools_native()) && alloc_async_rare(tl, ptr, size, stream, &err))
		return err;
	return alloc_on(tl, NULL, size, ptr);
}

hipError_t do_hipMallocAsync(void **ptr, size_t size, hipStream_t stream)
{
	/* Of what stands between a call and a hit, the core knows the rest: ss_slow_reasons. */
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
		return ss_result(REAL_RETRY(ss_device_of(stream), hipMallocFromPoolAsync, ptr, size,
					  handle, stream));
	}
	tl = ss_stream(stream, &err);
	if (!tl)
		return ss_fail(err);
	if (size && ss_capture_live()) {
		/* The runtime does not know our pool; the node comes from the
		 * graph memory of the device anyway. */
		if (ss_timeline_capturing(tl)) {
			ss_graph_memory_add(ss_timeline_device(tl), size);
			return ss_result(REAL_RETRY(ss_timeline_device(tl), hipMallocAsync, ptr, size,
						  stream));
		}
		if (null_beside_capture(tl))
			return ss_fail(hipErrorStreamCaptureImplicit);
	}
	pool = ss_pool_hold(ss_core, handle);
	if (!pool)
		return ss_fail(hipErrorInvalidValue);
	err = alloc_on(tl, pool, size, ptr);
	ss_pool_let_go(pool);
	return err;
}

/* ---- hipFreeAsync ------------------------------------------------------- */

/* 5.2 takes any pointer for an allocation of its own and crashes, 5.7 says success
 * to all of them: ask first. */
hipError_t ss_foreign_free_async(void *ptr, hipStream_t stream)
{
	size_t size = 0;

	if ((ss_quirk_flags(ss_runtime()->major, ss_runtime()->minor, NULL) &
	     SS_Q_CHECK_FREE_ASYNC) &&
	    REAL(hipMemPtrGetInfo, ptr, &size) != hipSuccess)
		return ss_fail(hipErrorInvalidValue);
	return ss_result(REAL(hipFreeAsync, ptr, stream));
}

static hipError_t free_rare(void *ptr, enum ss_status status, hipStream_t stream, int dev)
{
	hipError_t err;

	if (status == SS_ERR_FOREIGN)
		return ss_import_free_async(ptr, dev, &err) ? err
							    : ss_foreign_free_async(ptr, stream);
	if (status == SS_ERR_CLASSIC && ss_where(ss_core, ptr, &dev) == SS_OK)
		return free_here(ptr, dev, true);
	return ss_fail(ss_status_error(status));
}

static int free_async(void *ptr, void *native)
{
	hipStream_t stream = native;
	struct ss_timeline *tl;
	struct ss_block_info info;
	enum ss_status status;
	hipError_t err;

	if (unlikely(ss_pass(SS_LATE)))
		return ss_real.hipFreeAsync ? ss_real.hipFreeAsync(ptr, stream)
					    : ss_real_missing();
	/* Before the runtime looks at the stream, in every release. */
	if (unlikely(!ptr))
		return ss_runtime()->major < 7 ? ss_fail(hipErrorInvalidValue)
					       : ss_result(hipSuccess);
	if (ss_exiting()) {
		if (ss_lookup(ss_core, ptr, &info))
			return info.classic ? free_here(ptr, info.device, true) : hipSuccess;
		if (ss_import_free_async(ptr, 0, &err))
			return err;
		return ss_real.hipFreeAsync ? ss_real.hipFreeAsync(ptr, stream) : hipSuccess;
	}
	tl = ss_stream(stream, &err);
	if (unlikely(!tl))
		return ss_fail(err);
	if (ss_capture_live()) {
		if (ss_timeline_capturing(tl)) {
			if (ss_lookup(ss_core, ptr, &info))
				return ss_fail(hipErrorInvalidValue);
			return ss_result(REAL(hipFreeAsync, ptr, stream));
		}
		if (null_beside_capture(tl))
			return ss_fail(hipErrorStreamCaptureImplicit);
	}
	if (unlikely(atomic_load_explicit(&ss_self_imports, memory_order_relaxed)) &&
	    ss_self_import_release(ptr))
		return ss_result(hipSuccess);
	status = ss_free_async(ss_core, ptr, tl);
	if (likely(status == SS_OK))
		return ss_result(hipSuccess);
	return free_rare(ptr, status, stream, ss_timeline_device(tl));
}

hipError_t do_hipFreeAsync(void *ptr, hipStream_t stream)
{
	if (ss_tls_clear())
		return (hipError_t)ss_hit_free(ptr, stream, hits_core(), free_async);
	return (hipError_t)free_async(ptr, stream);
}
SS_HOT(hipFreeAsync)

/* ---- hipMemGetInfo ------------------------------------------------------ */

hipError_t do_hipMemGetInfo(size_t *free_bytes, size_t *total)
{
	size_t f = 0, t = 0;
	uint64_t fa, ta;
	hipError_t err;
	int dev;

	err = REAL(hipMemGetInfo, &f, &t);
	if (err != hipSuccess)
		return ss_result(err);
	fa = f;
	ta = t;
	dev = ss_current_device(&err);
	if (dev >= 0)
		ss_mem_info(ss_core, dev, &fa, &ta);
	if (free_bytes)
		*free_bytes = fa;
	if (total)
		*total = ta;
	return ss_result(hipSuccess);
}
