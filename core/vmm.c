/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory: a pool as one long reservation of addresses with physical
 * chunks mapped into it.
 *
 * The reservation is tiled by blocks like any segment; addresses without memory
 * behind them are blocks in state HOLE. Growing maps chunks into the holes where
 * the fewest bytes complete a long enough run (hole.c), so a pool stays in one piece.
 * Before it asks the device for more it takes chunks of which every byte is free
 * and completed out of runs that are too short and maps them there instead
 * (remapping), and then a byte that would be new counts twice: reserved memory
 * follows what is live, however sizes change.
 *
 * Chunks grow with the pool and with what is missing (2 MiB to 64 MiB): a few
 * hundred handles, file descriptors and mappings whatever its size, little waste
 * in the last one, and few calls to move memory for a large block. A pool that
 * goes on growing in small steps has smaller ones: what lies between its blocks
 * could not be moved otherwise. What stays in such a pool lies apart (stays.c).
 *
 * Locks: pool->lock, dropped for the driver. What a thread works on meanwhile is
 * in state QUEUED, which nobody else touches.
 */
#include "core/vmm.h"

#define POOL_PARTS 512
#define MOST_CHUNKS 768
#define RUN_PARTS 12
#define FINE_UPTO (12ull << 20)  /* growth that is worth smaller chunks than a frame, */
#define FINE_STEP (512ull << 10) /* in steps of so much, */
#define FINE_HANDLES 1024        /* while all pools together have no more chunks than that */
#define SLACK_PART 56 /* of the peak: what may be made new rather than moved, */
#define DEBT_PART 24  /* where more was moved than the allocations since then pay for, */
#define MOST_DEBT 3   /* unless the debt is a call for so many of all allocations, */
#define LARGE_PART 4  /* and so many more where it would exceed the peak by such a part: */
#define LARGE_DEBT 128 /* early in a program there are few allocations to count on */
#define RECUR_DEBT 384 /* so many where the program recurs: soon nothing moves there any more */
#define AHEAD_PART 128 /* of the pool: the least by which one that goes on growing grows, */
#define MANY_TIMES 2   /* as much, where misses are many */
#define EARLY (8ull << 20) /* and the least while it is small: */
#define EARLY_UPTO (128ull << 20) /* most of its growth is misses then */
#define PLACES 3       /* where what the driver refused is tried besides */
#define STAYS_PART 32  /* of the pool: made ahead for what stays, */
#define STAYS_OVER 16  /* as long as that is no larger part of the peak, */
#define STAYS_MOST 10  /* and apart at all: what was mistaken for it leaves its place unused */

/* The largest chunk that is no more than `share`, and no less than `least`. */
static uint64_t chunk_of(const struct ss_pool *pool, uint64_t share, uint64_t least)
{
	uint64_t size = pool->vmm->unit;

	while (size < least || (size * 2 <= share && size * 2 <= SS_MAX_CHUNK))
		size *= 2;
	return size;
}

/* A chunk costs a descriptor on some versions, and a mapping on all: a large pool
 * gets no small ones, whatever sizes it is asked for. A 768th may be waste. */
static uint64_t step_of(const struct ss_pool *pool, bool fine)
{
	return chunk_of(pool, atomic_load(&pool->reserved) / MOST_CHUNKS, fine ? FINE_STEP : SS_FRAME);
}

static uint64_t chunk_size(const struct ss_pool *pool, uint64_t bytes, bool fine)
{
	uint64_t share = atomic_load(&pool->reserved) / POOL_PARTS;

	return chunk_of(pool, share < bytes / RUN_PARTS ? bytes / RUN_PARTS : share,
			fine && bytes < FINE_UPTO ? 0 : SS_FRAME);
}

/* ---- growing ------------------------------------------------------------ */

/* The peak, which the `size` bytes asked for may raise, and a `part`th of it. Pool lock held. */
static uint64_t bound(struct ss_pool *pool, uint64_t size, unsigned part)
{
	uint64_t used = ss_pool_used(pool) + size, high = ss_pool_used_high(pool);

	if (high < used)
		high = used;
	return high + high / part;
}

