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

static inline void ss_spin_lock(struct ss_spin *s)
{
	if (__builtin_expect(!atomic_exchange_explicit(&s->v, 1, memory_order_acquire), 1))
		return;
	for (unsigned i = 0;; i++) {
		/* The holder may have been preempted: give it the core. */
		if (i >= 64)
			sched_yield();
		if (!atomic_load_explicit(&s->v, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&s->v, 1, memory_order_acquire))
			return;
	}
}

static inline void ss_spin_unlock(struct ss_spin *s)
{
	atomic_store_explicit(&s->v, 0, memory_order_release);
}

#endif
