/* SPDX-License-Identifier: MIT */
/*
 * The gate in front of calls that put work on a device. The gate is shut at the end of the process,
 * before virtual memory is unmapped that such work could touch (exit.c). While the process sleeps,
 * it holds them (shim/sleep/).
 *
 * Calls are counted only if the runtime needs the memory to be unmapped at exit (ROCm 6.x with the
 * vmm backing), or with SOMASHIM_SLEEP. Otherwise a call pays for one branch.
 */
#ifndef SS_SHIM_SUBMIT_GATE_H
#define SS_SHIM_SUBMIT_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/rocm/guard.h"
#include "shim/process/service.h"

enum ss_gate {
	SS_GATE_SHUT,      /* make no real call; return hipErrorDeinitialized */
	SS_GATE_NO_MEMORY, /* the same; the process sleeps. Return hipErrorOutOfMemory */
	SS_GATE_OPEN,      /* make the call; nothing has to be done after it */
	SS_GATE_COUNTED,   /* make the call, then ss_gate_leave() */
};

/* How long is a call held if the devices have no memory for the process? */
enum ss_gate_wait {
	SS_GATE_WITHIN_LIMIT,
	SS_GATE_IN_CALL,    /* the same, but the call may have waited before (sleep_state.h) */
	SS_GATE_ASLEEP_TOO, /* not held by a process that sleeps, only while it changes that */
};

extern atomic_bool ss_gate_counts __attribute__((visibility("hidden")));
enum ss_gate ss_gate_enter_slow(enum ss_gate_wait how);
void ss_gate_leave_slow(void);

/* Any thread, around a call that may put work on a device. SS_GATE_SHUT is returned after a second,
 * in which the process normally ends: a detached thread sees no error, and a thread that another
 * thread joins gets an error and ends. */
static inline enum ss_gate ss_gate_enter_as(enum ss_gate_wait how)
{
	return likely(!atomic_load_explicit(&ss_gate_counts, memory_order_relaxed)) ?
		       SS_GATE_OPEN :
		       ss_gate_enter_slow(how);
}

static inline enum ss_gate ss_gate_enter(void)
{
	return ss_gate_enter_as(SS_GATE_WITHIN_LIMIT);
}

static inline void ss_gate_leave(enum ss_gate gate)
{
	if (unlikely(gate == SS_GATE_COUNTED))
		ss_gate_leave_slow();
}

/* Around a real call that takes memory of a device past our pools, inside a call that is served.
 * Memory that the process has lent is not free for the process itself: with less it could not
 * wake. */
static inline enum ss_gate ss_gate_enter_taking(void)
{
	return likely(ss_options.sleep == SS_SLEEP_OFF) ? SS_GATE_OPEN :
							  ss_gate_enter_as(SS_GATE_IN_CALL);
}

/* Begins to count calls. Before the first call is served. */
void ss_gate_start(void);
/* Shuts the gate for all threads but the calling one and waits at most `ms` milliseconds until no
 * call is in progress. False: one still is, or calls are not counted; the gate is open again. */
bool ss_gate_shut(unsigned ms);
void ss_gate_open(void);
/* Holds all threads at the gate and waits for an instant until no call is in progress. False: one
 * still is, or calls are not counted; nobody is held. Else, soon after, ss_gate_unhold(). Several
 * threads may do this at the same time. The caller is in no call that is counted. */
bool ss_gate_hold(void);
void ss_gate_unhold(void);
/* Is a call in progress that was counted? */
bool ss_gate_any_inside(void);
/* In a forked child, which has nothing to count. */
void ss_gate_forked(void);

#endif
