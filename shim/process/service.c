/* SPDX-License-Identifier: MIT */
/* The state of the shim in this process, and the count of reasons against the fast path. */
#include "shim/process/service.h"

_Atomic int ss_state, ss_slow_reasons = 1;
struct ss_core *ss_core;
struct ss_core *_Atomic ss_hits_core;
struct ss_options ss_options;

void ss_slow_reasons_add(int more)
{
	struct ss_core *core;

	atomic_fetch_add(&ss_slow_reasons, more);
	if (more > 0 && (core = atomic_load_explicit(&ss_hits_core, memory_order_acquire)))
		ss_hits_end(core);
}

void ss_state_set(int from, int to)
{
	if (atomic_compare_exchange_strong(&ss_state, &from, to) &&
	    (from == SS_ON) != (to == SS_ON))
		ss_slow_reasons_add(from == SS_ON ? 1 : -1);
}

static void (*hooks[SS_HOOKS][2])(void); /* two folders set some */

void ss_set_hook(enum ss_hook which, void (*fn)(void))
{
	hooks[which][hooks[which][0] != NULL] = fn;
}

void ss_run_hook(enum ss_hook which)
{
	for (int i = 0; i < 2; i++)
		if (hooks[which][i])
			hooks[which][i]();
}