/* Does the pool stay within that when it grows by `bytes`? Pool lock held. */
static bool within(struct ss_pool *pool, uint64_t size, uint64_t bytes, unsigned part)
{
	return atomic_load(&pool->reserved) + bytes <= bound(pool, size, part);
}

bool ss_stays_apart(struct ss_pool *pool, uint64_t size)
{
	return ss_stays(pool, size) && within(pool, size, 0, STAYS_MOST);
}

/* Moving chunks keeps the pool small, but calls cost time: what lies within a
 * small part of the peak is made new.
 * The part is larger for a pool that moved much already: it has less to move then.
 * Beyond that it goes into debt. Pool lock held. */
static bool worth_moving(struct ss_pool *pool, uint64_t size, uint64_t bytes)
{
	int64_t thrift = ss_thrift(pool);

	if (thrift >= 0)
		return !within(pool, size, bytes, SLACK_PART);
	if (ss_recur_places(pool))
		thrift += RECUR_DEBT;
	else if (!within(pool, size, bytes, LARGE_PART))
		thrift += LARGE_DEBT;
	return !within(pool, size, bytes, DEBT_PART) &&
	       thrift + (int64_t)(pool->spent.allocs / MOST_DEBT) >= 0;
}

/* The hole in which the memory of what stays begins ends no longer in front of it. Host memory
 * out: then there is none. Pool lock held. */
static void set_apart(struct ss_pool *pool)
{
	struct ss_vmm *v = pool->vmm;
	uint64_t from = ss_stays_from(v);
	struct ss_block *b = ss_block_containing(pool->core, v->seg, from);

	if (ss_is_gap(b))
		ss_hole_split(pool, b, from - b->addr);
}

/* The `bytes` that `size` lacks, and what comes next in a pool that goes on growing. One that
 * still does when it is no longer young grows by more, be it by as much as its slack allows: also
 * where what is missing is large, as long as that raises the peak. Pool lock held. */
static uint64_t with_next(struct ss_pool *pool, uint64_t size, uint64_t bytes, uint64_t step)
{
	uint64_t want = ss_thrift_ahead(pool, AHEAD_PART);
	uint64_t most = bound(pool, size, DEBT_PART), reserved = atomic_load(&pool->reserved);

	if (ss_thrift_many(pool)) {
		want *= MANY_TIMES;
		if (ss_pool_used(pool) + size >= ss_pool_used_high(pool))
			want += bytes;
		if (reserved + want > most)
			want = most > reserved ? (most - reserved) / step * step : 0;
	}
	return want > bytes && reserved + want <= most ? ss_round(want, step) : bytes;
}

/* What is made beyond the `bytes` that `size` lacks, since more of the kind will come. Pool lock
 * held. */
static uint64_t ahead_of(struct ss_pool *pool, uint64_t size, uint64_t bytes, bool stays)
{
	uint64_t reserved = atomic_load(&pool->reserved), part = reserved / STAYS_PART;

	if (stays && within(pool, size, part, STAYS_OVER))
		return part < SS_MAX_CHUNK ? part : SS_MAX_CHUNK;
	return reserved < EARLY_UPTO && bytes < EARLY ? EARLY - bytes : 0;
}

/* `more`: than is missing, and apart from what does not stay, where that is better. *more: so it
 * was. Of several holes that a run lacks this fills the first; who asked comes again. */
static enum ss_status grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap, bool *more)
{
	struct ss_gap find = {.slot = x ? x->slot : SS_SLOT_CLEAN, .size = size, .align = align};
	bool prefix = pool->core->dev[pool->dev].info.access_prefix, may, fine, stays, whole;
	uint64_t unit, bytes, extra = 0;
	struct ss_block *target;
	enum ss_status s = SS_OK;

