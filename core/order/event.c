/* SPDX-License-Identifier: MIT */
/*
 * The table of events, and the causes for which an event loses its clock.
 *
 * Locks: order->lock for the table, then the bit SS_EVENT_LOCKED of an event.
 */
#include "core/order/event.h"

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
