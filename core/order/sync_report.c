/* SPDX-License-Identifier: MIT */
/*
 * When each stream was last synchronized with, and which synchronizations the layers above are
 * told of. Those give idle memory back then. Only one synchronization in some milliseconds is
 * reported, unless the device or the stream is marked for more.
 *
 * Locks: order->lock only to walk over the streams.
 */
#include "core/order/timeline.h"

/* A mark has no time of its own. What was freed before the last synchronization has a mark at or
 * below its position, so its time bounds the age. Only decay uses this. */
uint64_t ss_freed_by(const struct ss_timeline *tl, uint64_t n, uint64_t now)
{
	uint64_t ms = atomic_load_explicit(&tl->synced_ms, memory_order_relaxed);

	if (ms && n <= atomic_load_explicit(&tl->synced_pos, memory_order_relaxed))
		return ms;
	return now;
}

static void note(struct ss_timeline *tl, uint64_t now, uint64_t pos)
{
	atomic_store_explicit(&tl->synced_ms, now, memory_order_relaxed);
	atomic_store_explicit(&tl->synced_pos, pos, memory_order_relaxed);
}

/* The whole device was waited for. */
static void note_all(struct ss_core *core, int dev)
{
	uint64_t now = ss_now_ms(core);

	SS_TIMELINES_EACH(tl, core->order)
		if (atomic_load_explicit(&tl->dev, memory_order_relaxed) == dev)
			note(tl, now, atomic_load(&tl->progress.completed));
}

/* What is old is so since the synchronization before this one, which is noted afterwards. */
void ss_sync_report_now(struct ss_core *core, int dev, struct ss_timeline *tl, uint64_t pos,
			bool idle)
{
	const struct ss_order_device *d = &core->order->dev[dev];

	core->order->synchronized(core, dev, tl, idle);
	if (!tl) {
		if (idle)
			note_all(core, dev);
		return;
	}
	note(tl, ss_now_ms(core), pos);
	if (!atomic_load_explicit(&d->report_each, memory_order_relaxed) &&
	    atomic_load_explicit(&d->watched, memory_order_relaxed) != tl)
		atomic_store_explicit(&tl->reported_at, ss_ticks(), memory_order_relaxed);
}

void ss_order_report_each(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;

	if (atomic_exchange(&o->dev[dev].report_each, true))
		return;
	pthread_mutex_lock(&o->lock);
	SS_TIMELINES_EACH(tl, o)
		atomic_store_explicit(&tl->reported_at, 0, memory_order_relaxed);
	pthread_mutex_unlock(&o->lock);
}

void ss_order_watch(struct ss_core *core, int dev, struct ss_timeline *tl)
{
	atomic_store(&core->order->dev[dev].watched, tl);
	if (tl)
		atomic_store_explicit(&tl->reported_at, 0, memory_order_relaxed);
}
