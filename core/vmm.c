/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory: a pool as one long reservation of addresses with physical
 * chunks mapped into it.
 *
 * The reservation is tiled by blocks like any segment; addresses without memory
 * behind them are blocks in state HOLE. Growing maps chunks into the hole where
 * the fewest bytes complete a long enough run, so a pool stays in one piece.
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
#define RECUR_DEBT 384 /* so many where the program recurs: soon nothing moves there any more, */
#define RECUR_WEIGHT 32 /* but what is made stays */
#define AHEAD_PART 128 /* of the pool: the least by which one that goes on growing grows, */
#define MANY_TIMES 2   /* as much, where misses are many */
#define EARLY (8ull << 20) /* and the least while it is small: */
#define EARLY_UPTO (128ull << 20) /* most of its growth is misses then */
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

/* ---- choosing ----------------------------------------------------------- */

struct search {
	struct ss_vmm *v;
	uint32_t slot;           /* of the asking timeline */
	uint64_t size, align;
	uint64_t step;           /* bytes come in multiples of it, where they fit */
	unsigned weight;         /* of a byte that will be new, beside one that moves; or 0 */
	uint64_t movable;        /* bytes of free chunks that may move there */
	struct ss_block *hole;
	uint64_t start, bytes;   /* of the part of the hole to fill */
	uint64_t cost;           /* those bytes, and what those of them that will be new weigh */
};

/* What a range beside the hole holds is no donor: it is part of the run. */
static uint64_t beside(const struct search *s, const struct ss_block *b)
{
	return ss_is_state(b, SS_BLOCK_FREE) && b->slot == SS_SLOT_CLEAN ?
	       ss_chunks_movable(s->v, b) : 0;
}

/* How much of `bytes` in this hole would have to be made, rather than moved there? */
static uint64_t made(const struct search *s, const struct ss_block *hole, uint64_t bytes)
{
	uint64_t have = s->movable - beside(s, hole->prev) - beside(s, hole->next);

	return bytes > have ? bytes - have : 0;
}

/* How many bytes would this hole need to make a run of s->size? Those that are new cost memory, and
 * as many calls as those that move. */
static void consider(struct ss_block *hole, void *arg)
{
	struct search *s = arg;
	uint64_t left = ss_join_before(hole, s->slot), right = ss_join_after(hole, s->slot);
	uint64_t run = ss_round(hole->addr - left, s->align), end = run + s->size, bytes, cost;

	/* From the left end of the hole, or all of it where that joins both. */
	bytes = end > hole->addr ? ss_round(end - hole->addr, s->step) : s->step;
	if (bytes > hole->size) {
		if (end > hole->addr + hole->size + right)
			return;
		bytes = hole->size;
	}
	cost = bytes + (s->weight ? s->weight * made(s, hole, bytes) : 0);
	if (s->hole && (cost > s->cost || (cost == s->cost && hole->addr > s->start)))
		return;
	s->hole = hole;
	s->start = hole->addr;
	s->bytes = bytes;
	s->cost = cost;
}

/* For a block that stays. */
static void consider_apart(struct ss_block *hole, void *arg)
{
	struct search *s = arg;

	if (hole->addr >= ss_stays_from(s->v))
		consider(hole, arg);
}

/* Where access is given from the start of the reservation only, the lowest hole
 * must go first: what it lacks for the run, the next growth adds behind it. */
static void lowest(struct ss_block *hole, void *arg)
{
	struct search *s = arg;
	uint64_t run = ss_round(hole->addr - ss_join_before(hole, s->slot), s->align);
	uint64_t end = run + s->size;

	if (s->hole && hole->addr > s->start)
		return;
	s->hole = hole;
	s->start = hole->addr;
	s->bytes = end > hole->addr ? ss_round(end - hole->addr, s->step) : s->step;
	if (s->bytes > hole->size)
		s->bytes = hole->size;
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
	struct ss_block *b = ss_block_containing(pool->core, v->seg, from), *rest;

	if (!ss_is_state(b, SS_BLOCK_HOLE) || b->exported || b->addr == from)
		return;
	ss_heap_remove(&v->holes, b);
	rest = ss_block_split(pool->core, b, from - b->addr);
	ss_heap_insert(&v->holes, b);
	if (rest)
		ss_heap_insert(&v->holes, rest);
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
 * was. */
static enum ss_status grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap, bool *more)
{
	struct search find = {.slot = x ? x->slot : SS_SLOT_CLEAN, .size = size, .align = align};
	bool prefix = pool->core->dev[pool->dev].info.access_prefix, may, fine, stays;
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
	find.v = pool->vmm;
	find.step = step_of(pool, fine);
	if (stays)
		set_apart(pool);
	ss_heap_each(&pool->vmm->holes, stays ? consider_apart : prefix ? lowest : consider, &find);
	/* What the cheapest hole needs may lie beside it already, and all be new then. */
	if (find.hole && remap && !prefix && !stays && worth_moving(pool, size, find.bytes)) {
		find.weight = ss_recur_places(pool) ? RECUR_WEIGHT : 1;
		find.movable = ss_chunks_movable_all(pool);
		find.hole = NULL;
		ss_heap_each(&pool->vmm->holes, consider, &find);
	}
	target = find.hole;
	if (!target) {
		pthread_mutex_unlock(&pool->lock);
		*more = stays;
		return SS_ERR_NOMEM;
	}
	pool->vmm->apart |= stays;
	bytes = find.bytes;
	/* In a young pool that goes to the end only, where it joins what comes next. */
	if (*more && (!target->next || !ss_thrift_young(pool)))
		bytes = with_next(pool, size, bytes, find.step);
	if (bytes > target->size)
		bytes = target->size;
	if (*more && fine)
		extra = ss_round(ahead_of(pool, size, bytes, stays), find.step);
	if (extra > target->size - bytes)
		extra = target->size - bytes;
	*more = stays || bytes > find.bytes || extra;
	ss_heap_remove(&pool->vmm->holes, target);
	ss_set_state(target, SS_BLOCK_QUEUED);
	/* (Few chunks for what is still in one piece.) */
	unit = chunk_size(pool, bytes > find.bytes ? 2 * bytes : bytes, fine);
	/* Chunks that move leave holes below. */
	may = remap && !prefix && worth_moving(pool, size, bytes);
	if (!ss_hole_shorten(pool, target, bytes + extra + (may ? SS_MAX_CHUNK : 0))) {
		ss_hole_place(pool, target);
		pthread_mutex_unlock(&pool->lock);
		return SS_ERR_FAILED;
	}
	pthread_mutex_unlock(&pool->lock);
	return ss_chunk_fill(pool, target,
			     may ? ss_chunks_gather(pool, target, bytes, extra, fine) : NULL, unit);
}

/* A driver that refuses the first chunk refuses them all, for all that is known: the pool lives
 * on whole segments from then on. */
static bool is_empty(const struct ss_vmm *v)
{
	return !v || (!v->chunks && !v->stuck);
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
	if (ss_refused(s) && is_empty(pool->vmm)) {
		ss_vmm_drop(pool, true);
		pool->backing = SS_BACKING_HIP;
		s = SS_ERR_NOMEM;
	}
	ss_vmm_unclaim(pool);
	return s;
}
