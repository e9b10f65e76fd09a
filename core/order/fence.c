/* SPDX-License-Identifier: MIT */
/*
 * Fences: how the host learns, without waiting, how far a stream has come.
 *
 * A fence is recorded on demand - when somebody wants memory that was freed on
 * another stream - and stands for every free before it. It also stands behind
 * whatever else was enqueued since, perhaps a kernel that never ends: so it is
 * polled, and nobody waits for it. Only a fence that was recorded inside the
 * very free it belongs to (`exact`) may gate another stream on the device.
 *
 * A null stream is fenced only where no blocking stream exists, or inside an
 * application call that joins all of them anyway, because recording on it does; the per-thread stream of
 * another thread has no handle here. Both are remembered as `wanted`.
 *
 * Locks: core->order, timeline->lock. The driver is called without it; `polling` marks the
 * timeline whose fences a thread is asking about, so nobody releases them.
 */
#include <sched.h>
#include <stdlib.h>

#include "core/internal.h"

bool ss_fence_may(const struct ss_timeline *tl, enum ss_fence_how how)
{
	if (!tl->alive || tl->capturing)
		return false;
	/* Where no stream joins the null stream, a record on it joins nothing; but
	 * there may be streams that we do not know. */
	if (tl->kind == SS_TL_NULL && how != SS_FENCE_JOINING && !SS_MUTANT_IS(40) &&
	    (atomic_load(&tl->core->dev[tl->dev].joiners) || ss_distrusted(tl->core)))
		return false;
	return tl->kind != SS_TL_THREAD || pthread_equal(tl->thread, pthread_self()) ||
	       SS_MUTANT_IS(42);
}

/* Anyone may record on anyone's stream, while its owner destroys it or begins a
 * capture: the owner's call waits for those that are under way. They do not wait
 * for anything. */
void ss_fence_quiesce(struct ss_timeline *tl)
{
	while (atomic_load(&tl->recording))
		sched_yield();
}

/* What a stream was that is gone, any may be that is captured: the runtime goes by addresses. */
bool ss_fence_off_limits(const struct ss_core *core, const struct ss_timeline *tl)
{
	return core->dev[tl->dev].info.query_spoils && !SS_MUTANT_IS(51) &&
	       (tl->alive ? ss_timeline_capturing(tl) : atomic_load(&core->capturing) > 0);
}

void ss_fence_unasked(struct ss_core *core, const struct ss_timeline *tl)
{
	bool asked = core->dev[tl->dev].info.query_spoils;

	while (asked) {
		asked = false;
		pthread_mutex_lock(&core->order);
		for (uint32_t i = 0; i < core->slot_count; i++)
			asked |= core->slots[i]->polling &&
				 (core->slots[i] == tl || !core->slots[i]->alive);
		pthread_mutex_unlock(&core->order);
		if (asked)
			sched_yield();
	}
}

bool ss_fence_request(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
		      enum ss_fence_how how)
{
	struct ss_pending once, *kept = malloc(sizeof(*kept)), *p = kept ? kept : &once;
	uint64_t before;
	enum ss_status s;
	unsigned cover;
	void *native;
	int dev;

	pthread_mutex_lock(&core->order);
	if (n != UINT64_MAX && tl->fenced >= n) {
		pthread_mutex_unlock(&core->order);
		free(kept);
		return true;
	}
	if (!ss_fence_may(tl, how)) {
		atomic_store_explicit(&tl->wanted, tl->alive, memory_order_relaxed);
		pthread_mutex_unlock(&core->order);
		free(kept);
		return false;
	}
	before = tl->fenced;
	ss_spin_lock(&tl->lock);
	p->pos = how == SS_FENCE_EXACT ? n : ss_position(tl);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	p->row = ss_row_of(core, tl);
	p->exact = how == SS_FENCE_EXACT;
	p->next = NULL;
	if (tl->fenced < p->pos)
		tl->fenced = p->pos; /* others need not ask again */
	native = tl->native;
	dev = tl->dev;
	atomic_fetch_add(&tl->recording, 1);
	pthread_mutex_unlock(&core->order);

	s = SS_DRIVE(core, core->drv.fence_record(core->drv.ctx, dev, native, &p->fence));

	pthread_mutex_lock(&core->order);
	atomic_fetch_sub(&tl->recording, 1);
	if (s == SS_OK) {
		atomic_store_explicit(&tl->wanted, false, memory_order_relaxed);
		if (atomic_load(&tl->commanded) < p->pos)
			atomic_store(&tl->commanded, p->pos);
		ss_cover_end(tl, cover);
	}
	/* Host memory is out: the command stands where the program counts on one, but nobody will
	 * know when it has been reached. */
	if (s == SS_OK && kept) {
		if (how == SS_FENCE_LAST)
			tl->sealed = p->pos;
		if (SS_MUTANT_IS(4))
			p->pos++;
		*tl->fences_tail = p;
		tl->fences_tail = &p->next;
		atomic_fetch_add_explicit(&tl->pending, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&core->fences_pending, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&core->fences, 1, memory_order_relaxed);
	} else if (tl->fenced == p->pos) {
		tl->fenced = before;
	}
	pthread_mutex_unlock(&core->order);
	if (s == SS_OK && kept)
		return true;
	if (s == SS_OK)
		core->drv.fence_release(core->drv.ctx, &p->fence);
	ss_row_put(p->row);
	free(kept);
	return false;
}

