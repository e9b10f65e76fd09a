/* SPDX-License-Identifier: MIT */
/*
 * Bytes in use, where they are more than an addition: who counts them, new peaks, sums
 * (core/hit.h).
 *
 * Locks: queue->lock.
 */
#include "core/hit.h"

struct ss_count *ss_count_of(struct ss_pool *pool, struct ss_queue *q)
{
	uintptr_t who = atomic_load_explicit(&pool->counter, memory_order_relaxed);
	uintptr_t me = (uintptr_t)ss_thread_record();

	if (!who && me != (uintptr_t)&ss_nobody &&
	    atomic_compare_exchange_strong(&pool->counter, &who, me))
		return &pool->alone;
	if (who == me)
		return &pool->alone;
	/* A second thread: from here on nobody counts alone. */
	if (who != SS_COUNTER_SHARED) {
		atomic_store_explicit(&pool->counter, SS_COUNTER_SHARED, memory_order_relaxed);
		ss_recent_end(pool->core);
	}
	return &q->count;
}

enum ss_status ss_count_peak(struct ss_queue *q, struct ss_count *c)
{
	struct ss_pool *pool = q->pool;

	ss_put(&c->peak, ss_get(&c->used));
	ss_bias_unlock(&q->lock);
	if (c != &pool->alone)
		ss_pool_peak(pool);
	return SS_OK;
}

enum ss_status ss_used_shared(struct ss_pool *pool, struct ss_queue *q, uint64_t delta)
{
	struct ss_count *c = ss_count_of(pool, q);

	if (!ss_count_add(c, delta))
		return ss_count_peak(q, c);
	ss_bias_unlock(&q->lock);
	return SS_OK;
}

void ss_used_add(struct ss_pool *pool, struct ss_queue *q, uint64_t delta)
{
	ss_bias_lock(&q->lock);
	ss_used_shared(pool, q, delta);
	/* Off the hit path the sum is affordable: threads that take turns are seen. */
	if ((int64_t)delta > 0 &&
	    atomic_load_explicit(&pool->counter, memory_order_relaxed) == SS_COUNTER_SHARED)
		ss_pool_peak(pool);
}

enum ss_status ss_hit_full(struct ss_queue *q, uint64_t size)
{
	ss_used_shared(q->pool, q, -size);
	ss_queue_empty(q);
	return SS_OK;
}

uint64_t ss_pool_used(struct ss_pool *pool)
{
	uint64_t sum = ss_get(&pool->alone.used);

	/* One thread's streams may be thousands, each with a cache line of its own. */
	if (atomic_load(&pool->counter) != SS_COUNTER_SHARED)
		return sum;
	sum += ss_get(&pool->done->count.used);
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q))
		sum += ss_get(&q->count.used);
	/* A block's two ends may be seen out of order. */
	return (int64_t)sum < 0 ? 0 : sum;
}

void ss_pool_peak(struct ss_pool *pool)
{
	uint64_t used = ss_pool_used(pool), peak = ss_get(&pool->alone.peak);

	while (used > peak && !atomic_compare_exchange_weak(&pool->alone.peak, &peak, used))
		;
}

uint64_t ss_pool_used_high(struct ss_pool *pool)
{
	if (ss_get((_Atomic uint64_t *)&pool->counter) == SS_COUNTER_SHARED)
		ss_pool_peak(pool);
	return ss_get(&pool->alone.peak);
}

void ss_pool_used_reset(struct ss_pool *pool, bool to_zero)
{
	for (struct ss_queue *q = pool->done; q; q = ss_queue_after(pool, q)) {
		ss_bias_visit(&q->lock);
		if (to_zero)
			ss_put(&q->count.used, 0);
		ss_put(&q->count.peak, ss_get(&q->count.used));
		ss_bias_unlock(&q->lock);
	}
	if (to_zero)
		ss_put(&pool->alone.used, 0);
	ss_put(&pool->alone.peak, ss_pool_used(pool));
}
