/* SPDX-License-Identifier: MIT */
/*
 * Streams that are captured into a graph. No call of ours may touch such a stream, and on some
 * runtimes a query of certain fences would end the capture.
 *
 * Locks: order->lock, then timeline->lock.
 */
#include "core/order/timeline.h"

/* Waits until no thread polls a fence of tl, or of a stream that has ended, if the poll would
 * end the capture that is about to begin on tl. Another thread makes such a poll, which returns
 * at once, since no capture begins inside a query of ours. */
static void wait_for_polls(struct ss_core *core, const struct ss_timeline *tl)
{
	struct ss_order *o = core->order;
	bool polled = core->info[atomic_load(&tl->dev)].query_spoils;
	unsigned turn = 0;

	while (polled) {
		polled = false;
		pthread_mutex_lock(&o->lock);
		SS_TIMELINES_EACH(other, o)
			polled |= other->polling && (other == tl || !other->alive);
		pthread_mutex_unlock(&o->lock);
		if (polled)
			ss_backoff(&turn);
	}
}

void ss_timeline_set_capturing(struct ss_core *core, struct ss_timeline *tl, bool on)
{
	struct ss_order *o = core->order;

	pthread_mutex_lock(&o->lock);
	ss_spin_lock(&tl->lock); /* no record is half begun */
	o->capturing += (uint32_t)on - tl->capturing;
	tl->capturing = on;
	ss_spin_unlock(&tl->lock);
	pthread_mutex_unlock(&o->lock);
	if (!on)
		return;
	ss_fence_quiesce(tl);
	wait_for_polls(core, tl);
}

bool ss_capture_hold(struct ss_core *core, struct ss_timeline *tl)
{
	bool may;

	pthread_mutex_lock(&core->order->lock);
	may = tl->alive && !tl->capturing;
	/* The null stream is never captured, and some threads wait for it that must not wait
	 * here. */
	atomic_fetch_add(&tl->recording, may && tl->kind != SS_TL_NULL);
	pthread_mutex_unlock(&core->order->lock);
	return may;
}

void ss_capture_release(struct ss_timeline *tl)
{
	atomic_fetch_sub(&tl->recording, tl->kind != SS_TL_NULL);
}

bool ss_timeline_capturing(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->capturing, memory_order_relaxed);
}

uint32_t ss_order_capturing(const struct ss_core *core)
{
	return atomic_load(&core->order->capturing);
}
