/* SPDX-License-Identifier: MIT */
/*
 * The slow half of the biased lock: entering it by the exchange, visiting it, and choosing an
 * owner. base/lock.h has the protocol and the proof that it is right.
 */
#include "core/base/lock.h"

#define BIAS_FIRST 64u   /* a thread becomes the owner after so many uses in a row; */
#define BIAS_STEP 3      /* each mistake multiplies that number by 2^3, */
#define BIAS_MOST 32768u /* up to this */

/* Takes the lock from its owner and waits until the owner has left it. l->s held. */
static __attribute__((noinline)) void unbias(struct ss_bias *l, struct ss_thread *owner)
{
	atomic_store(&l->owner, NULL);
	if (owner != ss_thread)
		ss_thread_barrier();
	for (unsigned turn = 0; atomic_load_explicit(&owner->inside, memory_order_acquire) == l;)
		ss_backoff(&turn);
}

void ss_bias_taken(struct ss_bias *l)
{
	struct ss_thread *owner = atomic_load_explicit(&l->owner, memory_order_relaxed);

	if (unlikely(owner != NULL)) {
		unbias(l, owner);
		/* The caller is the owner itself: it is inside another lock, or found a visitor
		 * in this one. */
		if (owner == ss_thread) {
			l->back = owner;
		} else {
			l->mistakes += l->mistakes < 32;
			l->streak = 0;
		}
	}
	l->plain = true;
	if (l->last == ss_thread) {
		l->streak++;
	} else {
		l->last = ss_thread;
		l->streak = 0;
	}
}

void ss_bias_visit(struct ss_bias *l)
{
	struct ss_thread *owner;

	if (ss_bias_enter(l, ss_thread))
		return;
	ss_spin_lock(&l->s);
	owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
	if (owner) {
		unbias(l, owner);
		/* A thread that has ended does not become the owner again. */
		l->back = atomic_load_explicit(&owner->over, memory_order_relaxed) ? NULL : owner;
	}
	l->plain = true;
}

static uint32_t enough(const struct ss_bias *l)
{
	uint32_t shift = l->mistakes * BIAS_STEP;

	return shift >= 9 ? BIAS_MOST : BIAS_FIRST << shift;
}

void ss_bias_unlock(struct ss_bias *l)
{
	struct ss_thread *owner;

	if (!l->plain) {
		ss_bias_leave(ss_thread);
		return;
	}
	owner = l->back;
	if (unlikely(!owner && l->streak >= enough(l) && l->last == ss_thread) &&
	    ss_thread != &ss_nobody && ss_thread_barriers()) {
		l->streak = 0;
		owner = ss_thread;
	}
	l->plain = false;
	if (owner) {
		l->back = NULL;
		/* This must be the last access inside: the owner may enter before l->s is free. */
		atomic_store_explicit(&l->owner, owner, memory_order_release);
	}
	ss_spin_unlock(&l->s);
}
