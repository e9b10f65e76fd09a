/* SPDX-License-Identifier: MIT */
/*
 * hipEventRecord and its like: begin and end of the watched calls (event.h).
 *
 * Locks: the bit LOCKED of an event, then timeline->lock.
 */
#include "core/order/event.h"

/* Copies the clock of tl into the event's. Event locked. */
static __attribute__((noinline)) void copy_clock(struct ss_event *e, struct ss_timeline *tl)
{
	ss_spin_lock(&tl->lock);
	e->slot = tl->progress.slot;
	/* No clock has the version 0. */
	e->version = ss_clock_copy(&e->clock, tl) ? ss_version(tl) : 0;
	ss_spin_unlock(&tl->lock);
}

/* Writes the clock: where tl is now, and what it has seen. Event locked. */
SS_INLINE void read_clock(struct ss_event *e, struct ss_timeline *tl)
{
	next_gen(e);
	e->pos = ss_position(tl);
	if (unlikely(e->version != ss_version(tl)))
		copy_clock(e, tl);
}

/* See ss_cover_begin(). */
SS_NOINLINE static unsigned cover_begin(struct ss_timeline *tl)
{
	unsigned cover;

	ss_spin_lock(&tl->lock);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	return cover;
}

/* The usual case: the clock is valid, and no other thread is at the event. False: not so, and
 * nothing was done. */
SS_INLINE bool begin_alone(struct ss_event *e, const void *event, struct ss_timeline *tl)
{
	if (unlikely(!change(e, 0, INFLIGHT | LOCKED)))
		return false;
	if (unlikely(!is_still(e, event))) {
		ss_event_unlock(e, 0);
		return false;
	}
	read_clock(e, tl);
	ss_event_unlock(e, INFLIGHT);
	return true;
}

/* The other cases. tl NULL: a record without a clock. */
SS_COLD struct ss_token begin_beside(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = ss_event_find(core, event, true);
	struct ss_token t = {.a = e, .b = tl};
	uint32_t state;

	if (!e)
		return t;
	state = ss_event_lock(e);
	if (state >= INFLIGHT || !is_still(e, event))
		state |= OVERLAP;
	state = ss_event_drop_clock(e, state);
	if (tl)
		read_clock(e, tl);
	ss_event_unlock(e, state + INFLIGHT);
	t.kind = SS_TOKEN_RECORD;
	t.cover = tl && ss_needs_cover(tl) ? cover_begin(tl) : 0;
	return t;
}

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = ss_event_listed(core, event);
	struct ss_token t;

	if (unlikely(!tl || !tl->alive || tl->capturing))
		return begin_beside(core, event, NULL);
	if (unlikely(!e || !begin_alone(e, event, tl)))
		return begin_beside(core, event, tl);
	t.kind = SS_TOKEN_RECORD;
	t.a = e;
	t.b = tl;
	t.cover = unlikely(ss_needs_cover(tl)) ? cover_begin(tl) : 0;
	return t;
}

/* Another thread is or was at the event, it has no clock, or the call failed. */
SS_COLD void end_beside(struct ss_event *e, bool ok)
{
	uint32_t state = ss_event_lock(e) - INFLIGHT;

	if (!ok || state & OVERLAP)
		e->pos = 0;
	if (state < INFLIGHT)
		state = (state & STICKY) | (e->pos ? 0 : NO_CLOCK);
	ss_event_unlock(e, state);
}

void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_timeline *tl = t->b;

	if (unlikely(t->kind != SS_TOKEN_RECORD))
		return;
	t->kind = SS_TOKEN_NONE;
	if (unlikely(!ok || !change(t->a, INFLIGHT, 0)))
		end_beside(t->a, ok);
	if (unlikely(!tl))
		return;
	if (unlikely(t->cover) && ok)
		ss_cover_end(tl, t->cover);
	/* The application's command has just joined what a fence would join. */
	if (ok && unlikely(atomic_load_explicit(&tl->wanted, memory_order_relaxed)))
		ss_fence_serve(core, tl, SS_FENCE_JOINING);
}
