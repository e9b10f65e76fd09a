/* SPDX-License-Identifier: MIT */
/*
 * The locks of the core. A spin lock guards a few words for tens of instructions, and
 * releasing it is a plain store, which halves what an uncontended mutex costs. That of a
 * free queue is biased to the thread that uses the queue. Everything else is a mutex.
 *
 * The biased lock. An atomic exchange costs as much as the rest of a hit. A queue is nearly
 * always used by one thread, so that thread (the owner) enters with a plain store and a
 * plain load, and everybody else pays for it:
 *
 *	owner                            another thread
 *	me->inside = lock                v = 1 (exchange), from here on as a plain lock
 *	(compiler barrier)               owner = NULL
 *	owner == me? inside              membarrier()
 *	else me->inside = NULL           wait while the owner's ->inside is lock
 *
 * That is Dekker's algorithm, in which both sides need a full barrier between their store and
 * their load. membarrier(PRIVATE_EXPEDITED) returns after every running thread of the
 * process has executed one, so the owner has a full barrier somewhere in its program
 * order, and either its store of ->inside is before that, then we see it and wait; or its
 * load of owner comes after that, then it finds NULL and backs out. What the owner did
 * inside is published by its release store of ->inside, which we read with acquire.
 *
 * - `owner` is set to a thread by that thread itself, while it holds the plain lock: what it
 *   loads later is current enough (its own store, or a NULL that came after). Or it is set
 *   back by a visitor that took it and is done with what the lock guards: after the
 *   visitor's barrier the owner loads NULL or that, and with acquire all that the visitor did.
 * - `inside` is the thread's, not the lock's: a late store by a thread that is no owner any
 *   more says nothing about anybody else. It is in a record that is never unmapped
 *   (core/thread.h). A thread that ended leaves NULL there, so its locks can be taken; and if
 *   a new thread gets the record, it gets the locks that are biased to it, which
 *   nobody else can enter without the above. No identity is ever two threads' at once.
 * - One lock at a time: a thread that is inside of a biased lock (a signal handler of it,
 *   too) takes any other the plain way, and its own not at all.
 * - `plain` is set while somebody holds the lock the plain way, which can't be while the owner
 *   is inside: so whoever releases it knows how it was taken. (v may be 1 even then, of
 *   somebody who waits.)
 * - Whoever only looks in - a miss that needs what other streams freed, statistics - visits:
 *   it leaves the lock to its owner as it was. Else 32 streams of which one misses would pay
 *   exchanges for long.
 * - A forked child has the bias of the thread that forked. What other threads were inside of
 *   stays locked there, as every other lock does.
 *
 * Only a thread that took the lock very often with nobody between becomes its owner, and each
 * time that was a mistake it takes eight times as often: a lock that is really shared costs
 * one membarrier (some microseconds) in at least BIAS_MOST uses. Where there is no membarrier,
 * and under the thread sanitizer, which does not understand it, nobody ever is an owner.
 */
#ifndef SS_CORE_LOCK_H
#define SS_CORE_LOCK_H

#include <sched.h>

#include "core/base/thread.h"

/* What has an owner begins at a multiple of this: two cache lines, which processors fetch
 * together. */
#define SS_LINES 128

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

/* ---- biased ------------------------------------------------------------- */

struct ss_bias {
	_Atomic(struct ss_thread *) owner; /* who may enter without an exchange */
	struct ss_spin s;
	bool plain;                     /* whoever is inside came without being owner */
	uint32_t mistakes;              /* times that an owner lost it */
	uint32_t streak;                /* times that `last` took it with nobody between */
	struct ss_thread *last;
	struct ss_thread *back;         /* visited: whose it is afterwards */
};

/* The owner's way in and out. False: not the owner, or inside of a lock already. */
static inline bool ss_bias_enter(struct ss_bias *l, struct ss_thread *me)
{
	if (__builtin_expect(atomic_load_explicit(&me->inside, memory_order_relaxed) != NULL, 0))
		return false;
	/* (Release, because it may be what another thread sees of me->inside after a lock that
	 * was left before.) */
	atomic_store_explicit(&me->inside, l, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&l->owner, memory_order_acquire) == me, 1)) {
		atomic_signal_fence(memory_order_seq_cst);
		return true;
	}
	atomic_store_explicit(&me->inside, NULL, memory_order_release);
	return false;
}

static inline void ss_bias_leave(struct ss_thread *me)
{
	atomic_store_explicit(&me->inside, NULL, memory_order_release);
}

/* What follows taking l->s. */
void ss_bias_taken(struct ss_bias *l);

/* The plain way, for hits of threads that share a queue. */
static inline bool ss_bias_try(struct ss_bias *l)
{
	if (!ss_spin_try(&l->s))
		return false;
	ss_bias_taken(l);
	return true;
}

/* For anybody, here and below. */
static inline bool ss_bias_lock_try(struct ss_bias *l)
{
	return ss_bias_enter(l, ss_thread) || ss_bias_try(l);
}

static inline void ss_bias_lock(struct ss_bias *l)
{
	if (ss_bias_enter(l, ss_thread))
		return;
	ss_spin_lock(&l->s);
	ss_bias_taken(l);
}

/* For who comes by on behalf of another queue. */
void ss_bias_visit(struct ss_bias *l);

/* However it was taken. */
void ss_bias_unlock(struct ss_bias *l);

#endif
