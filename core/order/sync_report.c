/* SPDX-License-Identifier: MIT */
/*
 * When each stream was last synchronized with, and which synchronizations the layers above are
 * told of. Those give idle memory back then. Only one synchronization in some milliseconds is
 * reported, unless the device or the stream is marked for more.
 *
 * Locks: order->lock only to walk over the streams.
 */
#include "core/order/timeline.h"

/* A mark has no time of its own. A block freed before a synchronization has a mark at or below its
 * position, so that synchronization's time bounds the block's age. Only decay uses this. */
void ss_sync_note(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t now)
{
	const struct ss_order_device *d = &core->order->dev[tl->dev];
	uint64_t last = atomic_load_explicit(&tl->noted[0].ms, memory_order_relaxed);

	if (last != now) {
		atomic_store_explicit(&tl->noted[1].pos, atomic_load(&tl->noted[0].pos),
				      memory_order_relaxed);
		atomic_store_explicit(&tl->noted[1].ms, last, memory_order_relaxed);
		atomic_store_explicit(&tl->noted[0].ms, now, memory_order_relaxed);
	}
	atomic_store_explicit(&tl->noted[0].pos, pos, memory_order_relaxed);
	if (!atomic_load_explicit(&d->report_each, memory_order_relaxed) &&
	    atomic_load_explicit(&d->watched, memory_order_relaxed) != tl)
		atomic_store_explicit(&tl->noted_at, ss_ticks(), memory_order_relaxed);
}

uint64_t ss_freed_by(const struct ss_timeline *tl, uint64_t n, uint64_t now)
{
	uint64_t ms;

	for (int i = 1; i >= 0; i--) {
		ms = atomic_load_explicit(&tl->noted[i].ms, memory_order_relaxed);
		if (ms && ms < now &&
		    n <= atomic_load_explicit(&tl->noted[i].pos, memory_order_relaxed))
			return ms;
	}
	return now ? now : 1;
}

void ss_sync_report_now(struct ss_core *core, int dev, struct ss_timeline *tl, uint64_t pos,
			bool idle)
{
	if (tl)
		ss_sync_note(core, tl, pos, ss_now_ms(core));
	core->order->synchronized(core, dev, tl, idle);
}

void ss_order_report_each(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;

	if (atomic_exchange(&o->dev[dev].report_each, true))
		return;
	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < o->slot_count; i++)
		atomic_store_explicit(&o->slots[i]->noted_at, 0, memory_order_relaxed);
	pthread_mutex_unlock(&o->lock);
}

void ss_order_watch(struct ss_core *core, int dev, struct ss_timeline *tl)
{
	atomic_store(&core->order->dev[dev].watched, tl);
	if (tl)
		atomic_store_explicit(&tl->noted_at, 0, memory_order_relaxed);
}
