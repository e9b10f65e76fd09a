/* SPDX-License-Identifier: MIT */
/*
 * Which segments fit: how large the next one of a pool is, and whether an idle one may be cut
 * up for a smaller block or the pool should rather grow. What is cut off it may stay, and then
 * the segment is missing when those come again for whom it was made; but growth costs a call,
 * and a hit. Taking and giving back is slab.c.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/grow.h"

#define WARM_UP 32           /* allocations: before, nothing is a loop */
#define HARMLESS 88          /* percent of the peak that segments in use may reach */
#define HARMLESS_LEAST 25
#define SMALL (64ull << 20) /* a pool of this size is not worth calls */
#define SHARED (4ull << 20) /* smaller blocks share a segment */
#define AHEAD_PART 64       /* of the pool: the segment of one that goes on growing, */
#define SPARING_PART 32     /* and of several blocks that fill it better than one, */
#define SPARING_LEAST (8ull << 20)
#define WASTE_PART 8        /* if that would leave more of it unused */
#define GOOD_PART 8         /* of a device: what a pool would miss that needs it in one piece */
#define CRAMP_PART 64        /* in rests, while it may still need all of it in other sizes: */
#define CRAMPED_FROM 3       /* it has had such a part in use */
#define BESIDE_PART 16      /* of the peak: growth, rather than that, */
#define HOME_PART 8         /* or than cutting up such a part of the peak */
#define HOME_TIMES 2        /* for what is so much smaller */

/* How much to ask for when `size` bytes are missing: small blocks share, large ones get
 * what they need and no more, unless several of them fit so much better: segments are whole
 * frames. Pool lock held. */
static uint64_t segment_size(const struct ss_pool *pool, uint64_t size)
{
	uint64_t ahead = ss_thrift_ahead(pool, AHEAD_PART);
	uint64_t most = atomic_load(&pool->reserved) / SPARING_PART;
	uint64_t n = (ahead > SHARED ? ahead : SHARED) / size, best, want;

	if (!n)
		n = 1;
	best = ss_round(n * size, SS_FRAME);
	if (size < SHARED / 4)
		return best;
	if (most < SPARING_LEAST)
		most = SPARING_LEAST;
	for (uint64_t more = n + 1; (best - n * size) * WASTE_PART > best; more++) {
		want = ss_round(more * size, SS_FRAME);
		if (want > most)
			break;
		if ((want - more * size) * n < (best - n * size) * more) {
			best = want;
			n = more;
		}
	}
	return best;
}

/* What the pools may have of the device. */
static uint64_t device_bytes(const struct ss_pool *pool)
{
	const struct ss_device_state *d = &pool->core->dev[pool->dev];

	return d->limit && d->limit < d->info.total_bytes ? d->limit : d->info.total_bytes;
}

/* Would a block of `size` keep a good part of the device from going back, or from being used
 * once more as it was? What it could have beside is too little for that again. (What was never
 * in use as a whole is no such block, but reserved from the start.) */
static bool missed(const struct ss_pool *pool, const struct ss_block *b, uint64_t size,
		   uint64_t high)
{
	uint64_t good = device_bytes(pool) / GOOD_PART, total = b->seg->size;
	/* It was made for one block, of which b is the rest, or which is free. */
	bool one = b->prev ? !b->prev->prev && !b->next : !b->next || !b->next->next;

	return good > SMALL && high + SS_FRAME > total && (one ? total : b->size) >= good + size;
}

/* With `size` cut off the idle segment b, would segments in use hold so much beside what is
 * live that a program which has all of its device in use could not have it again, in other
 * sizes? Or a good part of the device, for one that is on its way there? */
