/* SPDX-License-Identifier: MIT */
/*
 * Is a stream's demand known? While it is not, its pool is kept tight: what was freed
 * merges before a range is cut, whatever that costs. Later it is kept fast: bins serve
 * what they can, and the stream divides by itself what only it uses (lease.c). Where its
 * sizes do not come again, bins serve nothing: there what was freed still merges at once,
 * but in what the stream divides, without the pool's lock.
 *
 * Where the bytes in use came back to their peak and went again, several times, the next
 * time will be like the last; also where they have no waves for much longer than that
 * takes. What comes near its peak again and again, but not back to it, is known, too, but
 * merges: random lifetimes do that. (While a stream is kept tight each slow path empties its
 * bins, so nothing is higher than what those see.) The allocations until the peak was reached
 * say how long one time may be. Each stream of a program with many threads goes through its
 * own times, and is judged by its own bytes; where one thread counts for the whole pool, by
 * those of the pool. A queue's count is relative: it begins at 0 when a second thread comes,
 * and what was live then is freed on it all the same; so its bytes are those above the fewest
 * there were. Blocks that change hands are found only where others' bins are looked at, which
 * a steady stream puts off: then none is.
 *
 * A stream that is kept fast takes what lies on top of a bin, wherever that is, so what
 * is live when a large block comes lies scattered. Where chunks have to move for that again
 * and again, it merges instead, until its demand is another.
 *
 * Called with the pool's lock held.
 */
#include "core/grow.h"
#include "core/hit.h"

#define WAVES 3        /* times that the bytes in use came near their peak, */
#define NEAR_PART 8    /* of it; what comes again as it was comes as high again: */
#define EXACT_PART 64
#define CHANCE 4       /* waves for each that does: more, and it was chance */
#define MANY_WAVES 24  /* that do not: then it is not going to */
#define LONGEST 8192   /* allocations of one time, that are waited for */
#define PLATEAU 16     /* times as many without a higher peak will do where there are no waves */
#define CROSSED_PART 16 /* of the blocks may be freed on another stream */
#define MORE_PART 128  /* of the peak: a rise that is no more of the same */

static enum ss_demand_state judge(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
				  bool varied)
{
	bool alone = atomic_load_explicit(&pool->counter, memory_order_relaxed) !=
		     SS_COUNTER_SHARED;
	const struct ss_count *count = alone ? &pool->alone : &q->count;
	int64_t now = (int64_t)ss_get(&count->used);
	struct ss_demand *d = &q->demand;
	uint64_t used, high, allocs, least;
	bool level, again, known;

	if (now < d->low) { /* no new peak: the old one was that much more */
		d->peak += d->peak ? (uint64_t)(d->low - now) : 0;
		d->low = now;
	}
	used = (uint64_t)(now - d->low) + size;
	high = ss_get(&count->peak) - (uint64_t)d->low;
	d->misses++;
	d->at_peak |= used >= high - high / EXACT_PART;
	if (used >= high - high / NEAR_PART) {
		d->near_peak = true;
	} else if (d->near_peak && used < high - high / 4) {
		d->waves++;
		d->returns += d->at_peak;
		d->near_peak = d->at_peak = false;
	}
	allocs = q->hits_counted + d->misses - d->at;
	least = pool->core->opt.steady + (d->took < LONGEST ? d->took : LONGEST);
	level = allocs >= PLATEAU * least;
	/* Once it is kept fast, few see how high it gets. */
	again = d->fast ||
		(d->returns >= WAVES && d->returns * CHANCE >= d->waves && allocs >= least) ||
		(level && d->waves < WAVES);
	known = (again || level || (d->waves >= (varied ? WAVES : MANY_WAVES) && allocs >= least)) &&
		atomic_load(&pool->crossed) * CROSSED_PART <= pool->spent.allocs;
	/* Once that stands, a little more now and then is no new phase. */
	if (high > d->peak + (known ? d->peak / MORE_PART : 0)) {
		*d = (struct ss_demand){.peak = high, .low = d->low, .at = d->at + allocs,
					.misses = d->misses, .took = d->peak ? d->took + allocs : 0};
		return SS_GROWING;
	}
	if (!known)
		return SS_GROWING;
	d->costly |= ss_thrift_over(pool);
	d->fast = again && !d->costly;
	return d->fast && !varied ? SS_STEADY : SS_MERGING;
}

enum ss_demand_state ss_steady(struct ss_pool *pool, struct ss_queue *q, uint64_t size)
{
	bool varied = ss_queue_asked(q, size), merging;
	enum ss_demand_state is = pool->core->opt.steady ? judge(pool, q, size, varied) :
				  varied ? SS_MERGING : SS_STEADY;

	merging = is == SS_MERGING && !varied;
	if (q->merging != merging) {
		ss_bias_lock(&q->lock);
		q->merging = merging;
		ss_bias_unlock(&q->lock);
	}
	return is;
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
