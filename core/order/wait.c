/* SPDX-License-Identifier: MIT */
/*
 * hipStreamWaitEvent, hipEventSynchronize and hipEventQuery: what watched.h does not inline.
 *
 * Locks: the bit SS_EVENT_LOCKED of an event, then timeline->lock.
 */
#include "core/order/watched.h"

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

struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen,
				  uint64_t *pos)
{
	struct ss_timeline *tl;

	if (!ss_event_lock_unchanged(core, e, gen))
		return NULL;
	tl = core->order->slots[e->slot];
	ss_complete(core, tl, e->pos, e->clock, true);
	atomic_store_explicit(&e->proved, gen, memory_order_relaxed);
	*pos = e->pos;
	ss_event_unlock(e, 0);
	return tl;
}
