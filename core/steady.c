/* SPDX-License-Identifier: MIT */
/*
 * Is a stream's demand known? While it is not, its pool is kept tight: what was freed
 * merges before a range is cut, whatever that costs. Later it is kept fast: bins serve
 * what they can, and the stream divides by itself what only it uses (lease.c).
 *
 * Where the bytes in use came near their peak and went again, several times, the next
 * time will be like the last, unless its sizes are new ones. The allocations until the
 * peak was reached say how long one time may be. Each stream of a program with many
 * threads goes through its own times, and is judged by its own bytes; where one thread
 * counts for the whole pool, by those of the pool. A queue's count is relative: it begins
 * at 0 when a second thread comes, and what was live then is freed on it all the same; so
 * its bytes are those above the fewest there were. Blocks that change hands are found
 * only where others' bins are looked at, which a steady stream puts off: then none is.
 *
 * Called with the pool's lock held.
 */
#include "core/hit.h"

#define WAVES 3        /* times that the bytes in use came near their peak */
#define LONGEST 8192   /* allocations of one time, that are waited for */
#define NOVEL_PART 16  /* of the allocations may have a size not seen before, */
#define CROSSED_PART 16 /* and of the blocks may be freed on another stream */
#define MORE_PART 128  /* of the peak: a rise that is no more of the same */

bool ss_steady(struct ss_pool *pool, struct ss_queue *q, uint64_t size)
{
	bool alone = atomic_load_explicit(&pool->counter, memory_order_relaxed) !=
		     SS_COUNTER_SHARED;
	const struct ss_count *count = alone ? &pool->alone : &q->count;
	int64_t now = (int64_t)ss_get(&count->used);
	struct ss_demand *d = &q->demand;
	uint64_t used, high, allocs, least;
	bool steady;

	if (!pool->core->opt.steady)
		return true;
	if (now < d->low) { /* no new peak: the old one was that much more */
		d->peak += d->peak ? (uint64_t)(d->low - now) : 0;
		d->low = now;
	}
	used = (uint64_t)(now - d->low) + size;
	high = ss_get(&count->peak) - (uint64_t)d->low;
	d->misses++;
	d->novel += !ss_queue_knows(q, size);
	if (used >= high - high / 8) {
		d->near_peak = true;
	} else if (d->near_peak && used < high - high / 4) {
		d->near_peak = false;
		d->waves++;
	}
	allocs = q->hits_counted + d->misses - d->at;
	least = pool->core->opt.steady + (d->took < LONGEST ? d->took : LONGEST);
	steady = d->waves >= WAVES && allocs >= least && d->novel * NOVEL_PART <= allocs &&
		 atomic_load(&pool->crossed) * CROSSED_PART <= pool->spent.allocs;
	/* Once that stands, a little more now and then is no new phase. */
	if (high <= d->peak + (steady ? d->peak / MORE_PART : 0))
		return steady;
	*d = (struct ss_demand){.peak = high, .low = d->low, .at = d->at + allocs, .misses = d->misses,
				.took = d->peak ? d->took + allocs : 0};
	return false;
}

uint64_t ss_peak_of(struct ss_queue *q)
{
	return ss_get(&q->count.peak) - (uint64_t)q->demand.low;
}

void ss_unsteady(struct ss_pool *pool)
{
	for (struct ss_queue *q = pool->done; q; q = ss_queue_after(pool, q))
		q->demand.peak = 0;
}
