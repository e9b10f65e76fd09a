/* SPDX-License-Identifier: MIT */
/*
 * Marks on many timelines at once, for memory that any stream may be using when it is freed, and
 * what comes after a mark.
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

/* May tl work with memory of `dev`, and may any of its work not be over, as far as the application
 * knows? Order lock held. */
static bool concerns(const struct ss_timeline *tl, int dev, uint64_t access)
{
	if (tl->dev != dev && !(access >> tl->dev & 1) && !(atomic_load(&tl->visits) >> dev & 1))
		return false;
	return tl->alive || atomic_load(&tl->progress.synced) < tl->last;
}

size_t ss_marks_take(struct ss_core *core, int dev, uint64_t access, struct ss_mark *out,
		     size_t max)
{
	struct ss_order *o = core->order;
	size_t count = 0;

	/* The application may use a null stream without another call that we see. */
	for (int d = 0; d < core->devices; d++)
		if ((d == dev || access >> d & 1) && !ss_timeline_null(core, d))
			return 0;
	pthread_mutex_lock(&o->lock);
	SS_TIMELINES_EACH(tl, o) {
		if (!concerns(tl, dev, access))
			continue;
		if (count < max)
			out[count] = (struct ss_mark){ss_timeline_slot(tl),
						      tl->alive ? ss_timeline_now(tl) : tl->last};
		ss_timeline_marked(tl);
		count++;
	}
	pthread_mutex_unlock(&o->lock);
	return count;
}

uint64_t ss_wide_needed(struct ss_core *core, int dev)
{
	if (!ss_distrusted(core))
		return 0;
	return atomic_load(&core->order->dev[dev].wide_now);
}

bool ss_wide_reached(struct ss_core *core, int dev, uint64_t wide)
{
	return atomic_load(&core->order->dev[dev].wide_done) >= wide;
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
	/* ss_marks_take() sees all of it or nothing. And whoever finds the second set relies on
	 * the first. */
	pthread_mutex_lock(&o->lock);
	atomic_fetch_or(&o->visited, bits);
	atomic_fetch_or(&tl->visits, bits);
	pthread_mutex_unlock(&o->lock);
}