/* Unlinks the first fence of tl. Order lock held. */
static void pop(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_pending *p = tl->fences;

	tl->fences = p->next;
	if (!tl->fences)
		tl->fences_tail = &tl->fences;
	atomic_fetch_sub_explicit(&tl->pending, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&core->fences_pending, 1, memory_order_relaxed);
}

static void pending_free(struct ss_core *core, struct ss_pending *p)
{
	core->drv.fence_release(core->drv.ctx, &p->fence);
	ss_row_put(p->row);
	free(p);
}

/* Takes the fences of a timeline that was dropped while it was being polled. */
static struct ss_pending *take_all(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_pending *list = tl->fences;

	while (tl->fences)
		pop(core, tl);
	tl->drop = false;
	return list;
}

void ss_fence_dropped(struct ss_core *core, struct ss_pending *p)
{
	while (p) {
		struct ss_pending *next = p->next;

		pending_free(core, p);
		p = next;
	}
}

/* How far tl has come by a fence at pos. Behind the last one of a stream that is gone
 * nothing was enqueued, though an epoch may have counted on after it. Order lock held. */
static uint64_t proved_by(const struct ss_timeline *tl, uint64_t pos)
{
	return !tl->alive && tl->sealed && pos >= tl->sealed ? tl->last : pos;
}

static bool poll_one(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_pending *p, *dropped = NULL;
	bool any = false;

	pthread_mutex_lock(&core->order);
	if (tl->polling) {
		pthread_mutex_unlock(&core->order);
		return false;
	}
	/* Another thread may have come while the lock was dropped: its turn then. */
	while (!tl->polling && (p = tl->fences) && !tl->drop && !ss_fence_off_limits(core, tl)) {
		enum ss_status s;

		tl->polling = true;
		pthread_mutex_unlock(&core->order);
		s = SS_DRIVE(core, core->drv.fence_query(core->drv.ctx, &p->fence));
		pthread_mutex_lock(&core->order);
		tl->polling = false;
		if (s != SS_OK)
			break;
		ss_complete(core, tl, proved_by(tl, p->pos), p->row, false);
		any = true;
		pop(core, tl);
		pthread_mutex_unlock(&core->order);
		pending_free(core, p);
		pthread_mutex_lock(&core->order);
	}
	if (tl->drop && !tl->polling)
		dropped = take_all(core, tl);
	pthread_mutex_unlock(&core->order);
	ss_fence_dropped(core, dropped);
	return any;
}

bool ss_fence_poll(struct ss_core *core, struct ss_timeline *tl, int dev)
{
	uint32_t count;
	bool any = false;

	if (tl)
		return atomic_load_explicit(&tl->pending, memory_order_relaxed) &&
		       poll_one(core, tl);
	if (!atomic_load_explicit(&core->fences_pending, memory_order_relaxed))
		return false;
	count = atomic_load_explicit(&core->slot_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (dev < 0 || __atomic_load_n(&core->slots[i]->dev, __ATOMIC_RELAXED) == dev)
			any |= ss_fence_poll(core, core->slots[i], dev);
	return any;
}

struct ss_pending *ss_fence_drop(struct ss_core *core, struct ss_timeline *tl)
{
	if (!tl->polling)
		return take_all(core, tl);
	tl->drop = true;
	return NULL;
}

bool ss_fence_gate(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl, uint64_t n)
{
	struct ss_pending *p, *dropped = NULL;
	enum ss_status s;

	pthread_mutex_lock(&core->order);
	for (p = tl->fences; p; p = p->next)
		if ((p->exact && p->pos == n) || (SS_MUTANT_IS(18) && p->pos >= n))
			break;
	if (!p || tl->polling || ss_fence_off_limits(core, tl) || x->capturing || !x->alive ||
	    x->kind == SS_TL_NULL) {
		pthread_mutex_unlock(&core->order);
		return false;
	}
	tl->polling = true; /* keeps p */
	pthread_mutex_unlock(&core->order);
	s = SS_DRIVE(core, core->drv.fence_wait(core->drv.ctx, x->dev, x->native, &p->fence));
	pthread_mutex_lock(&core->order);
	tl->polling = false;
	if (s == SS_OK)
		ss_row_merge_into(x, p->row, tl->slot, p->pos);
	if (tl->drop)
		dropped = take_all(core, tl);
	pthread_mutex_unlock(&core->order);
	ss_fence_dropped(core, dropped);
	return s == SS_OK;
}

/* A stream with nothing left to do reaches a new fence within microseconds: less
 * than memory costs. So a new fence is looked at a few times; a stream that is
 * busy is left alone after that. */
#define LOOKS 64

bool ss_fence_reached(struct ss_core *core, struct ss_timeline *tl, uint64_t n, unsigned *looks)
{
	for (;; ++*looks) {
		ss_fence_poll(core, tl, -1);
		if (atomic_load(&tl->completed) >= n)
			return true;
		if (*looks >= LOOKS || !core->drv.pause)
			return false;
		core->drv.pause(core->drv.ctx);
	}
}
