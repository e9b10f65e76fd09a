/* SPDX-License-Identifier: MIT */
/*
 * Whether a timeline is ordered after a mark, and which streams work with the memory of other
 * devices.
 *
 * Locks: order->lock, timeline->lock.
 */
#include "core/order/timeline.h"

struct ss_mark ss_timeline_mark(struct ss_timeline *tl)
{
	return (struct ss_mark){ss_timeline_slot(tl), ss_timeline_now(tl)};
}

bool ss_timeline_after(struct ss_core *core, struct ss_timeline *tl, const struct ss_mark *mark)
{
	bool saw;

	ss_spin_lock(&tl->lock);
	saw = mark->slot != ss_timeline_slot(tl) && ss_clock_get(tl->saw, mark->slot) >= mark->n;
	ss_spin_unlock(&tl->lock);
	return saw || ss_mark_reached(core, mark->slot, mark->n, true);
}

uint64_t ss_order_visited(const struct ss_core *core)
{
	return atomic_load(&core->order->visited);
}

void ss_order_visit(struct ss_core *core, struct ss_timeline *tl, uint64_t bits)
{
	struct ss_order *o = core->order;

	bits &= ~(1ull << tl->dev);
	if (!(bits & ~atomic_load(&tl->visits)))
		return;
	/* The lock makes a snapshot (all.c) see all of the change or none of it. And a reader of
	 * the second set relies on the first. */
	pthread_mutex_lock(&o->lock);
	atomic_fetch_or(&o->visited, bits);
	atomic_fetch_or(&tl->visits, bits);
	pthread_mutex_unlock(&o->lock);
}
