/* SPDX-License-Identifier: MIT */
/*
 * What the shim and the driver share per thread and per process: how deep we are
 * in real calls, and whether a stream capture is live.
 */
#ifndef SS_DRIVER_GUARD_H
#define SS_DRIVER_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct ss_tls {
	/* > 0: we are inside a real call that we made, so whatever the runtime
	 * calls back (it does: hipMemGetInfo) goes straight to the real one. */
	int depth;
	/* What hipGetLastError must say although the runtime's own memory of it
	 * does not (see shim/error.c); hipSuccess = nothing. */
	int error;
	/* The same for hipExtGetLastError: an error of ours that was the last command. */
	int command;
	uint64_t own_streams; /* devices on which this thread has a per-thread stream */
};

/* Initial-exec, because a preloaded library has its block in static TLS and the
 * first access must not allocate. */
extern __thread struct ss_tls ss_tls
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Neither inside a real call nor with an error to report: one load for both. */
static inline bool ss_tls_clear(void)
{
	uint64_t both;

	_Static_assert(offsetof(struct ss_tls, error) == offsetof(struct ss_tls, depth) + 4 &&
		       sizeof(both) == 8, "side by side");
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

/* Live captures, and streams among the capturing ones that join the null
 * stream. Counted up before the real begin and down after the real end. */
extern _Atomic int ss_captures __attribute__((visibility("hidden")));
extern _Atomic int ss_captures_blocking __attribute__((visibility("hidden")));

static inline bool ss_capture_live(void)
{
	return unlikely(atomic_load_explicit(&ss_captures, memory_order_relaxed) != 0);
}

#endif
