/* SPDX-License-Identifier: MIT */
/*
 * What a tight fit may cost. Calls of the driver that make a pool denser are made
 * while it grows, when they lower its peak for good; once it has seen its largest
 * demand it may spend a few per hundred allocations.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/internal.h"

#define WARM_UP 32         /* allocations; no loop so far */
#define FREE_CALLS 10      /* after each new peak */
#define ALLOCS_PER_CALL 25 /* then */
#define FREE_MISSES 32     /* growth for a tight fit costs hits, too */
#define ALLOCS_PER_MISS 15

void ss_thrift_count(struct ss_pool *pool, struct ss_queue *q)
{
	uint64_t hits = 0;

	if (q) {
		ss_spin_lock(&q->lock);
		hits = q->hits - q->hits_counted;
		q->hits_counted = q->hits;
		ss_spin_unlock(&q->lock);
	}
	pool->spent.allocs += hits + 1;
}

bool ss_thrift_allows(struct ss_pool *pool, unsigned calls)
{
	uint64_t high = ss_pool_used_high(pool);

	if (high > pool->spent.used_high) {
		pool->spent.used_high = high;
		pool->spent.calls_then = pool->spent.calls;
		pool->spent.allocs_then = pool->spent.allocs;
	}
	return pool->spent.allocs >= WARM_UP &&
	       pool->st.grown < FREE_MISSES + pool->spent.allocs / ALLOCS_PER_MISS &&
	       pool->spent.calls - pool->spent.calls_then + calls <=
	       FREE_CALLS + (pool->spent.allocs - pool->spent.allocs_then) / ALLOCS_PER_CALL;
}
