/* SPDX-License-Identifier: MIT */
/*
 * The two locks of the core. A spin lock guards the few words of a free queue:
 * it is held for tens of instructions, and releasing it is a plain store, which
 * halves what an uncontended mutex costs. Everything else is a mutex.
 */
#ifndef SS_CORE_LOCK_H
#define SS_CORE_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct ss_spin {
	atomic_uint v;
};

static inline bool ss_spin_try(struct ss_spin *s)
{
	return !atomic_exchange_explicit(&s->v, 1, memory_order_acquire);
}

/* The holder may have been preempted: give it the core. Out of line, so that it costs
 * the others no register. */
static __attribute__((noinline, cold, unused)) void ss_spin_wait(struct ss_spin *s)
{
	for (unsigned i = 0;; i++) {
		if (i >= 64)
			sched_yield();
		if (!atomic_load_explicit(&s->v, memory_order_relaxed) && ss_spin_try(s))
			return;
	}
}

static inline void ss_spin_lock(struct ss_spin *s)
{
	if (__builtin_expect(!ss_spin_try(s), 0))
		ss_spin_wait(s);
}

static inline void ss_spin_unlock(struct ss_spin *s)
{
	atomic_store_explicit(&s->v, 0, memory_order_release);
}

#endif
