/* SPDX-License-Identifier: MIT */
/* Asks the core now and then for memory that has decayed. No lock. */
#include "shim/alloc/decay.h"
#include "shim/process/service.h"

_Atomic uint64_t ss_decay_polled;

void ss_decay_due_slow(uint64_t now)
{
	atomic_store_explicit(&ss_decay_polled, now, memory_order_relaxed);
	if (!ss_capture_live() && !ss_exiting())
		ss_decay_poll(ss_core);
}
