/* SPDX-License-Identifier: MIT */
/*
 * Counts calls that put work on a device, and refuses them once the gate is shut.
 *
 * A caller raises a count and then looks whether the gate is shut. The thread that shuts the gate
 * first sets `shut_by` and then looks at the counts. One of the two sees the other.
 *
 * Locks: none.
 */
#include <unistd.h>

#include "shim/process/submit_gate.h"

/* There are several counts, so that threads rarely write the same cache line. */
#define COUNTS 16

atomic_bool ss_gate_counts;

static struct {
	_Alignas(64) atomic_int inside;
} counts[COUNTS];
static const void *_Atomic shut_by; /* &ss_tls of the thread that shut the gate; NULL = open */

static atomic_int *my_count(void)
{
	return &counts[(uintptr_t)&ss_tls * UINT64_C(0x9E3779B97F4A7C15) >> 60].inside;
}

enum ss_gate ss_gate_enter_slow(void)
{
	const void *by;

	if (ss_tls.depth) /* the runtime calls us inside a call that is counted */
		return SS_GATE_OPEN;
	atomic_fetch_add(my_count(), 1);
	by = atomic_load(&shut_by);
	if (!by)
		return SS_GATE_COUNTED;
	atomic_fetch_sub(my_count(), 1);
	if (by == &ss_tls)
		return SS_GATE_OPEN;
	sleep(1);
	return SS_GATE_SHUT;
}

void ss_gate_leave_slow(void)
{
	atomic_fetch_sub(my_count(), 1);
}

void ss_gate_start(void)
{
	atomic_store(&ss_gate_counts, true);
}

static bool any_inside(void)
{
	for (int i = 0; i < COUNTS; i++)
		if (atomic_load(&counts[i].inside))
			return true;
	return false;
}

bool ss_gate_shut(unsigned ms)
{
	if (!atomic_load(&ss_gate_counts))
		return false;
	atomic_store(&shut_by, &ss_tls);
	for (; any_inside(); ms--) {
		if (!ms) {
			ss_gate_open();
			return false;
		}
		usleep(1000);
	}
	return true;
}

void ss_gate_open(void)
{
	atomic_store(&shut_by, NULL);
}
