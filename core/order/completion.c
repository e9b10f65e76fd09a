/* SPDX-License-Identifier: MIT */
/*
 * How far every timeline is known to have come: `completed` by whatever means, `synced` as far as
 * the application has synchronized with it.
 *
 * Locks: none for these two, which only grow; timeline->lock for the clock of a timeline.
 */
#include "core/order/timeline.h"

void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_clock *clock, bool synced)
{
	ss_progress_raise(&tl->progress, pos, synced);
	for (uint32_t i = 0; clock && i < clock->count; i++)
		if (clock->n[i])
			ss_progress_raise(&core->order->slots[i]->progress, clock->n[i], synced);
}

void ss_complete_clock(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t version,
		       bool synced)
{
	ss_spin_lock(&tl->lock);
	if (ss_version(tl) == version) {
		ss_complete(core, tl, pos, tl->saw, synced);
		if (synced)
			atomic_store_explicit(&tl->proved, version, memory_order_relaxed);
	}
	ss_spin_unlock(&tl->lock);
}

bool ss_mark_reached(struct ss_core *core, uint32_t slot, uint64_t n, bool any)
{
	const struct ss_progress *p = &core->order->slots[slot]->progress;

	return n <= atomic_load_explicit(any ? &p->completed : &p->synced, memory_order_acquire);
}

uint64_t ss_timeline_commanded(const struct ss_timeline *tl)
{
	return atomic_load(&tl->commanded);
}
