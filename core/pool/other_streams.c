/* SPDX-License-Identifier: MIT */
/*
 * What other streams, and epochs, hold of a pool's free memory, and how to learn how far they
 * are: by asking, which costs the device nothing, or by fences, which are budgeted.
 *
 * Locks: pool->lock, dropped for every driver call.
 */
#include "core/internal.h"

#define FREES_PER_FENCE 96      /* of a queue, in the long run */
#define IDLE_SHARE (8ull << 20) /* bytes worth a fence on an idle stream, */
#define NULL_SHARES 4           /* and so many such where only a fence can tell */

/* Do other streams, or epochs, hold free memory? Pool lock held. */
bool ss_others_hold(struct ss_pool *pool, const struct ss_queue *mine)
{
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		bool holds;

		if (q == mine)
			continue;
		if (q->own.count || ss_leases(q))
			return true;
		ss_bias_visit(&q->lock);
		holds = q->blocks != 0;
		ss_bias_unlock(&q->lock);
		if (holds)
			return true;
	}
	return pool->epochs != NULL;
}

/* How to learn how far q's stream is: by a fence, one per FREES_PER_FENCE frees in the long
 * run, a few at the start, and two for every growth that went before, because a fence is
 * much cheaper than memory. Before that the stream is asked whether it is at its end, which
 * costs the device nothing; also without a fence to follow where `much` waits. One that joins
 * the null stream would need a command for that: it gets a fence for several shares of the
 * pool, however few frees that was. */
enum { ASK_IDLE = 1, ASK_FENCE = 2 };

/* (The slot may be another stream's just now: it is looked at again before it is asked.) */
static bool may_be_asked(const struct ss_queue *q)
{
	return __atomic_load_n(&q->tl->kind, __ATOMIC_RELAXED) == SS_TL_NONBLOCKING &&
	       q->pool->core->drv.stream_idle;
}

/* A good share of the pool, in bytes. */
static uint64_t good_share(const struct ss_pool *pool)
{
	uint64_t share = atomic_load(&pool->reserved) / 32;

	return share > IDLE_SHARE ? share : IDLE_SHARE;
}

/* Do such streams hold a good share of the pool? Each for itself may hold little of it: a
 * producer can have a hundred consumers. Pool lock held. */
static bool much_elsewhere(struct ss_pool *pool, const struct ss_queue *mine)
{
	uint64_t share = good_share(pool), bytes = 0;

	for (struct ss_queue *q = ss_queue_after(pool, NULL); q && bytes < share;
	     q = ss_queue_after(pool, q))
		if (q != mine && may_be_asked(q))
			bytes += q->own.bytes;
	return bytes >= share;
}

static unsigned asking(struct ss_pool *pool, struct ss_queue *q, bool much)
{
	unsigned how = 0;
	uint64_t frees;

	if (!q->own.count)
		return 0;
	ss_bias_visit(&q->lock);
	frees = q->frees;
	ss_bias_unlock(&q->lock);
	/* Asked already, and a fence will tell? */
	if (frees == q->frees_fenced && (!much || atomic_load(&q->tl->pending)))
		return 0;
	if (frees != q->frees_fenced &&
	    (q->fences < 16 + frees / FREES_PER_FENCE + 2 * pool->st.grown ||
	     (!may_be_asked(q) && q->own.bytes >= NULL_SHARES * good_share(pool))))
		how = ASK_FENCE;
	if ((how || much) && may_be_asked(q))
		how |= ASK_IDLE;
	if (how)
		q->frees_fenced = frees;
	return how;
}

bool ss_others_done(struct ss_pool *pool, struct ss_queue *q)
{
	bool done;

	if (!may_be_asked(q) || !atomic_load(&pool->opportunistic))
		return false;
	pthread_mutex_unlock(&pool->lock);
	done = ss_stream_at_end(pool->core, q->tl);
	pthread_mutex_lock(&pool->lock);
	return done;
}

