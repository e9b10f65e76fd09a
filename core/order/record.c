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
SS_INLINE unsigned cover_begin(struct ss_timeline *tl)
{
	unsigned cover;

	if (!ss_needs_cover(tl))
		return 0;
	ss_spin_lock(&tl->lock);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	return cover;
}

/* The usual case: the clock is valid, and no other thread is at the event. False: not so, and
 * nothing was done. The same for end_alone(). */
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

SS_INLINE bool end_alone(struct ss_event *e)
{
	return change(e, INFLIGHT, 0);
}

/* The other cases. tl NULL: a record without a clock. */
SS_COLD void begin_beside(struct ss_event *e, const void *event, struct ss_timeline *tl)
{
	uint32_t state = ss_event_lock(e);

	if (state >= INFLIGHT || !is_still(e, event))
		state |= OVERLAP;
	state = ss_event_drop_clock(e, state);
	if (tl)
		read_clock(e, tl);
	ss_event_unlock(e, state + INFLIGHT);
}

SS_COLD void end_beside(struct ss_event *e, struct ss_timeline *tl, bool ok)
{
	uint32_t state = ss_event_lock(e) - INFLIGHT;

	if (!ok || ((state & OVERLAP) && !SS_MUTANT_IS(20)))
		e->pos = 0;
	if (SS_MUTANT_IS(15) && e->pos)
		e->pos = ss_position(tl);
	if (state < INFLIGHT)
		state = (state & STICKY) | (e->pos ? 0 : NO_CLOCK);
	ss_event_unlock(e, state);
}

/* What else the application's command has done. */
SS_INLINE void recorded(struct ss_core *core, struct ss_timeline *tl, unsigned cover, bool ok)
{
	if (cover && (ok || SS_MUTANT_IS(33)))
		ss_cover_end(tl, cover);
	/* It has just joined what a fence would join. */
	if (ok && unlikely(atomic_load_explicit(&tl->wanted, memory_order_relaxed)))
		ss_fence_serve(core, tl, SS_FENCE_JOINING);
}

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = ss_event_find(core, event, true);
	struct ss_token t = {0};

	if (!e)
		return t;
	t.kind = SS_TOKEN_RECORD;
	t.a = e;
	if (tl && tl->alive && !tl->capturing)
		t.b = tl;
	if (!t.b || !begin_alone(e, event, t.b))
		begin_beside(e, event, t.b);
	if (t.b)
		t.cover = cover_begin(t.b);
	return t;
}

void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	if (t->kind != SS_TOKEN_RECORD)
		return;
	if ((!ok && !SS_MUTANT_IS(19)) || SS_MUTANT_IS(15) || !end_alone(t->a))
		end_beside(t->a, t->b, ok || SS_MUTANT_IS(19));
	if (t->b)
		recorded(core, t->b, t->cover, ok);
	t->kind = SS_TOKEN_NONE;
}

int ss_record(struct ss_core *core, void *event, void *native, const struct ss_record_call *call,
	      int *depth)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_event *e;
	unsigned cover;
	int err;

	if (unlikely(!tl))
		return call->long_way(event, native);
	e = ss_event_listed(core, event);
	if (unlikely(!e))
		return call->long_way(event, native);
	if (unlikely(!begin_alone(e, event, tl)))
		return call->long_way(event, native);
	cover = cover_begin(tl);
	++*depth;
	err = call->real(event, native);
	--*depth;
	if (unlikely(err) || unlikely(!end_alone(e)))
		end_beside(e, tl, !err);
	recorded(core, tl, cover, !err);
	return err;
}
