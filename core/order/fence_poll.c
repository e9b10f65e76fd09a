/* SPDX-License-Identifier: MIT */
/*
 * Polling the fences that fence.c recorded, and releasing them.
 *
 * Locks: order->lock. The driver is called without it; meanwhile `polling` marks a timeline whose
 * first fences are in use by a thread, so that no other thread releases them.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

#define SEEN_MOST_MS 100

/* The handle of a stream that has ended may belong to any other stream now, perhaps to one that
 * is captured: the runtime goes by addresses. */
bool ss_fence_off_limits(const struct ss_core *core, const struct ss_timeline *tl)
{
	return core->info[atomic_load(&tl->dev)].query_spoils &&
	       (tl->alive ? atomic_load(&tl->capturing) : atomic_load(&core->order->capturing) > 0);
}

/* Unlinks the first fence of tl. Order lock held. */
static void pop(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_pending *p = tl->fences;

	tl->fences = p->next;
	if (!tl->fences)
		tl->fences_tail = &tl->fences;
	atomic_fetch_sub_explicit(&tl->pending, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&core->order->fences_pending, 1, memory_order_relaxed);
}

static void pending_free(struct ss_core *core, struct ss_pending *p)
{
	core->drv.fence_release(core->drv.ctx, &p->fence);
	ss_clock_free(p->clock);
	free(p);
}

/* Unlinks all fences of tl. Order lock held. */
static struct ss_pending *take_all(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_pending *list = tl->fences;

	while (tl->fences)
		pop(core, tl);
	tl->drop = false;
	return list;
}

struct ss_pending *ss_fence_drop(struct ss_core *core, struct ss_timeline *tl)
{
	if (!tl->polling)
		return take_all(core, tl);
	tl->drop = true;
	return NULL;
}

void ss_fence_dropped(struct ss_core *core, struct ss_pending *p)
{
	while (p) {
		struct ss_pending *next = p->next;

		pending_free(core, p);
		p = next;
	}
}

/* The position that tl has completed when its fence at pos is reached. After the last fence of a
 * stream that has ended nothing was enqueued, even if later positions were handed out. Order
 * lock held. */
static uint64_t proved_by(const struct ss_timeline *tl, uint64_t pos)
{
	return !tl->alive && tl->sealed && pos >= tl->sealed ? tl->last : pos;
}

/* The fence may have been reached long before this poll. So one fence at most doubles the
 * estimate, or raises it to the time until the last poll that did not find it reached. That time
 * counts only up to a bound, since the stream may have stood still for its host. Order lock
 * held. */
static void note_time(struct ss_core *core, struct ss_timeline *tl, const struct ss_pending *p)
{
	_Atomic uint64_t *took = &core->order->dev[atomic_load(&tl->dev)].fence_ms;
	uint64_t most = 2 * atomic_load_explicit(took, memory_order_relaxed) + 1;

	most = ss_max(most, ss_min(ss_minus(p->asked, p->since), SEEN_MOST_MS));
	atomic_store_explicit(took, ss_min(ss_minus(ss_now_ms(core), p->since), most),
			      memory_order_relaxed);
}

uint64_t ss_fence_ms(const struct ss_core *core, int dev)
{
	return atomic_load_explicit(&core->order->dev[dev].fence_ms, memory_order_relaxed);
}

static bool poll_one(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_order *o = core->order;
	struct ss_pending *p, *dropped = NULL;
	bool any = false;

	pthread_mutex_lock(&o->lock);
	if (tl->polling) {
		pthread_mutex_unlock(&o->lock);
		return false;
	}
	/* Another thread may begin to poll while the lock is dropped. Then that thread goes on
	 * instead. */
	while (!tl->polling && (p = tl->fences) && !tl->drop && !ss_fence_off_limits(core, tl)) {
		enum ss_status s;

		tl->polling = true;
		pthread_mutex_unlock(&o->lock);
		s = SS_DRIVE(core, core->drv.fence_query(core->drv.ctx, &p->fence));
		pthread_mutex_lock(&o->lock);
		tl->polling = false;
		if (s != SS_OK) {
			p->asked = ss_now_ms(core);
			break;
		}
		ss_complete(core, tl, proved_by(tl, p->pos), p->clock, false);
		note_time(core, tl, p);
		any = true;
		pop(core, tl);
		pthread_mutex_unlock(&o->lock);
		pending_free(core, p);
		pthread_mutex_lock(&o->lock);
	}
	if (tl->drop && !tl->polling)
		dropped = take_all(core, tl);
	pthread_mutex_unlock(&o->lock);
	ss_fence_dropped(core, dropped);
	return any;
}