	if (!pool->vmm && (s = ss_vmm_reserve(pool)) != SS_OK) {
		/* Without addresses of its own it lives on whole segments. */
		if (s == SS_ERR_NOMEM)
			pool->backing = SS_BACKING_HIP;
		return s;
	}
	pthread_mutex_lock(&pool->lock);
	/* Where memory without gaps is wanted nothing moves, nor may anything lie apart. */
	fine = !prefix && ss_thrift_often(pool) &&
	       atomic_load(&pool->core->handles) < FINE_HANDLES;
	stays = !prefix && *more && ss_stays_apart(pool, size);
	find.step = step_of(pool, fine);
	if (stays)
		set_apart(pool);
	ss_gap_find(pool, &find, stays ? SS_GAP_APART : prefix ? SS_GAP_LOWEST : SS_GAP_ANY);
	/* What the cheapest needs may lie beside it already, and all be new then. */
	if (find.hole && remap && !prefix && !stays && worth_moving(pool, size, find.total))
		ss_gap_find(pool, &find, SS_GAP_MOVING);
	target = find.hole ? ss_hole_split(pool, find.hole, find.start - find.hole->addr) : NULL;
	if (!target) {
		pthread_mutex_unlock(&pool->lock);
		*more = stays;
		return find.hole ? SS_ERR_FAILED : SS_ERR_NOMEM;
	}
	pool->vmm->apart |= stays;
	bytes = find.bytes;
	whole = bytes == find.total;
	/* In a young pool that goes to the end only, where it joins what comes next. */
	if (*more && whole && (!target->next || !ss_thrift_young(pool)))
		bytes = with_next(pool, size, bytes, find.step);
	if (bytes > target->size)
		bytes = target->size;
	if (*more && whole && fine)
		extra = ss_round(ahead_of(pool, size, bytes, stays), find.step);
	if (extra > target->size - bytes)
		extra = target->size - bytes;
	*more = stays || bytes > find.bytes || extra;
	ss_heap_remove(&pool->vmm->holes, target);
	ss_set_state(target, SS_BLOCK_QUEUED);
	/* (Few chunks for what is still in one piece.) */
	unit = chunk_size(pool, bytes > find.bytes ? 2 * bytes : bytes, fine);
	/* Chunks that move leave holes below. */
	may = remap && !prefix && worth_moving(pool, size, whole ? bytes : find.total);
	if (!ss_hole_shorten(pool, target, bytes + extra + (may ? SS_MAX_CHUNK : 0))) {
		ss_hole_place(pool, target);
		pthread_mutex_unlock(&pool->lock);
		return SS_ERR_FAILED;
	}
	pthread_mutex_unlock(&pool->lock);
	return ss_chunk_fill(pool, target,
			     may ? ss_chunks_gather(pool, target, &find, bytes, extra, fine) : NULL,
			     unit);
}

/* A driver that refuses the first chunk refuses them all, for all that is known: the pool lives
 * on whole segments from then on. */
static bool is_empty(const struct ss_vmm *v)
{
	return !v || !v->chunks;
}

enum ss_status ss_vmm_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap)
{
	enum ss_status s = SS_OK;
	bool waited, more = true;

	if (!ss_vmm_claim(pool, true, &waited))
		return SS_ERR_NOMEM;
	if (pool->vmm)
		ss_chunks_retry(pool);
	/* What another thread mapped meanwhile may do: look again first. */
	if (!waited && pool->backing == SS_BACKING_VMM)
		s = grow(pool, x, size, align, remap, &more);
	if (s == SS_ERR_NOMEM && more && pool->backing == SS_BACKING_VMM) {
		more = false;
		s = grow(pool, x, size, align, remap, &more);
	}
	for (int i = 0; i < PLACES && ss_refused(s) && pool->vmm && pool->vmm->stuck; i++) {
		more = false;
		s = grow(pool, x, size, align, remap, &more);
	}
	if (ss_refused(s) && is_empty(pool->vmm)) {
		ss_vmm_drop(pool, true);
		pool->backing = SS_BACKING_HIP;
		s = SS_ERR_NOMEM;
	}
	ss_vmm_unclaim(pool);
	return s;
}
