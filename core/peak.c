/* SPDX-License-Identifier: MIT */
/*
 * What a program has live when its demand is at its peak. The blocks that are needed then
 * should have segments of their own size: each that was cut off a larger one keeps that from
 * whom it was made for, just when nothing is left. What is live at other times may lie
 * anywhere.
 *
 * Sizes that come again are counted one by one; a program whose sizes never do has no such
 * peak, and none of them is found here. Only large blocks count: small ones share segments.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/grow.h"

#define LARGE (1ull << 20)  /* bytes */
#define NEAR_PART 32        /* of the peak: demand that is as good as it */
#define LOOKED_AT 1024      /* blocks; a pool of more is not counted to the end */
#define ALLOCS_BETWEEN 64   /* at the same peak */
#define LOOKED_PER_SMALL 16
#define FITS_PERCENT 108    /* of the used peak: such a pool has nothing to win */

static struct ss_kind *find(struct ss_pool *pool, uint64_t size)
{
	for (unsigned i = 0; i < pool->peak.kinds; i++)
		if (pool->peak.kind[i].size == size)
			return &pool->peak.kind[i];
	return NULL;
}

/* `home`: the size of the segment it lies in; 0: it has none yet. */
static void count(struct ss_pool *pool, uint64_t size, uint64_t home)
{
	struct ss_kind *k;

	if (size < LARGE)
		return;
	k = find(pool, size);
	if (!k && pool->peak.kinds < SS_PEAK_KINDS) {
		k = &pool->peak.kind[pool->peak.kinds++];
		*k = (struct ss_kind){.size = size};
	}
	if (!k)
		return;
	k->count++;
	if (k->home < home)
		k->home = home;
}

static bool live(const struct ss_block *b)
{
	return atomic_load_explicit(&b->state, memory_order_relaxed) == SS_BLOCK_LIVE;
}

void ss_peak_note(struct ss_pool *pool, uint64_t size)
{
	uint64_t high = ss_pool_used_high(pool);
	unsigned left = LOOKED_AT;

	if (pool->backing == SS_BACKING_VMM ||
	    ss_pool_used(pool) + size < high - high / NEAR_PART)
		return;
	/* For a small block nobody asks what is found: there it is to be no more work than the
	 * allocation. */
	if (pool->spent.allocs < pool->peak.allocs +
	    (high == pool->peak.used_high ? ALLOCS_BETWEEN :
	     size < LARGE ? pool->peak.looked / LOOKED_PER_SMALL : 0))
		return;
	pool->peak.used_high = high;
	pool->peak.allocs = pool->spent.allocs;
	pool->peak.kinds = 0;
	count(pool, size, 0);
	for (struct ss_segment *seg = pool->segments; seg && left; seg = seg->next)
		for (struct ss_block *b = seg->first; b && left; b = b->next, left--)
			if (live(b))
				count(pool, b->size, seg->size);
	pool->peak.looked = LOOKED_AT - left;
}

bool ss_peak_lacks(struct ss_pool *pool, uint64_t size, uint64_t segment)
{
	const struct ss_kind *k = find(pool, size);
	bool fits = atomic_load(&pool->reserved_high) <=
		    ss_pool_used_high(pool) / 100 * FITS_PERCENT;
	unsigned left = LOOKED_AT;
	uint32_t now = 0;

	if (!k || (fits && segment <= k->home))
		return false;
	for (struct ss_segment *seg = pool->segments; seg && left; seg = seg->next)
		for (struct ss_block *b = seg->first; b && left; b = b->next, left--)
			now += b->size == size && live(b);
	return now < k->count;
}