/* Records the fences that would make waiting memory usable. Called with the pool
 * lock held, drops it meanwhile. True if any was recorded. */
bool ss_others_ask(struct ss_pool *pool, const struct ss_queue *mine)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	struct {
		struct ss_timeline *tl;
		uint64_t n;
		struct ss_queue *q;
		unsigned how;
	} want[64];
	bool any = false, lags = false, much = much_elsewhere(pool, mine);
	uint32_t count = 0, cap = t ? t->cap : 0, first = pool->next_asked;
	struct ss_core *core = pool->core;
	unsigned looks = 0;

	/* In turns, where they are more than fit. */
	for (uint32_t i = 0; i < cap && count < 64; i++) {
		uint32_t at = (first + i) % cap;
		struct ss_queue *q = atomic_load_explicit(&t->q[at], memory_order_acquire);

		if (!q || q == mine || !atomic_load(&pool->opportunistic))
			continue;
		want[count].how = asking(pool, q, much);
		want[count].tl = q->tl;
		want[count].q = q;
		want[count].n = atomic_load(&q->tl->now);
		count += want[count].how != 0;
		if (count == 64)
			pool->next_asked = at + 1;
	}
	for (struct ss_epoch *e = ss_epochs_due(pool) ? pool->epochs : NULL; e; e = e->next)
		for (uint32_t i = 0; i < e->count && count < 64; i++)
			if (!ss_mark_done(pool, e->mark[i].slot, e->mark[i].n)) {
				want[count].tl = ss_slot(core, e->mark[i].slot);
				want[count].q = NULL;
				want[count].how = ASK_FENCE;
				want[count++].n = e->mark[i].n;
			}
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < count; i++) {
		if (want[i].how & ASK_IDLE && ss_stream_at_end(core, want[i].tl))
			want[i].how = ASK_IDLE;
		else if (want[i].how & ASK_FENCE &&
			 ss_fence_request(core, want[i].tl, want[i].n, SS_FENCE_LATE))
			want[i].how = ASK_FENCE;
		else
			want[i].how = 0;
		any |= want[i].how != 0;
	}
	/* A stream that has not reached an older fence is busy: to look again and again costs
	 * little on a quiet machine only. */
	for (uint32_t i = 0; i < count; i++)
		if (want[i].how == ASK_FENCE && atomic_load(&want[i].tl->pending) <= 1)
			ss_fence_reached(core, want[i].tl, want[i].n, &looks);
	pthread_mutex_lock(&pool->lock);
	for (uint32_t i = 0; i < count; i++)
		if (want[i].q) {
			want[i].q->fences += want[i].how == ASK_FENCE;
			lags |= atomic_load(&want[i].tl->completed) < want[i].n;
			pool->lags = lags;
		}
	return any;
}

/* Has so much been freed on other streams since they were asked last that it
 * should be known before idle segments are cut up? Pool lock held. */
bool ss_others_freed_much(struct ss_pool *pool, struct ss_queue *q)
{
	uint64_t reserved = atomic_load(&pool->reserved), known, waits;

	if (pool->queue_count < 2 && !pool->classic)
		return false; /* nobody else ever freed anything here */
	known = ss_pool_used(pool) + pool->clean.bytes;
	if (q) {
		ss_bias_lock(&q->lock);
		known += q->bytes + q->own.bytes;
		ss_bias_unlock(&q->lock);
	}
	waits = reserved > known ? reserved - known : 0;
	if (waits < pool->waited)
		pool->waited = waits;
	if (waits - pool->waited < good_share(pool))
		return false;
	pool->waited = waits;
	return true;
}

/* Makes what other streams freed known, as far as it completed. Called with the
 * pool lock held, drops it for the driver. */
void ss_others_collect(struct ss_pool *pool, struct ss_queue *q)
{
	pthread_mutex_unlock(&pool->lock);
	ss_fence_poll(pool->core, NULL, -1);
	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool); /* what is known already needs no fence */
	ss_others_ask(pool, q);
	ss_settle(pool);
}
