/* SPDX-License-Identifier: MIT */
/*
 * How far every timeline is known to have come: `completed` by whatever means, `synced` as far as
 * the application has synchronized with it.
 *
 * Locks: none for these two, which only grow; timeline->lock for the clock of a timeline.
 */
#include "core/order/timeline.h"

static void raise_both(struct ss_progress *p, uint64_t n, bool synced)
{
	ss_raise_to(&p->completed, n);
	if (synced)
		ss_raise_to(&p->synced, n);
}

void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_clock *clock, bool synced)
{
	raise_both(&tl->progress, pos, synced);
	for (uint32_t i = 0; clock && i < clock->count; i++)
		if (clock->n[i])
			raise_both(&core->order->slots[i]->progress, clock->n[i], synced);
}

static __attribute__((noinline)) void complete_clock(struct ss_core *core, struct ss_timeline *tl,
						     uint64_t pos, uint64_t version, bool synced)
{
	ss_spin_lock(&tl->lock);
	if (ss_version(tl) == version) {
		ss_complete(core, tl, pos, tl->saw, synced);
		if (synced)
			atomic_store_explicit(&tl->proved, version, memory_order_relaxed);
	}
	ss_spin_unlock(&tl->lock);
}

void ss_complete_seen(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t version,
		      bool synced)
{
	if (unlikely(atomic_load_explicit(&tl->proved, memory_order_relaxed) != version))
		complete_clock(core, tl, pos, version, synced);
	raise_both(&tl->progress, pos, synced);
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
