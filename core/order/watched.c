/* SPDX-License-Identifier: MIT */
/*
 * Records of events, and waits and queries of them: the cases that watched.h does not inline.
 *
 * Locks: the bit SS_EVENT_LOCKED of an event, then timeline->lock.
 */
#include "core/order/watched.h"

/* ---- records --------------------------------------------------------------- */

void ss_event_copy_clock(struct ss_event *e, struct ss_timeline *tl)
{
	ss_spin_lock(&tl->lock);
	e->slot = tl->progress.slot;
	/* No clock has the version 0. */
	e->version = ss_clock_copy(&e->clock, tl) ? ss_version(tl) : 0;
	ss_spin_unlock(&tl->lock);
}

unsigned ss_record_cover(struct ss_timeline *tl)
{
	unsigned cover;

	ss_spin_lock(&tl->lock);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	return cover;
}

struct ss_token ss_record_begin_beside(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = ss_event_find(core, event, true);
	struct ss_token t = {.a = e, .b = tl};
	uint32_t state;

	if (!e)
		return t;
	state = ss_event_lock(e);
	if (state >= SS_EVENT_INFLIGHT || !ss_event_is_still(e, event))
		state |= SS_EVENT_OVERLAP;
	state = ss_event_drop_clock(e, state);
	if (tl)
		ss_event_read_clock(e, tl);
	ss_event_unlock(e, state + SS_EVENT_INFLIGHT);
	t.kind = SS_TOKEN_RECORD;
	t.cover = tl && ss_needs_cover(tl) ? ss_record_cover(tl) : 0;
	return t;
}

/* For a record beside another thread at the event, a record without a clock, or a call that
 * failed. */
void ss_record_end_beside(struct ss_event *e, bool ok)
{
	uint32_t state = ss_event_lock(e) - SS_EVENT_INFLIGHT;

	if (!ok || state & SS_EVENT_OVERLAP)
		e->pos = 0;
	if (state < SS_EVENT_INFLIGHT)
		state = (state & SS_EVENT_STICKY) | (e->pos ? 0 : SS_EVENT_NO_CLOCK);
	ss_event_unlock(e, state);
}

/* ---- waits and queries ------------------------------------------------------ */

uint64_t ss_event_clock_then(struct ss_event *e)
{
	uint32_t state = ss_event_lock(e);
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_relaxed);

	ss_event_unlock(e, state);
	return state ? 0 : gen;
}

bool ss_event_lock_beside(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	uint32_t state = ss_event_lock(e);

	if (!state && atomic_load_explicit(&e->gen, memory_order_relaxed) == gen &&
	    !ss_distrusted(core))
		return true;
	ss_event_unlock(e, state);
	return false;
}

/* The runtime may wait for the stream or for the event alone, so the stream counts as waited
 * for. Without a clock the stream of the event is not known. */
struct ss_token ss_event_wait_begin(struct ss_core *core, void *event)
{
	struct ss_token t = ss_event_sync_begin(core, event);
	struct ss_timeline *tl = NULL;
	struct ss_event *e = t.a;
	uint64_t pos = 0;

	if (t.kind == SS_TOKEN_EVENT && ss_event_lock_unchanged(core, e, t.gen)) {
		tl = core->order->slots[e->slot];
		pos = e->pos;
		ss_event_unlock(e, 0);
	}
	t.waiting = ss_waiting_begin_at(core, tl, pos);
	return t;
}

struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	struct ss_timeline *tl;

	if (!ss_event_lock_unchanged(core, e, gen))
		return NULL;
	tl = core->order->slots[e->slot];
	ss_complete(core, tl, e->pos, e->clock, true);
	atomic_store_explicit(&e->proved, gen, memory_order_relaxed);
	ss_event_unlock(e, 0);
	return tl;
}
