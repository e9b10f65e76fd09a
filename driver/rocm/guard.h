/* SPDX-License-Identifier: MIT */
/*
 * The state per thread and per process that the shim and the driver share: whether a call into the
 * runtime is in progress, and whether a stream captures.
 */
#ifndef SS_DRIVER_GUARD_H
#define SS_DRIVER_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/compiler.h"

struct ss_tls {
	/* The number of calls of ours into the runtime that are in progress. While this depth is
	 * not 0, calls that the runtime makes (to hipMemGetInfo, for one) pass the shim
	 * unchanged. */
	int depth;
	/* The error that hipGetLastError must report although the runtime does not know the error;
	 * hipSuccess = none. See the shim's error handling. */
	int error;
	/* The same for hipExtGetLastError: the error of the last command, if it was ours. */
	int command;
	int cancel;           /* the thread's cancel state outside of us (SS_SERVED) */
	bool counted;         /* a call of this thread is counted at the gate (submit_gate.h) */
	bool gave_up;         /* this call has waited in vain for the process to wake */
	uint64_t own_streams; /* devices on which this thread has a per-thread stream */
};

/* Initial-exec: a preloaded library has its variables in static TLS, and the first access
 * must not allocate memory. */
extern __thread struct ss_tls ss_tls
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Is no call of ours in progress, and no error left to report? One load reads both fields. */
static inline bool ss_tls_clear(void)
{
	uint64_t both;

	_Static_assert(offsetof(struct ss_tls, error) == offsetof(struct ss_tls, depth) + 4 &&
			       sizeof(both) == 8,
		       "side by side");
	memcpy(&both, (const char *)&ss_tls + offsetof(struct ss_tls, depth), sizeof(both));
	return likely(!both);
}

static inline void ss_enter(void)
{
	ss_tls.depth++;
}

static inline void ss_leave(void)
{
	ss_tls.depth--;
}

/* The number of streams that capture, and how many of them are blocking streams, which the
 * null stream joins. Raised before the real begin and lowered after the real end. */
extern _Atomic int ss_captures __attribute__((visibility("hidden")));
extern _Atomic int ss_captures_blocking __attribute__((visibility("hidden")));

static inline bool ss_capture_live(void)
{
	return unlikely(atomic_load_explicit(&ss_captures, memory_order_relaxed) != 0);
}

#endif
