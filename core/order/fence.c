/* SPDX-License-Identifier: MIT */
/*
 * Recording fences. A fence tells the host, without a wait, how far a stream has come.
 *
 * A fence is recorded on demand, when a thread wants memory that was freed on another stream. A
 * fence covers every free before it. It also covers all work that was enqueued since, perhaps a
 * kernel that never ends; so a fence is polled, and no thread waits for it. Only a fence that was
 * recorded inside the very free it belongs to (`exact`) may make another stream wait.
 *
 * A fence on the null stream joins all blocking streams. So it is recorded only if there are none,
 * or inside a call of the application that joins them anyway. A stream that would join it begins
 * only after the record (ss_null_quiesce). The per-thread stream of another thread has no handle
 * here. In both cases the request is remembered as `wanted`.
 *
 * Likewise, no fence is recorded on a stream for which another thread waits in the runtime, since
 * on some releases the record would last as long as the wait. The waiting thread records the fence
 * afterwards, unless its wait has already shown the progress (ss_waiting_serve).
 *
 * Locks: order->lock, then timeline->lock. The driver is called with none; meanwhile `recording`
 * keeps the stream from being destroyed or captured.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

static bool joining(enum ss_fence_how how)
{
	return how == SS_FENCE_JOINING || how == SS_FENCE_OWN;
}

bool ss_fence_may(const struct ss_core *core, const struct ss_timeline *tl, enum ss_fence_how how)
{
	if (!tl->alive || tl->capturing)
		return false;
	/* If no stream joins the null stream, a command on it joins nothing. But there may be
	 * streams that the shim does not know. */
	if (tl->kind == SS_TL_NULL && !joining(how) &&
	    (atomic_load(&core->order->dev[atomic_load(&tl->dev)].joiners) || ss_distrusted(core)))
		return false;
	return tl->kind != SS_TL_THREAD || pthread_equal(tl->thread, pthread_self());
}

/* Any thread may record on any stream while the stream's owner destroys it or begins a capture.
 * The owner's call waits for those threads. Those threads themselves wait for nothing. */
void ss_fence_quiesce(struct ss_timeline *tl)
{
	for (unsigned turn = 0; atomic_load(&tl->recording);)
		ss_backoff(&turn);
}

/* Is a thread waiting so that the call might not return before that wait ends? */
static bool in_the_way(const struct ss_core *core, const struct ss_timeline *tl,
		       enum ss_fence_how how)
{
	return how != SS_FENCE_OWN && how != SS_FENCE_LAST && ss_waited(core, tl);
}

/* A thread that asks first raises `recording`, then looks for threads that wait. A thread that
 * waits does it in the opposite order (ss_waiting_begin). So one of the two sees the other. */
bool ss_asking_begin(const struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	if (!ss_fence_may(core, tl, how))
		return false;
	atomic_fetch_add(&tl->recording, 1);
	if (likely(!in_the_way(core, tl, how)))
		return true;
	ss_asking_end(tl);
	return false;
}

/* Fills in every member of p but the fence. Returns the number of the command (ss_cover_begin).
 * Order lock held. */
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
		tl->fenced = p->pos; /* other threads need not ask again */
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
	 * rely on it. But its completion will not be noticed. */
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
	if (!ss_asking_begin(core, tl, how)) {
		atomic_store_explicit(&tl->wanted, tl->alive, memory_order_relaxed);
		ss_raise_to(&tl->wanted_at, n == UINT64_MAX ? ss_timeline_now(tl) : n);
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
	ss_asking_end(tl);
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
 * hipFreeAsync enqueues a marker that joins.) If the application is about to rely on the join, a
 * command of ours is enqueued to make it. */
void ss_fence_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->progress.uncovered, memory_order_relaxed))
		ss_fence_request(core, tl, UINT64_MAX, how);
}

void ss_waiting_serve(struct ss_core *core, struct ss_timeline *tl)
{
	if (likely(!atomic_load_explicit(&tl->wanted, memory_order_relaxed)))
		return;
	/* A thread that has waited for its own stream leaves it idle: the thread may be about to
	 * end. The stream's next free serves the request, as it would without a wait. */
	if (ss_timeline_kind(tl) == SS_TL_THREAD)
		return;
	if (atomic_load(&tl->progress.completed) >= atomic_load(&tl->wanted_at))
		atomic_store_explicit(&tl->wanted, false, memory_order_relaxed);
	else
		ss_fence_serve(core, tl, SS_FENCE_LATE);
}

void ss_waiting_end(struct ss_core *core, struct ss_waiting *w)
{
	struct ss_timeline *tl = ss_waiting_over(core, w);

	if (tl)
		ss_waiting_serve(core, tl);
}

uint32_t ss_fence_pending(const struct ss_timeline *tl)
{
	return atomic_load(&tl->pending);
}

bool ss_position_expected(const struct ss_core *core, const struct ss_timeline *tl, uint64_t n)
{
	return (atomic_load(&tl->fenced) >= n &&
		atomic_load(&tl->pending) + atomic_load(&tl->recording) > 0) ||
	       ss_wait_tells(core, tl, n);
}

bool ss_fence_expected(const struct ss_core *core, const struct ss_timeline *tl, bool *waits)
{
	bool tells;

	if (ss_fence_pending(tl))
		return true;
	tells = ss_wait_tells(core, tl, atomic_load(&tl->progress.completed) + 1);
	*waits |= tells;
	return tells;
}

bool ss_fences_expected(const struct ss_core *core, int dev, bool *waits)
{
	SS_TIMELINES_EACH(tl, core->order)
		if (atomic_load_explicit(&tl->dev, memory_order_relaxed) == dev &&
		    ss_fence_expected(core, tl, waits))
			return true;
	return false;
}

uint64_t ss_order_fences(const struct ss_core *core)
{
	return atomic_load_explicit(&core->order->fences, memory_order_relaxed);
}