static bool cramps(struct ss_pool *pool, const struct ss_block *b, uint64_t size, uint64_t high,
		   bool growing)
{
	const struct ss_device_state *d = &pool->core->dev[pool->dev];
	uint64_t reserved = atomic_load(&pool->reserved), all = atomic_load(&d->reserved);
	uint64_t most = device_bytes(pool), good = most / GOOD_PART, spare = 0;
	uint64_t others = all > reserved ? all - reserved : 0;
	uint64_t rests = growing && high + others > most / CRAMPED_FROM ? most / CRAMP_PART : good;

	if (most > high + others)
		spare = (most - high - others) / 2; /* segments are whole frames */
	return good > SMALL &&
	       reserved - pool->idle_bytes + b->size >
		       ss_pool_used(pool) + size + (spare < rests ? spare : rests);
}

/* How large the pool may become beside what it was in use with. */
static uint64_t beside(const struct ss_pool *pool, uint64_t used, uint64_t want)
{
	uint64_t most = device_bytes(pool);

	return atomic_load(&pool->core->dev[pool->dev].reserved) + want > most - most / BESIDE_PART ?
		       0 : used + used / BESIDE_PART;
}

bool ss_fit_wasteful(struct ss_pool *pool, const struct ss_block *b, uint64_t size, bool growing,
		     struct ss_fit *fit)
{
	uint64_t reserved = atomic_load(&pool->reserved), busy = reserved - pool->idle_bytes;
	uint64_t high = ss_pool_used_high(pool);
	uint64_t want = segment_size(pool, size);
	int64_t thrift, percent;
	bool missing, one;

	*fit = (struct ss_fit){0};
	if (high < SMALL)
		return false;
	missing = missed(pool, b, size, high);
	if (!missing && b->size != b->seg->size)
		return false;
	one = b->size <= want; /* as it would grow by one */
	/* (Growth beside the peak costs a call, and an exchange two.) */
	if (missing ? ss_thrift(pool) >= 2 || reserved + want <= beside(pool, high, want) :
	    (!one || b->size % size >= SS_FRAME) && cramps(pool, b, size, high, growing) &&
	    (growing || ss_thrift(pool) >= 2)) {
		/* Of what fits into b all; the rest is what makes the difference. */
		fit->instead = b->size - b->size % size;
		return true;
	}
	if (missing || one || pool->spent.allocs < WARM_UP || ss_turns(pool))
		return false;
	thrift = ss_thrift(pool);
	if (thrift < 2 || !ss_thrift_misses(pool))
		return false;
	/* A block that fills a good part of the peak comes back to a segment of its own. */
	if (b->size >= high / HOME_PART && b->size > SMALL && b->size / HOME_TIMES >= size &&
	    reserved + want <= beside(pool, high, want)) {
		fit->beside = true;
		return true;
	}
	if (ss_peak_lacks(pool, size, b->size))
		return true;
	/* Only what is cut off an idle segment keeps it from going back. That does no
	 * harm while the segments in use leave room below the peak. Calls that were
	 * saved up are spent on more room, as long as that may lower the peak. */
	percent = growing ? HARMLESS - (thrift - 2) : HARMLESS;
	if (percent < HARMLESS_LEAST)
		percent = HARMLESS_LEAST;
	return busy + b->size > high / 100 * (uint64_t)percent;
}

/* What is missed is worth a little beside the peak. */
uint64_t ss_fit_ceiling(struct ss_pool *pool, uint64_t size, const struct ss_fit *fit)
{
	uint64_t high = atomic_load(&pool->reserved_high), used = ss_pool_used_high(pool);
	uint64_t most = beside(pool, used, ss_fit_size(pool, size, fit->instead));
	struct ss_block *b;

	if (most <= high)
		return high;
	b = ss_heap_best_part(&pool->clean, size, SS_GRAIN);
	return fit->beside || (b && missed(pool, b, size, used)) ? most : high;
}

uint64_t ss_fit_size(const struct ss_pool *pool, uint64_t size, uint64_t instead)
{
	uint64_t want = segment_size(pool, size), most = ss_round(instead, SS_FRAME);

	return instead && most < want ? most : want;
}
