/* SPDX-License-Identifier: MIT */
/*
 * What a tight fit may cost. Calls of the driver that make a pool denser are made
 * while it grows, when they lower its peak for good; once it has seen its largest
 * demand it may spend a few per hundred allocations.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/grow.h"

#define FREE_CALLS 10          /* after each new peak */
#define ALLOCS_PER_CALL 32     /* then; where chunks move, */
#define ALLOCS_PER_SWAP 22     /* where segments of the right size take the room of others, */
#define ALLOCS_PER_SWAP_FIT 64 /* and there, as long as the pool fits its program well */
#define FITS_PERCENT 103       /* of the used peak */
#define OVER_PART 100          /* of the allocations: a debt that is not worth it */
#define FREE_MISSES 32         /* growth for a tight fit costs hits, too: so many at first, */
#define MISSES_PER_1000 87     /* then no more of all */
#define MISSES_PERCENT 8       /* of the allocations; a pool with more grows ahead of them, */
#define OFTEN 12               /* misses that are no mere beginning, where they are */
#define OFTEN_PERCENT 6        /* of the allocations */
#define MANY_PERCENT 10        /* and with so many twice as far; */
#define YOUNG 40               /* misses that do not say yet how it goes on */

void ss_thrift_count(struct ss_pool *pool, struct ss_queue *q)
{
	uint64_t hits = 0;

	if (q) {
		ss_bias_lock(&q->lock);
		hits = q->hits - q->hits_counted;
		q->hits_counted = q->hits;
		ss_bias_unlock(&q->lock);
	}
	pool->spent.allocs += hits + 1;
}

/* A pool that was never much larger than what was in use has little to win. */
static uint64_t allocs_per_call(const struct ss_pool *pool, uint64_t high)
{
	if (pool->backing == SS_BACKING_VMM)
		return ALLOCS_PER_CALL;
	return atomic_load(&pool->reserved_high) > high / 100 * FITS_PERCENT ?
	       ALLOCS_PER_SWAP : ALLOCS_PER_SWAP_FIT;
}

int64_t ss_thrift(struct ss_pool *pool)
{
	uint64_t high = ss_pool_used_high(pool);

	if (high > pool->spent.used_high) {
		pool->spent.used_high = high;
		pool->spent.calls_then = pool->spent.calls;
		pool->spent.allocs_then = pool->spent.allocs;
	}
	return (int64_t)(FREE_CALLS + (pool->spent.allocs - pool->spent.allocs_then) /
			 allocs_per_call(pool, high)) -
	       (int64_t)(pool->spent.calls - pool->spent.calls_then);
}

bool ss_thrift_over(struct ss_pool *pool)
{
	return pool->backing == SS_BACKING_VMM &&
	       ss_thrift(pool) + (int64_t)((pool->spent.allocs - pool->spent.allocs_then) /
					   OVER_PART) < 0;
}

int64_t ss_thrift_misses_left(const struct ss_pool *pool)
{
	uint64_t may = pool->spent.allocs * MISSES_PER_1000 / 1000;

	return (int64_t)(may > FREE_MISSES ? may : FREE_MISSES) - (int64_t)pool->st.misses;
}

bool ss_thrift_misses(const struct ss_pool *pool)
{
	return ss_thrift_misses_left(pool) > 0;
}

/* Are more than `percent` of the allocations misses? */
static bool exceeds(const struct ss_pool *pool, unsigned percent)
{
	return pool->st.misses * 100 > pool->spent.allocs * percent;
}

bool ss_thrift_often(const struct ss_pool *pool)
{
	return pool->st.misses >= OFTEN && exceeds(pool, OFTEN_PERCENT);
}

bool ss_thrift_young(const struct ss_pool *pool)
{
	return pool->st.misses < YOUNG;
}

bool ss_thrift_many(const struct ss_pool *pool)
{
	return !ss_thrift_young(pool) && exceeds(pool, MANY_PERCENT);
}

uint64_t ss_thrift_ahead(const struct ss_pool *pool, unsigned part)
{
	uint64_t ahead = atomic_load(&pool->reserved) / part;

	if (!exceeds(pool, MISSES_PERCENT))
		return 0;
	return exceeds(pool, MANY_PERCENT) ? 2 * ahead : ahead;
}
