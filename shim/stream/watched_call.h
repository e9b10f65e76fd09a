/* SPDX-License-Identifier: MIT */
/* Macros of the handlers of streams and events. */
#ifndef SS_SHIM_WATCHED_CALL_H
#define SS_SHIM_WATCHED_CALL_H

#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/stream/timeline.h"

/* Sets tl to the handle's timeline. 7.x follows a handle without checking it, so garbage
 * and destroyed streams crash in most calls (7.2.4). There we return the error of other
 * releases. */
#define REFUSE(tl, handle, code) do { \
	hipError_t bad_ = hipSuccess; \
	tl = ss_stream(handle, &bad_); \
	if (unlikely(!tl && bad_ == hipErrorInvalidHandle && ss_runtime()->major >= 7)) \
		return ss_fail(code); \
} while (0)

/* Hot entries go straight to the core, which makes the real call itself, if ON_FAST_PATH().
 * Else they take SLOW_PATH(), which passes the call on or runs <name>_slow. All of these
 * functions exist in every release. */
#define ON_FAST_PATH(is) (likely(is) && ss_fast_path())
#define SLOW_PATH(name, args) \
	(ss_pass(SS_ENTRY_SERVED) ? ss_real.name ? ss_real.name args : ss_real_missing() \
				  : name##_slow args)

#endif
