/* SPDX-License-Identifier: MIT */
/*
 * Is the process awake? The state that the thread of shim/sleep/ changes, and the threads of the
 * program that wait for it: at the gate of calls that put work on a device (submit_gate.h), and
 * where memory is mapped (watch.wake of core.h). Without SOMASHIM_SLEEP the process is awake,
 * always.
 */
#ifndef SS_SHIM_SLEEP_STATE_H
#define SS_SHIM_SLEEP_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "live/page.h"

/* Between two attempts to wake; some ms more, by the process id, so that two processes which take
 * half of the memory each do not meet again. */
#define SS_SLEEP_RETRY_MS 20

/* enum ss_live_sleep_state; a futex. A thread that is held changes SETTLING to AWAKE when it was
 * held for long enough. All other changes are made by the thread of shim/sleep/. */
extern _Atomic uint32_t ss_sleep_state __attribute__((visibility("hidden")));
/* A call put work on a device since the flag was cleared. */
extern atomic_bool ss_sleep_used __attribute__((visibility("hidden")));

/* The calling thread waits until the process is awake, and asks for that. False: the process still
 * sleeps, because the devices have had no memory for it for SOMASHIM_WAKE_WAIT_MS. Any thread, no
 * lock held. Keeps errno. */
bool ss_sleep_wait(void);
/* As above, from inside a call that is served (SS_SERVED), which may wait at several places: they
 * have one SOMASHIM_WAKE_WAIT_MS in all. */
bool ss_sleep_wait_in_call(void);
/* Until the process is awake or asleep, and not in between. Wakes nobody. */
void ss_sleep_wait_transition(void);

/* ---- for the thread of shim/sleep/ --------------------------------------------- */

/* Changes the state, and wakes those who wait for it. */
void ss_sleep_set_state(enum ss_live_sleep_state state);
/* SETTLING to COPYING. False: a thread has opened the gate meanwhile. */
bool ss_sleep_settled(void);
/* Threads may be held so long while the process settles. */
void ss_sleep_set_hold(unsigned ms);
/* Keep: only `somashim wake' ends this sleep, and nobody's wait ends for lack of memory. */
void ss_sleep_set_keep(bool keep);
bool ss_sleep_keeps(void);
/* The number of threads that wait for the process to wake. */
unsigned ss_sleep_waiters(void);
/* An attempt to wake has found no memory. */
void ss_sleep_count_failure(void);
/* The word that a thread changes and wakes when it begins to wait; it must stay mapped. */
void ss_sleep_set_bell(_Atomic uint32_t *bell);
void ss_sleep_ring(void);
_Atomic uint32_t *ss_sleep_bell(void);
/* Waits until the word is not `value` any more, for `ms` at most (UINT64_MAX: for ever). False: the
 * time is over. */
bool ss_sleep_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ms);
void ss_sleep_futex_wake(_Atomic uint32_t *word);
/* In a forked child, which is awake. */
void ss_sleep_forked(void);

#endif
