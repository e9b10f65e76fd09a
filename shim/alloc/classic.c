/* SPDX-License-Identifier: MIT */
/*
 * Allocates and frees memory of hipMalloc in the core: memory that any stream, peer or other
 * process may touch at once. The real runtime gets each request that the core cannot serve, so the
 * program sees the runtime's result or error. No lock.
 */
#include "shim/alloc/classic.h"
#include "shim/alloc/debt.h"
#include "shim/alloc/device_wait.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/process/outside.h"
#include "shim/check/checker.h"
#include "shim/process/current_device.h"
#include "shim/process/exit.h"
#include "shim/process/real.h"
#include "trace/writer.h"

/* While a stream captures, the runtime decides whether an allocation is legal, and ends the capture
 * if the allocation is not (CHECK_STREAM_CAPTURE_SUPPORTED). A call for 0 bytes asks the
 * runtime. */
static hipError_t capture_guard(void)
{
	void *none = NULL;

	return REAL(hipMalloc, &none, 0);
}

static enum ss_status serve(int dev, size_t size, void **ptr)
{
	bool single = ss_debt_allowed(dev); /* one timeline orders all work of the device */
	enum ss_status status;

	if (!single)
		return ss_alloc_classic(ss_core, dev, size, ptr);
	if (likely(ss_hit_classic_alloc(ss_core, dev, size, ptr)))
		status = SS_OK;
	else
		status = ss_alloc_single(ss_core, ss_timeline_null(ss_core, dev), size, ptr);
	ss_debt_confirm(dev);
	return status;
}

static __attribute__((noinline, cold)) enum ss_status serve_checked(int dev, size_t size,
								    void **ptr)
{
	size_t room = ss_check_size(size);
	enum ss_status status = ss_check_guarded(NULL, ss_pool_classic(ss_core, dev), size, ptr);

	if (status != SS_OK)
		status = serve(dev, room, ptr);
	if (status == SS_ERR_NOMEM && ss_check_release())
		status = serve(dev, room, ptr);
	if (status == SS_OK)
		ss_check_allocated(NULL, *ptr, size, room);
	return status;
}

hipError_t ss_malloc(void **ptr, size_t size, bool guarded)
{
	enum ss_status status;
	hipError_t err;
	void *p = NULL;
	int dev;

	if (!ptr)
		return ss_fail(hipErrorInvalidValue);
	if (guarded && ss_capture_live()) {
		err = capture_guard();
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
	status = unlikely(ss_checking) ? serve_checked(dev, size, &p) : serve(dev, size, &p);
	if (likely(status == SS_OK)) {
		*ptr = p;
		return ss_result(hipSuccess);
	}
	/* The runtime must not serve a request that the user's limit refuses. */
	if (status == SS_ERR_NOMEM && ss_options.limit.set)
		return ss_fail(hipErrorOutOfMemory);
	/* If the pool did not try to make room, idle memory of ours may be all that is left. */
	if (likely(!ss_limited() && status != SS_ERR_WOULD_WAIT))
		err = SS_TAKING(REAL(hipExtMallocWithFlags, ptr, size, hipDeviceMallocDefault));
	else
		err = SS_LIMITED(dev, size, *ptr,
				 ss_real.hipExtMallocWithFlags(ptr, size, hipDeviceMallocDefault));
	if (err == hipSuccess)
		ss_outside_keep(SS_TRACE_OUTSIDE_DEVICE, *ptr, dev, size);
	return ss_result(err);
}

void ss_free_at_exit(const struct ss_found *f)
{
	struct ss_token none = {0};

	/* The free of an exported block releases its segment, which needs the runtime. Nothing is
	 * allocated after exit() has begun, so the core need not know when the block becomes idle.
	 * (If a signal handler has called exit() inside one of our calls, this may wait for a lock
	 * that the interrupted call holds. The real hipFree may, too.) */
	if (ss_exit_waits())
		(void)ss_free_found(ss_core, f, &none);
	else
		(void)ss_free_counted(f);
}

static hipError_t free_owned(void *ptr, const struct ss_found *f, bool async)
{
	int dev = f->device;
	struct ss_token t = {0};
	enum ss_status status;
	uint64_t begin = ss_trace_wait_begin();
	bool waited = false;

	if (ss_exiting()) {
		hipError_t err = ss_exit_waits() ? ss_wait_in_free(dev) : hipSuccess;

		ss_free_at_exit(f);
		return err;
	}
	if (!ss_device_low(ss_core, dev) && ss_debt_add(dev)) {
		status = ss_free_stream(ss_core, f, ss_timeline_null(ss_core, dev));
		ss_debt_confirm(dev);
		return status == SS_OK ? ss_result(hipSuccess) : ss_fail(ss_status_error(status));
	}
	if (ss_capture_live()) {
		hipError_t err = async ? ss_wait_in_free_relaxed(dev) : ss_wait_in_free(dev);

		ss_trace_wait_end(begin, SS_TRACE_WAIT_FREE, dev, NULL);
		if (err != hipSuccess)
			return ss_result(err);
	} else if (ss_options.free_sync != SS_FREE_SYNC_NEVER) {
		waited = ss_wait_device(dev, &t);
		if (!waited && ss_capture_live()) /* a capture began during the wait */
			(void)ss_wait_in_runtime(dev);
		ss_trace_wait_end(begin, SS_TRACE_WAIT_FREE, dev, NULL);
	}
	if (unlikely(ss_checking) && waited && ss_check_keep(NULL, ptr, f)) {
		ss_sync_end(ss_core, &t, true, false);
		return ss_result(hipSuccess);
	}
	status = ss_free_found(ss_core, f, waited ? &t : NULL);
	if (status != SS_OK)
		return ss_fail(ss_status_error(status));
	if (waited)
		ss_freed_idle(ss_core, dev);
	return ss_result(hipSuccess);
}

hipError_t ss_free_owned(void *ptr, const struct ss_found *f, bool async)
{
	hipError_t err;

	if (unlikely(ss_checking))
		ss_check_freeing(NULL, ptr);
	err = free_owned(ptr, f, async);
	/* A capture may forbid the wait. At exit the error comes from the wait alone. */
	if (unlikely(ss_checking) && err != hipSuccess && !ss_exiting())
		(void)ss_check_not_freed(ptr);
	return err;
}
