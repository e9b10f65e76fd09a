/* SPDX-License-Identifier: MIT */
/* Helpers that the handlers of streams and events share. */
#ifndef SS_SHIM_WATCHED_CALL_H
#define SS_SHIM_WATCHED_CALL_H

#include "core/order/watched.h"
#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/stream/timeline.h"

/* A HOT entry is the export itself and passes the call on if this function returns true. The fast
 * path reads only the variables of ss_fast_path(). */
static inline bool ss_hot_pass(void)
{
	return !ss_fast_path() && ss_pass(SS_ENTRY_SERVED);
}
#define FORWARD(name, ...) (ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

/* The timeline of a handle. 7.x follows a handle without checking it, so garbage and destroyed
 * streams crash in most calls (7.2.4). *refused: the real call must not be made in such a release,
 * and the error is that of other releases. */
static inline struct ss_timeline *ss_stream_checked(hipStream_t handle, bool *refused)
{
	struct ss_timeline *tl = ss_timeline_listed(ss_core, handle);
	hipError_t err = hipSuccess;

	*refused = false;
	if (likely(tl != NULL))
		return tl;
	tl = ss_stream(handle, &err);
	*refused = !tl && err == hipErrorInvalidHandle && ss_runtime()->major >= 7;
	return tl;
}

#endif
