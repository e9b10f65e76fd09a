/* SPDX-License-Identifier: MIT */
/*
 * When each stream was last synchronized with, and which synchronizations the layers above are
 * told of. Those give idle memory back then. Only one synchronization in some milliseconds is
 * reported, unless the device or the stream is marked for more.
 *
 * Locks: order->lock only to walk over the streams.
 */
#include "core/order/timeline.h"

/* Marks have no time. But whatever is freed carries a mark below the position of the next
 * synchronization, and that one has a time. Only the age of idle memory depends on it. */
void ss_sync_note(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t now)
{
	uint64_t hurry = atomic_load_explicit(&core->order->dev[tl->dev].hurry,
					      memory_order_relaxed);
	uint64_t last = atomic_load_explicit(&tl->noted[0].ms, memory_order_relaxed);

	if (last != now) {
		atomic_store_explicit(&tl->noted[1].pos, atomic_load(&tl->noted[0].pos),
				      memory_order_relaxed);
		atomic_store_explicit(&tl->noted[1].ms, last, memory_order_relaxed);
		atomic_store_explicit(&tl->noted[0].ms, now, memory_order_relaxed);
	}
	atomic_store_explicit(&tl->noted[0].pos, pos, memory_order_relaxed);
	if (!(hurry & (SS_HURRY_BUSY - 1)) && hurry / SS_HURRY_BUSY != tl->progress.slot + 1)
		atomic_store_explicit(&tl->noted_at, ss_ticks(), memory_order_relaxed);
}

uint64_t ss_freed_by(const struct ss_timeline *tl, uint64_t n, uint64_t now)
{
	uint64_t ms;

	for (int i = 1; i >= 0; i--) {
		ms = atomic_load_explicit(&tl->noted[i].ms, memory_order_relaxed);
		if (ms && ms < now && n <= atomic_load_explicit(&tl->noted[i].pos,
								memory_order_relaxed))
			return ms;
	}
	return now ? now : 1;
}

void ss_sync_report_now(struct ss_core *core, int dev, struct ss_timeline *tl, uint64_t pos,
			bool idle)
{
	if (tl)
		ss_sync_note(core, tl, pos, ss_now_ms(core));
	core->order->synchronized(core, dev, tl, pos, idle);
}

void ss_order_strict(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;

	if (atomic_fetch_or(&o->dev[dev].hurry, SS_HURRY_STRICT) & SS_HURRY_STRICT)
		return;
	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < o->slot_count; i++)
		atomic_store_explicit(&o->slots[i]->noted_at, 0, memory_order_relaxed);
	pthread_mutex_unlock(&o->lock);
}

void ss_order_watch(struct ss_core *core, int dev, struct ss_timeline *tl)
{
	_Atomic uint64_t *hurry = &core->order->dev[dev].hurry;
	uint64_t old = atomic_load(hurry);
	uint64_t bits = tl ? SS_HURRY_BUSY * (tl->progress.slot + 1) : 0;

	while (!atomic_compare_exchange_weak(hurry, &old, (old & (SS_HURRY_BUSY - 1)) | bits))
		;
	if (tl)
		atomic_store_explicit(&tl->noted_at, 0, memory_order_relaxed);
}
