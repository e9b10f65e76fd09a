/* SPDX-License-Identifier: MIT */
/*
 * Makes and destroys the state of core/order (streams, events and fences of all devices), and
 * clears a device's part of it when the application resets the device.
 *
 * Locks: order->lock.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

bool ss_order_init(struct ss_core *core, ss_synchronized *synchronized)
{
	struct ss_order *o = ss_host_alloc(core, sizeof(*o));

	if (!o)
		return false;
	o->synchronized = synchronized;
	o->slots = calloc(SS_MAX_SLOTS, sizeof(struct ss_timeline *));
	if (!o->slots)
		goto no_slots;
	if (!ss_table_init(&o->by_handle))
		goto no_handles;
	if (!ss_table_init(&o->events))
		goto no_events;
	pthread_mutex_init(&o->lock, NULL);
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		o->dev[dev].all.now = 1;
	core->order = o;
	return true;

no_events:
	ss_table_finish(&o->by_handle);
no_handles:
	free(o->slots);
no_slots:
	ss_host_free(core, o, sizeof(*o));
	return false;
}

void ss_order_finish(struct ss_core *core)
{
	struct ss_order *o = core->order;

	if (!o)
		return;
	SS_TIMELINES_EACH(tl, o) {
		ss_fence_dropped(core, ss_fence_drop(core, tl));
		ss_clock_free(tl->saw);
		ss_host_free(core, tl, sizeof(*tl));
	}
	ss_table_finish(&o->by_handle);
	ss_order_events_finish(core);
	ss_all_finish(o);
	pthread_mutex_destroy(&o->lock);
	free(o->slots);
	ss_host_free(core, o, sizeof(*o));
	core->order = NULL;
}

void ss_order_classic(struct ss_core *core, int dev)
{
	if (!atomic_load_explicit(&core->order->dev[dev].classic, memory_order_relaxed))
		atomic_store(&core->order->dev[dev].classic, true);
}

void ss_order_report(struct ss_core *core, int dev, unsigned why, bool on)
{
	if (on)
		atomic_fetch_or(&core->order->dev[dev].report, why);
	else
		atomic_fetch_and(&core->order->dev[dev].report, ~why);
}

unsigned ss_order_reported(const struct ss_core *core, int dev)
{
	return atomic_load_explicit(&core->order->dev[dev].report, memory_order_relaxed);
}

void ss_order_reset(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;

	SS_TIMELINES_EACH(tl, o) {
		struct ss_pending *fences = NULL;
		bool here;

		/* The slot of a stream that has ended may become a stream of another device
		 * whenever the lock is not held. So all decisions are made under one lock, and
		 * only the fences that were unlinked here are released below. */
		pthread_mutex_lock(&o->lock);
		here = tl->dev == dev;
		if (here)
			fences = ss_fence_drop(core, tl);
		if (here && tl->alive) {
			if (tl->kind == SS_TL_NULL)
				__atomic_store_n(&o->dev[dev].null, NULL, __ATOMIC_RELEASE);
			ss_timeline_end(core, tl);
			ss_complete(core, tl, tl->last, NULL, true);
		}
		pthread_mutex_unlock(&o->lock);
		ss_fence_dropped(core, fences);
		if (here)
			ss_fence_quiesce(tl);
	}
}
