/* SPDX-License-Identifier: MIT */
/*
 * Counts calls that put work on a device or take its memory, holds them while the process does not
 * have its memory (sleep_state.h), and refuses them once the gate is shut.
 *
 * A caller raises a count and then looks whether the gate is shut. The thread that shuts the gate
 * first sets `shut_by` and then looks at the counts. One of the two sees the other. The same holds
 * for the thread that puts the process to sleep, and the state of sleep.
 *
 * Locks: none.
 */
#include <errno.h>
#include <unistd.h>

#include "shim/process/sleep_state.h"
#include "shim/process/submit_gate.h"

/* There are several counts, so that threads rarely write the same cache line. */
#define COUNTS 16

/* Looks of ss_gate_hold() at calls in progress, and the time between two. A call that only
 * enqueues ends meanwhile, one that waits for a device does not. */
#define HOLD_LOOKS 20
#define HOLD_US 50

atomic_bool ss_gate_counts;

static struct {
	_Alignas(64) atomic_int inside;
} counts[COUNTS];
static _Atomic uint32_t holds;      /* threads that hold all others; a futex */
static const void *_Atomic shut_by; /* &ss_tls of the thread that shut the gate; NULL = open */

static atomic_int *my_count(void)
{
	return &counts[(uintptr_t)&ss_tls * UINT64_C(0x9E3779B97F4A7C15) >> 60].inside;
}

static void wait_unheld(void)
{
	int saved = errno;
	uint32_t n;

	while ((n = atomic_load(&holds)))
		(void)ss_sleep_futex_wait(&holds, n, UINT64_MAX);
	errno = saved;
}

static bool may_enter(enum ss_gate_wait how)
{
	uint32_t state = atomic_load(&ss_sleep_state);

	return (state == SS_LIVE_AWAKE || (state == SS_LIVE_ASLEEP && how == SS_GATE_ASLEEP_TOO)) &&
	       !atomic_load(&holds);
}

enum ss_gate ss_gate_enter_slow(enum ss_gate_wait how)
{
	const void *by;

	/* The runtime calls us, or we call it again, inside a call that is counted. */
	if (ss_tls.depth || ss_tls.counted)
		return SS_GATE_OPEN;
	if (!atomic_load_explicit(&ss_sleep_used, memory_order_relaxed))
		atomic_store_explicit(&ss_sleep_used, true, memory_order_relaxed);
	for (;;) {
		atomic_fetch_add(my_count(), 1);
		by = atomic_load(&shut_by);
		if (likely(may_enter(how)))
			break;
		atomic_fetch_sub(my_count(), 1);
		wait_unheld();
		if (how == SS_GATE_ASLEEP_TOO)
			ss_sleep_wait_transition();
		else if (how == SS_GATE_IN_CALL ? !ss_sleep_wait_in_call() : !ss_sleep_wait())
			return SS_GATE_NO_MEMORY;
	}
	if (!by) {
		ss_tls.counted = true;
		return SS_GATE_COUNTED;
	}
	atomic_fetch_sub(my_count(), 1);
	if (by == &ss_tls)
		return SS_GATE_OPEN;
	sleep(1);
	return SS_GATE_SHUT;
}

void ss_gate_leave_slow(void)
{
	ss_tls.counted = false;
	atomic_fetch_sub(my_count(), 1);
}

void ss_gate_start(void)
{
	atomic_store(&ss_gate_counts, true);
}

bool ss_gate_any_inside(void)
{
	for (int i = 0; i < COUNTS; i++)
		if (atomic_load(&counts[i].inside))
			return true;
	return false;
}

bool ss_gate_hold(void)
{
	if (!atomic_load(&ss_gate_counts))
		return false;
	atomic_fetch_add(&holds, 1);
	for (int looks = 0; ss_gate_any_inside(); looks++) {
		if (looks == HOLD_LOOKS) {
			ss_gate_unhold();
			return false;
		}
		usleep(HOLD_US);
	}
	return true;
}

void ss_gate_unhold(void)
{
	if (atomic_fetch_sub(&holds, 1) == 1)
		ss_sleep_futex_wake(&holds);
}

bool ss_gate_shut(unsigned ms)
{
	if (!atomic_load(&ss_gate_counts))
		return false;
	atomic_store(&shut_by, &ss_tls);
	for (; ss_gate_any_inside(); ms--) {
		if (!ms) {
			ss_gate_open();
			return false;
		}
		usleep(1000);
	}
	return true;
}

void ss_gate_forked(void)
{
	atomic_store(&ss_gate_counts, false);
	for (int i = 0; i < COUNTS; i++)
		atomic_store(&counts[i].inside, 0);
	atomic_store(&holds, 0);
}

void ss_gate_open(void)
{
	atomic_store(&shut_by, NULL);
}
