/* SPDX-License-Identifier: MIT */
/*
 * Recording fences. A fence tells the host, without a wait, how far a stream has come.
 *
 * A fence is recorded on demand, when somebody wants memory that was freed on another stream. It
 * stands for every free before it. It also stands behind whatever else was enqueued since, perhaps
 * a kernel that never ends, so it is polled and nobody waits for it. Only a fence that was
 * recorded inside the very free it belongs to (`exact`) may make another stream wait.
 *
 * A fence on the null stream joins all blocking streams. So it is recorded only where there are
 * none, or inside a call of the application that joins them anyway. A stream that would join it
 * begins only after that (ss_null_quiesce). Another thread's per-thread stream has no handle here.
 * In both cases the wish is remembered as `wanted`.
 *
 * Locks: order->lock, then timeline->lock. The driver is called with none; meanwhile `recording`
 * keeps the stream from being destroyed or captured.
 */
#include <sched.h>
#include <stdlib.h>

#include "core/order/timeline.h"

bool ss_fence_may(const struct ss_core *core, const struct ss_timeline *tl, enum ss_fence_how how)
{
	if (!tl->alive || tl->capturing)
		return false;
	/* Where no stream joins the null stream, a command on it joins nothing. But there may be
	 * streams that we do not know. */
	if (tl->kind == SS_TL_NULL && how != SS_FENCE_JOINING &&
	    (atomic_load(&core->order->dev[tl->dev].joiners) || ss_distrusted(core)))
		return false;
	return tl->kind != SS_TL_THREAD || pthread_equal(tl->thread, pthread_self());
}

/* Any thread may record on any stream while the stream's owner destroys it or begins a capture.
 * The owner's call waits for those threads. They do not wait for anything. */
void ss_fence_quiesce(struct ss_timeline *tl)
{
	while (atomic_load(&tl->recording))
		sched_yield();
}

/* Fills in everything of p but the fence, and makes the stream stay while the driver is called.
 * Returns the number of the command (ss_cover_begin). Order lock held. */
static unsigned record_begin(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
			     enum ss_fence_how how, struct ss_pending *p)
{
	unsigned cover;

	ss_spin_lock(&tl->lock);
	p->pos = how == SS_FENCE_EXACT ? n : ss_position(tl);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	p->since = ss_now_ms(core);
	p->asked = 0;
	p->clock = ss_clock_of(tl);
	p->exact = how == SS_FENCE_EXACT;
	p->next = NULL;
	if (tl->fenced < p->pos)
		tl->fenced = p->pos; /* others need not ask again */
	atomic_fetch_add(&tl->recording, 1);
	return cover;
}

/* The command was enqueued. Order lock held. */
static void commanded(struct ss_timeline *tl, uint64_t pos, unsigned cover)
{
	atomic_store_explicit(&tl->wanted, false, memory_order_relaxed);
	if (atomic_load(&tl->commanded) < pos)
		atomic_store(&tl->commanded, pos);
	ss_cover_end(tl, cover);
}

/* Order lock held. */
static void append(struct ss_core *core, struct ss_timeline *tl, struct ss_pending *p,
		   enum ss_fence_how how)
{
	if (how == SS_FENCE_LAST)
		tl->sealed = p->pos;
	*tl->fences_tail = p;
	tl->fences_tail = &p->next;
	atomic_fetch_add_explicit(&tl->pending, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->order->fences_pending, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->order->fences, 1, memory_order_relaxed);
}

bool ss_fence_request(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
		      enum ss_fence_how how)
{
	/* If host memory is out the command is enqueued all the same, since the application may
	 * rely on it. But nobody will know when it has been reached. */
	struct ss_pending once, *kept = malloc(sizeof(*kept)), *p = kept ? kept : &once;
	struct ss_order *o = core->order;
	uint64_t before;
	enum ss_status s;
	unsigned cover;
	void *native;
	int dev;

	pthread_mutex_lock(&o->lock);
	if (n != UINT64_MAX && tl->fenced >= n) {
		pthread_mutex_unlock(&o->lock);
		free(kept);
		return true;
	}
	if (!ss_fence_may(core, tl, how)) {
		atomic_store_explicit(&tl->wanted, tl->alive, memory_order_relaxed);
		pthread_mutex_unlock(&o->lock);
		free(kept);
		return false;
	}
	before = tl->fenced;
	cover = record_begin(core, tl, n, how, p);
	native = tl->native;
	dev = tl->dev;
	pthread_mutex_unlock(&o->lock);

	s = SS_DRIVE(core, core->drv.fence_record(core->drv.ctx, dev, native, &p->fence));

	pthread_mutex_lock(&o->lock);
	atomic_fetch_sub(&tl->recording, 1);
	if (s == SS_OK)
		commanded(tl, p->pos, cover);
	if (s == SS_OK && kept)
		append(core, tl, p, how);
	else if (tl->fenced == p->pos)
		tl->fenced = before;
	pthread_mutex_unlock(&o->lock);
	if (s == SS_OK && kept)
		return true;
	if (s == SS_OK)
		core->drv.fence_release(core->drv.ctx, &p->fence);
	ss_clock_free(p->clock);
	free(kept);
	return false;
}

void ss_fence_serve(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->wanted, memory_order_relaxed))
		ss_fence_request(core, tl, UINT64_MAX, how);
}

/* A hit and a free enqueue nothing. So a blocking stream that was used for nothing else has not
 * joined the null stream yet, although the block may be in use there. (The runtime's own
 * hipFreeAsync enqueues a marker that joins.) A command of ours makes up for it where the
 * application is about to rely on it. */
void ss_fence_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->progress.uncovered, memory_order_relaxed))
		ss_fence_request(core, tl, UINT64_MAX, how);
}

uint32_t ss_fence_pending(const struct ss_timeline *tl)
{
	return atomic_load(&tl->pending);
}

uint32_t ss_fences_pending(const struct ss_core *core, int dev)
{
	uint32_t pending = 0;

	SS_TIMELINES_EACH(tl, core->order)
		if (atomic_load_explicit(&tl->dev, memory_order_relaxed) == dev)
			pending += ss_fence_pending(tl);
	return pending;
}

bool ss_fence_asked(const struct ss_timeline *tl, uint64_t n)
{
	return atomic_load(&tl->fenced) >= n &&
	       atomic_load(&tl->pending) + atomic_load(&tl->recording) > 0;
}

uint64_t ss_order_fences(const struct ss_core *core)
{
	return atomic_load_explicit(&core->order->fences, memory_order_relaxed);
}

/* ---- fences of single frees ------------------------------------------------- */

/* Fences of single frees that a stream has at most. Each holds an event of the runtime. */
#define MOST_EXACT 32
#define FREES_PER_LOOK 16 /* to ask for reached ones is a call into the runtime */

/* Without this a stream that only takes back what it freed would never ask. A free that gets no
 * fence of its own is covered by a later one. */
bool ss_fence_room(struct ss_core *core, struct ss_timeline *tl)
{
	unsigned crowded;

	if (atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT)
		return true;
	/* If two threads count at once one of them is not counted. That does no harm. */
	crowded = atomic_load_explicit(&tl->crowded, memory_order_relaxed);
	atomic_store_explicit(&tl->crowded, crowded + 1, memory_order_relaxed);
	if (crowded % FREES_PER_LOOK)
		return false;
	ss_fence_poll(core, tl, -1);
	return atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT;
}

uint64_t ss_position_alone(struct ss_timeline *tl)
{
	return atomic_fetch_add(&tl->progress.now, 2) + 1;
}
