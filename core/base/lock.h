/* SPDX-License-Identifier: MIT */
/*
 * The locks of the core. There are three kinds:
 *  - a mutex (pthread) guards all data that is not on the hot path;
 *  - a spin lock guards a few words for tens of instructions. Its release is a plain store, so an
 *    uncontended pair costs half of what a mutex costs;
 *  - a biased lock guards a shelf. The thread that uses the shelf enters it without any
 *    atomic exchange.
 *
 * The biased lock
 *
 * An atomic exchange costs as much as the rest of a hit. Nearly always one thread alone uses a
 * shelf, so that thread, the owner, enters with a plain store and a plain load. Every other
 * thread pays for it:
 *
 *	owner                            another thread
 *	me->inside = lock                v = 1 (exchange), as for a spin lock
 *	(compiler barrier)               owner = NULL
 *	owner == me? entered             membarrier()
 *	otherwise me->inside = NULL      wait while the owner's ->inside is lock
 *
 * Why this is right. It is Dekker's algorithm: each side stores, then loads what the other side
 * stores, and needs a full barrier in between. The owner has only a compiler barrier there.
 * membarrier(PRIVATE_EXPEDITED) supplies the missing one: it returns after every running thread of
 * the process has executed a full barrier, so the owner has one somewhere in its program order.
 * Either the owner's store of ->inside comes before that barrier. Then the other thread sees the
 * store and waits. Or the owner's load of `owner` comes after that barrier. Then it reads NULL and
 * the owner backs out. The other thread sees the owner's writes inside the lock, because the owner
 * leaves with a release store of ->inside, which the other thread reads with acquire.
 *
 * - Who sets `owner`. A thread makes itself the owner while it holds the spin lock, so its
 *   later load reads either its own store or a NULL that came after it. A visitor may also restore
 *   the owner when it has finished. The owner then loads either NULL or that restored value, and
 *   since it loads with acquire it sees all writes of the visitor.
 * - `inside` belongs to the thread, not to the lock. So a late store by a former owner says nothing
 *   about any other thread. It lies in a record that is never unmapped (base/thread.h). A thread
 *   that has ended leaves NULL there, so its locks can be taken. A new thread may inherit the
 *   record, and with it the locks that are biased to it; others enter these only by the protocol
 *   above. At no time do two threads have one record.
 * - A thread enters one biased lock at a time as its owner. While it is inside (this includes its
 *   signal handlers) it takes any other biased lock by the exchange, and must not take the same
 *   one.
 * - `plain` is true while a thread holds the lock by the exchange. The owner cannot be inside at
 *   that time, so the thread that releases the lock knows from `plain` how it was taken. (v may be
 *   1 while the owner is inside, because another thread is waiting.)
 * - A thread that needs another stream's shelf only once (a miss that needs ranges of other
 *   streams, or statistics) visits the lock: it restores the owner afterwards. Otherwise one miss
 *   among 32 streams would make all of them use the exchange for a long time.
 * - In a forked child the thread that forked keeps its bias. A lock that another thread held stays
 *   locked there, like every other lock.
 *
 * A thread becomes the owner after it has taken the lock many times in a row. Each time this turns
 * out to be a mistake the required number grows eightfold, up to BIAS_MOST (lock.c). So a lock that
 * several threads really share costs at most one membarrier, which takes some microseconds, per
 * BIAS_MOST uses. No thread becomes an owner if membarrier is missing, or under the thread
 * sanitizer, which does not understand it.
 */
#ifndef SS_CORE_LOCK_H
#define SS_CORE_LOCK_H

#include "core/base/backoff.h"
#include "core/base/processor.h"
#include "core/base/thread.h"

/* Alignment of objects that one thread writes often: two cache lines, because processors fetch
 * lines in pairs. */
#define SS_LINES 128

struct ss_spin {
	atomic_uint v;
};

static inline bool ss_spin_try(struct ss_spin *s)
{
	return !atomic_exchange_explicit(&s->v, 1, memory_order_acquire);
}

/* The holder may have been preempted. Not inlined, so that the common path needs no registers
 * for it. */
static __attribute__((noinline, cold, unused)) void ss_spin_wait(struct ss_spin *s)
{
	for (unsigned turn = 0;
	     atomic_load_explicit(&s->v, memory_order_relaxed) || !ss_spin_try(s);)
		ss_backoff(&turn);
}

static inline void ss_spin_lock(struct ss_spin *s)
{
	if (unlikely(!ss_spin_try(s)))
		ss_spin_wait(s);
}

static inline void ss_spin_unlock(struct ss_spin *s)
{
	atomic_store_explicit(&s->v, 0, memory_order_release);
}

/* ---- biased ------------------------------------------------------------- */

struct ss_bias {
	_Atomic(struct ss_thread *) owner; /* this thread may enter without an exchange */
	struct ss_spin s;
	bool plain;        /* the holder took it by the exchange */
	uint32_t mistakes; /* how often an owner lost the lock */
	/* How often `last` took it with no other thread in between */
	uint32_t streak;
	struct ss_thread *last; /* the last thread that took it by the exchange */
	struct ss_thread *back; /* the owner to restore at the end of a visit; NULL: none */
};

/* Enters and leaves as the owner. False: the thread is not the owner, or is inside a biased lock
 * already. */
static inline bool ss_bias_enter(struct ss_bias *l, struct ss_thread *me)
{
	if (unlikely(atomic_load_explicit(&me->inside, memory_order_relaxed) != NULL))
		return false;
	/* Release, because another thread that waits for this thread to leave an earlier lock may
	 * read this store instead of the one that left it. */
	atomic_store_explicit(&me->inside, l, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&l->owner, memory_order_acquire) == me)) {
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

/* Completes an entry by the exchange: takes the lock from its owner, if it has one. l->s held. */
void ss_bias_taken(struct ss_bias *l);

/* Tries the exchange only, for hits of threads that share a shelf. */
static inline bool ss_bias_try(struct ss_bias *l)
{
	if (!ss_spin_try(&l->s))
		return false;
	ss_bias_taken(l);
	return true;
}

/* These two enter as the owner if the thread is the owner, and by the exchange otherwise. */
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

/* As ss_bias_lock(), for a thread that visits on behalf of another shelf: the owner stays owner. */
void ss_bias_visit(struct ss_bias *l);

/* Releases the lock, whichever way it was taken. */
void ss_bias_unlock(struct ss_bias *l);

#endif