bool ss_fences_poll(struct ss_core *core, struct ss_timeline *tl, int dev)
{
	struct ss_order *o = core->order;
	bool any = false;

	if (tl)
		return atomic_load_explicit(&tl->pending, memory_order_relaxed) &&
		       poll_one(core, tl);
	if (!atomic_load_explicit(&o->fences_pending, memory_order_relaxed))
		return false;
	SS_TIMELINES_EACH(each, o)
		if (dev < 0 || atomic_load_explicit(&each->dev, memory_order_relaxed) == dev)
			any |= ss_fences_poll(core, each, dev);
	return any;
}

bool ss_fences_poll_some(struct ss_core *core, int dev, unsigned most, uint32_t *next)
{
	struct ss_order *o = core->order;
	uint32_t count = atomic_load_explicit(&o->slot_count, memory_order_acquire);
	bool any = false;

	if (!atomic_load_explicit(&o->fences_pending, memory_order_relaxed))
		return false;
	for (uint32_t i = 0; i < count && most; i++, ++*next) {
		struct ss_timeline *tl = o->slots[*next % count];

		if (!atomic_load(&tl->pending) ||
		    (dev >= 0 && atomic_load_explicit(&tl->dev, memory_order_relaxed) != dev))
			continue;
		any |= ss_fences_poll(core, tl, dev);
		most--;
	}
	return any;
}

/* An idle stream reaches a new fence within microseconds. That is cheaper than new memory, so a
 * new fence is polled this many times, or for a millisecond: on a busy machine one pause may
 * take as long as another process runs. After that the stream counts as busy. */
#define LOOKS 64

bool ss_fence_poll_briefly(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
			   unsigned *looks)
{
	uint64_t until = ss_now_ms(core) + 1;

	for (;; ++*looks) {
		ss_fences_poll(core, tl, -1);
		if (atomic_load(&tl->progress.completed) >= n)
			return true;
		if (*looks >= LOOKS || !core->drv.pause || ss_now_ms(core) > until)
			return false;
		core->drv.pause(core->drv.ctx);
	}
}

bool ss_fence_gate(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl, uint64_t n)
{
	struct ss_order *o = core->order;
	struct ss_pending *p, *dropped = NULL;
	enum ss_status s;

	pthread_mutex_lock(&o->lock);
	for (p = tl->fences; p; p = p->next)
		if (p->exact && p->pos == n)
			break;
	if (!p || tl->polling || ss_fence_off_limits(core, tl) || x->kind == SS_TL_NULL ||
	    !ss_asking_begin(core, x, SS_FENCE_LATE)) {
		pthread_mutex_unlock(&o->lock);
		return false;
	}
	tl->polling = true; /* so that p stays */
	pthread_mutex_unlock(&o->lock);
	s = SS_DRIVE(core, core->drv.fence_wait(core->drv.ctx, x->dev, x->native, &p->fence));
	pthread_mutex_lock(&o->lock);
	ss_asking_end(x);
	tl->polling = false;
	if (s == SS_OK)
		ss_clock_merge(x, p->clock, tl->progress.slot, p->pos);
	if (tl->drop)
		dropped = take_all(core, tl);
	pthread_mutex_unlock(&o->lock);
	ss_fence_dropped(core, dropped);
	return s == SS_OK;
}

/* ---- fences of single frees ------------------------------------------------- */

/* The most fences of single frees that one stream has. Each holds an event of the runtime. */
#define MOST_EXACT 32
#define FREES_PER_LOOK 16 /* frees between polls, since a poll calls the runtime */

/* A stream that only reuses its own frees would otherwise never poll. A free that gets no fence
 * of its own is covered by a later one. */
bool ss_fence_room(struct ss_core *core, struct ss_timeline *tl)
{
	unsigned crowded;

	if (atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT)
		return true;
	/* If two threads count at once, one count is lost. That does no harm. */
	crowded = atomic_load_explicit(&tl->crowded, memory_order_relaxed);
	atomic_store_explicit(&tl->crowded, crowded + 1, memory_order_relaxed);
	if (crowded % FREES_PER_LOOK)
		return false;
	ss_fences_poll(core, tl, -1);
	return atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT;
}

uint64_t ss_position_alone(struct ss_timeline *tl)
{
	return atomic_fetch_add(&tl->progress.now, 2) + 1;
}
