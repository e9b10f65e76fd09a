/* SPDX-License-Identifier: MIT */
/*
 * The state of the shim in this process, and the core that serves it. The state only moves forward:
 * unknown, then on or off, then exiting. Any thread may read all of this.
 */
#ifndef SS_SHIM_SERVICE_H
#define SS_SHIM_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/uncancelled.h"
#include "core/core.h"
#include "driver/rocm/guard.h"
#include "shim/process/live.h"

/* Without this the compiler reaches variables of other files through the GOT. */
#define SS_HIDDEN __attribute__((visibility("hidden")))

enum ss_state {
	SS_UNKNOWN = 0, /* no intercepted call yet, or no HIP runtime is loaded yet */
	SS_ON,
	SS_OFF,     /* disabled, no device, or a forked child: every call is passed on */
	SS_EXITING, /* exit() has begun: nothing new is served */
};

enum ss_entry_kind {
	SS_ENTRY_SERVED, /* starts the shim; passed on after exit() has begun */
	/* Handled after exit() has begun, too: the call may pass a block of ours */
	SS_ENTRY_ALWAYS,
	SS_ENTRY_ERROR, /* reads the last error, which is too harmless to start the shim */
};

extern _Atomic int ss_state SS_HIDDEN;
extern struct ss_core *ss_core SS_HIDDEN; /* NULL until the state is ON */
/* The same for fast paths that do not look at the state; NULL until the core is complete. */
extern struct ss_core *_Atomic ss_hits_core SS_HIDDEN;
extern struct ss_options ss_options SS_HIDDEN;
/* Counts the reasons against the fast path: 1 for a state that is not ON, 1 for each live capture,
 * 1 if the program ever made a pool of the runtime current. */
extern _Atomic int ss_slow_reasons SS_HIDDEN;

/* Any thread. */
void ss_slow_reasons_add(int more);
/* Does nothing unless the state is `from`. */
void ss_state_set(int from, int to);

/* Hooks: functions of the folders above that run at moments that only this folder knows. A folder
 * sets its hook in a constructor. */
enum ss_hook {
	SS_HOOK_START, /* the core exists, and no call has been served */
	SS_HOOK_EXIT,  /* exit() begins, and everything still works */
	SS_HOOK_UNMAP, /* all memory is unmapped next, and no thread gives a device work */
	SS_HOOK_END,   /* the process is about to end: no HIP call. May come twice */
	SS_HOOKS
};
void ss_set_hook(enum ss_hook which, void (*fn)(void));
void ss_run_hook(enum ss_hook which);

/* Follows ss_pass() in each function that serves a call. Until that function returns, no
 * cancellation acts on the thread, except in ss_real_wait() (stream/real_wait.h). A hit reaches no
 * cancellation point, so a hit needs no protection. */
#define SS_SERVED \
	SS_UNCANCELLED; \
	ss_tls.cancel = ss_cancel_was; \
	ss_tls.gave_up = false

/* True: hand this call to the real function and do nothing else. The first call of a
 * process starts the shim (start.c). */
bool ss_pass_slow(enum ss_entry_kind kind);
static inline bool ss_pass(enum ss_entry_kind kind)
{
	if (likely(!ss_tls.depth &&
		   atomic_load_explicit(&ss_state, memory_order_acquire) == SS_ON)) {
		/* The tick may make a successful HIP call, which before 7.0 hides the last
		 * error. */
		if (kind != SS_ENTRY_ERROR)
			ss_live_tick();
		return false;
	}
	return ss_pass_slow(kind);
}

/* May this call take the fast path? Also false while the calling thread has an error of ours
 * to report or is inside a real call. */
static inline bool ss_fast_path(void)
{
	return likely(!atomic_load_explicit(&ss_slow_reasons, memory_order_acquire)) &&
	       ss_tls_clear();
}

static inline bool ss_exiting(void)
{
	return unlikely(atomic_load_explicit(&ss_state, memory_order_relaxed) == SS_EXITING);
}

/* Has service ended (exit() has begun, or this is a forked child)? The program may still hold
 * blocks and pools of ours. */
static inline bool ss_serving_ended(void)
{
	int state = atomic_load_explicit(&ss_state, memory_order_acquire);

	/* Another thread may be making the core just now, when exit() has ended service before it
	 * began. */
	return !ss_tls.depth && (state == SS_EXITING || state == SS_OFF) &&
	       atomic_load_explicit(&ss_hits_core, memory_order_acquire);
}

#endif
