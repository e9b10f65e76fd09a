/* SPDX-License-Identifier: MIT */
/*
 * Events: their table, the causes for which an event loses its clock, and the cases of records,
 * waits and queries that watched.h does not inline.
 *
 * Locks: order->lock for the table, then the bit SS_EVENT_LOCKED of an event, then timeline->lock.
 */
#include "core/order/watched.h"

/* ---- the table of events ------------------------------------------------------ */

/* Order lock held. */
static struct ss_event *event_new(struct ss_core *core, void *handle)
{
	struct ss_event *e = core->order->spare_events;

	if (e)
		core->order->spare_events = e->spare;
	else
		e = ss_host_alloc(core, sizeof(*e));
	if (!e)
		return NULL;
	atomic_store(&e->state, atomic_load(&e->state) | SS_EVENT_NO_CLOCK);
	ss_table_add(&core->order->events, &e->link, handle);
	return e;
}

struct ss_event *ss_event_search(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order->lock);
	e = ss_event_listed(core, handle);
	if (!e && make)
		e = event_new(core, handle);
	pthread_mutex_unlock(&core->order->lock);
	return e;
}

__attribute__((cold)) uint32_t ss_event_lock(struct ss_event *e)
{
	for (unsigned turn = 0;; ss_backoff(&turn)) {
		uint32_t was = atomic_load_explicit(&e->state, memory_order_relaxed);

		if (!(was & SS_EVENT_LOCKED) && ss_event_change(e, was, was | SS_EVENT_LOCKED))
			return was;
	}
}

uint32_t ss_event_drop_clock(struct ss_event *e, uint32_t state)
{
	e->pos = 0;
	ss_event_next_gen(e);
	return state | SS_EVENT_NO_CLOCK;
}

/* A new event at an old address, or the end of an event. The state of the old event no longer
 * counts. If a record of the old event is still in progress, the new one has no clock until that
 * record has ended. */
static uint32_t rebirth(struct ss_event *e, uint32_t state)
{
	state = ss_event_drop_clock(e, state) & ~(uint32_t)SS_EVENT_STICKY;
	return state >= SS_EVENT_INFLIGHT ? state | SS_EVENT_OVERLAP : state;
}

void ss_event_add(struct ss_core *core, void *event)
{
	struct ss_event *e = ss_event_find(core, event, true);

	if (e)
		ss_event_unlock(e, rebirth(e, ss_event_lock(e)));
}

/* Order lock held. */
static void unlist(struct ss_core *core, struct ss_event *e)
{
	uint32_t state = rebirth(e, ss_event_lock(e));

	ss_table_remove(&core->order->events, &e->link);
	ss_event_unlock(e, state);
	e->spare = core->order->spare_events;
	core->order->spare_events = e;
}

void ss_event_forget(struct ss_core *core, void *event)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order->lock);
	e = ss_event_listed(core, event);
	if (e)
		unlist(core, e);
	pthread_mutex_unlock(&core->order->lock);
}

void ss_event_taint(struct ss_core *core, void *event, bool sticky)
{
	struct ss_event *e = ss_event_find(core, event, true);
	uint32_t state;

	if (!e)
		return;
	state = ss_event_drop_clock(e, ss_event_lock(e));
	ss_event_unlock(e, sticky ? state | SS_EVENT_STICKY : state);
}

void ss_order_events_finish(struct ss_core *core)
{
	struct ss_order *o = core->order;
	struct ss_link *l;
	struct ss_event *e;

	while ((l = ss_table_any(&o->events)))
		unlist(core, ss_container_of(l, struct ss_event, link));
	while ((e = o->spare_events)) {
		o->spare_events = e->spare;
		ss_clock_free(e->clock);
		ss_host_free(core, e, sizeof(*e));
	}
	ss_table_finish(&o->events);
}

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
