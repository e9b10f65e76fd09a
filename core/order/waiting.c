/* SPDX-License-Identifier: MIT */
/*
 * Threads that are inside a call of the runtime which waits for a stream.
 *
 * On AMD's 7.2.4 a query of a stream and a record on it return only when no other thread is inside
 * hipStreamSynchronize of that stream: the runtime holds a mutex of the stream meanwhile. So no
 * thread queries such a stream only for information (ss_asking_begin in fence.c). The stream is
 * busy; its progress is shown by fences that were recorded before, and by the end of the wait.
 *
 * The mutex that a wait holds is known of that one call only. Every other call counts as if it held
 * every mutex that it might: a wait for an event holds its stream's, a wait for the device those of
 * all streams. A command on the null stream looks at every stream that joins it, and a command on
 * one of those looks at the null stream.
 *
 * A thread that asks says so in `recording` before it looks for waits, and a thread that waits says
 * so in `waiting` before it looks for threads that ask. If both come at the same time, the wait
 * lets the other thread finish first. That takes microseconds, unless the asking thread was
 * preempted inside; then the wait goes on after some turns, and if it gets the mutex first the
 * asking thread is blocked until the wait ends.
 *
 * Locks: none.
 */
#include <sched.h>

#include "core/order/timeline.h"

enum ss_waits_for { NOTHING, ONE, JOINER, NULL_STREAM, ALL };

#define TURNS 64 /* turns that a wait leaves to an asking thread */

/* The counter of the wait besides the stream's own; NULL: none. */
static atomic_uint *counter(struct ss_core *core, const struct ss_waiting *w)
{
	struct ss_order_device *d = &core->order->dev[w->dev];

	switch (w->what) {
	case JOINER: return &d->waiting_joiner;
	case NULL_STREAM: return &d->waiting_null;
	case ALL: return &d->waiting;
	default: return NULL;
	}
}

static int device_of(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->dev, memory_order_relaxed);
}

static enum ss_waits_for kind_of(const struct ss_timeline *tl)
{
	switch (atomic_load_explicit(&tl->kind, memory_order_acquire)) {
	case SS_TL_NONBLOCKING: return ONE;
	case SS_TL_NULL: return NULL_STREAM;
	default: return JOINER;
	}
}

/* ---- threads that ask ---------------------------------------------------------- */

bool ss_waited(const struct ss_core *core, const struct ss_timeline *tl)
{
	const struct ss_order_device *d = &core->order->dev[device_of(tl)];

	if (atomic_load(&tl->waiting) || atomic_load(&d->waiting))
		return true;
	switch (kind_of(tl)) {
	case NULL_STREAM: return atomic_load(&d->waiting_joiner) || atomic_load(&d->waiting_null);
	case JOINER: return atomic_load(&d->waiting_null);
	default: return false;
	}
}

/* If the wait for one stream does not show the progress, the waiting thread records a fence
 * afterwards, which shows it (ss_waiting_serve). */
bool ss_wait_tells(const struct ss_core *core, const struct ss_timeline *tl, uint64_t n)
{
	if (atomic_load(&tl->waiting))
		return atomic_load(&tl->progress.completed) < n;
	return atomic_load(&tl->told) >= n && ss_waited(core, tl);
}

/* ---- threads that wait ---------------------------------------------------------- */

/* Is a thread inside a query of a stream whose mutex this wait may hold? */
static bool asked(struct ss_core *core, const struct ss_waiting *w)
{
	const struct ss_timeline *null = __atomic_load_n(&core->order->dev[w->dev].null,
							 __ATOMIC_ACQUIRE);

	if (w->what == ONE)
		return atomic_load(&w->tl->recording);
	if (w->what == JOINER)
		return atomic_load(&w->tl->recording) || (null && atomic_load(&null->recording));
	SS_TIMELINES_EACH(tl, core->order)
		if (atomic_load(&tl->recording) && device_of(tl) == w->dev)
			return true;
	return false;
}

static void enter(struct ss_core *core, const struct ss_waiting *w)
{
	atomic_uint *also = counter(core, w);

	if (w->tl)
		atomic_fetch_add(&w->tl->waiting, 1);
	if (also)
		atomic_fetch_add(also, 1);
	for (int i = 0; i < TURNS && unlikely(asked(core, w)); i++)
		sched_yield();
}

struct ss_waiting ss_waiting_begin(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_waiting w = {.tl = tl};

	if (!tl)
		return w;
	w.dev = device_of(tl);
	w.what = kind_of(tl);
	enter(core, &w);
	return w;
}

struct ss_waiting ss_waiting_begin_at(struct ss_core *core, struct ss_timeline *tl, uint64_t pos)
{
	if (tl)
		ss_raise_to(&tl->told, pos);
	return ss_waiting_begin(core, tl);
}

struct ss_waiting ss_waiting_begin_device(struct ss_core *core, int dev)
{
	struct ss_waiting w = {.dev = dev, .what = ALL};

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return (struct ss_waiting){0};
	enter(core, &w);
	return w;
}

struct ss_timeline *ss_waiting_over(struct ss_core *core, struct ss_waiting *w)
{
	atomic_uint *also;

	if (w->what == NOTHING)
		return NULL;
	also = counter(core, w);
	if (w->tl)
		atomic_fetch_sub(&w->tl->waiting, 1);
	if (also)
		atomic_fetch_sub(also, 1);
	w->what = NOTHING;
	return w->tl;
}
