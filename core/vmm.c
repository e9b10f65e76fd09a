/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory: a pool as one long reservation of addresses with physical
 * chunks mapped into it.
 *
 * The reservation is tiled by blocks like any segment; addresses without memory
 * behind them are blocks in state HOLE. Growing maps chunks into the hole where
 * the fewest new bytes complete a long enough run, so a pool stays in one piece.
 * Before it asks the device for more it takes chunks of which every byte is free
 * and completed out of runs that are too short and maps them there instead
 * (remapping): reserved memory then follows what is live, however sizes change.
 *
 * Chunks grow with the pool and with what is missing (2 MiB to 64 MiB): a few
 * hundred handles, file descriptors and mappings whatever its size, little waste
 * in the last one, and few calls to move memory for a large block.
 *
 * Locks: pool->lock, dropped for the driver. What a thread works on meanwhile is
 * in state QUEUED, which nobody else touches.
 */
#include "core/vmm.h"

#define POOL_PARTS 512
#define MOST_CHUNKS 768
#define RUN_PARTS 16
#define SLACK_PART 64 /* of the peak: what may be made new rather than moved, */
#define DEBT_PART 24  /* where more was moved than the allocations since then pay for, */
#define MOST_DEBT 3   /* unless the debt is a call for so many of all allocations, */
#define LARGE_PART 4  /* and so many more where it would exceed the peak by such a part: */
#define LARGE_DEBT 128 /* early in a program there are few allocations to count on */
#define AHEAD_PART 128 /* of the pool: the least by which one that goes on growing grows */

static uint64_t chunk_of(const struct ss_pool *pool, uint64_t share)
{
	uint64_t size = pool->vmm->unit;

	while (size * 2 <= share && size * 2 <= SS_MAX_CHUNK)
		size *= 2;
	return size;
}

/* A chunk costs a descriptor on some versions, and a mapping on all: a large pool
 * gets no small ones, whatever sizes it is asked for. A 768th may be waste. */
static uint64_t least_chunk(const struct ss_pool *pool)
{
	return chunk_of(pool, atomic_load(&pool->reserved) / MOST_CHUNKS);
}

static uint64_t chunk_size(const struct ss_pool *pool, uint64_t bytes)
{
	uint64_t share = atomic_load(&pool->reserved) / POOL_PARTS;

	return chunk_of(pool, share < bytes / RUN_PARTS ? bytes / RUN_PARTS : share);
}

/* ---- choosing ----------------------------------------------------------- */

struct search {
	struct ss_vmm *v;
	uint32_t slot;           /* of the asking timeline */
	uint64_t size, align;
	uint64_t step;           /* bytes come in multiples of it, where they fit */
	struct ss_block *hole;
	uint64_t start, bytes;   /* of the part of the hole to fill */
};

/* How many new bytes would this hole need to make a run of s->size? */
static void consider(struct ss_block *hole, void *arg)
{
	struct search *s = arg;
	uint64_t left = ss_join_before(hole, s->slot), right = ss_join_after(hole, s->slot);
	uint64_t run = ss_round(hole->addr - left, s->align), end = run + s->size, bytes;

	/* From the left end of the hole, or all of it where that joins both. */
	bytes = end > hole->addr ? ss_round(end - hole->addr, s->step) : s->step;
	if (bytes > hole->size) {
		if (end > hole->addr + hole->size + right)
			return;
		bytes = hole->size;
	}
	if (s->hole && (bytes > s->bytes || (bytes == s->bytes && hole->addr > s->start)))
		return;
	s->hole = hole;
	s->start = hole->addr;
	s->bytes = bytes;
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

struct donors {
	struct ss_vmm *v;
	struct ss_block *avoid[2]; /* neighbours of the target: they are the run */
	struct ss_block *best;
	struct ss_chunk *victim;      /* releasing: the chunk in `best` */
	uint64_t most;             /* no larger chunk than this, */
	uint64_t room;             /* or, gathering, the smallest up to this */
	uint64_t older_than, now, newest;
};

/* Is a a better chunk to move than b? Large ones mean few calls, but what exceeds
 * the need is only moved along. */
static bool better(const struct donors *d, const struct ss_chunk *a, const struct ss_chunk *b)
{
	if (a->size > d->room)
		return false;
	if (a->size <= d->most)
		return !b || b->size > d->most || a->size > b->size;
	return !b || a->size < b->size;
}

/* The best chunk that lies wholly in the clean range b; NULL if none does. */
static struct ss_chunk *whole_chunk(const struct donors *d, const struct ss_block *b)
{
	struct ss_vmm *v = d->v;
	uint64_t va = ss_round(b->addr, v->unit), end = b->addr + b->size;
	struct ss_chunk *best = NULL;

	while (va + v->unit <= end) {
		struct ss_chunk *c = *ss_frame_at(v, va);

		if (c && c->va >= b->addr && c->va + c->size <= end && better(d, c, best))
			best = c;
		va = c ? c->va + c->size : va + v->unit;
	}
	return best;
}

static void pick_donor(struct ss_block *b, void *arg)
{
	struct donors *d = arg;
	struct ss_chunk *c;

	if (b->size < d->v->unit || b == d->avoid[0] || b == d->avoid[1])
		return;
	c = whole_chunk(d, b);
	/* Of two alike the one in the shorter run: long ones serve as they are. */
	if (c && (better(d, c, d->victim) ||
		  (c->size == d->victim->size && b->size < d->best->size))) {
		d->best = b;
		d->victim = c;
	}
}

/* Takes the chunk out of its clean range; the range it leaves is QUEUED until
 * it is unmapped. NULL: host memory is out. Pool lock held. */
static struct ss_block *detach(struct ss_pool *pool, struct ss_block *b, struct ss_chunk *c)
{
	struct ss_block *mid = b, *rest;

	ss_unplace(pool, b);
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (c->va > b->addr) {
		mid = ss_block_split(pool->core, b, c->va - b->addr);
		if (!mid) {
			ss_place(pool, b);
			return NULL;
		}
		ss_place(pool, b);
	}
	if (mid->size > c->size) {
		rest = ss_block_split(pool->core, mid, c->size);
		if (!rest) {
			ss_place(pool, mid);
			return NULL;
		}
		ss_place(pool, rest);
	}
	return mid;
}

/* ---- growing ------------------------------------------------------------ */

/* What is behind the first `size` bytes of b becomes a hole. False: host memory is
 * out. Pool lock held. */
static bool shorten(struct ss_pool *pool, struct ss_block *b, uint64_t size)
{
	struct ss_block *rest;

	if (b->size <= size)
		return true;
	rest = ss_block_split(pool->core, b, size);
	if (rest)
		ss_hole_place(pool, rest);
	return rest != NULL;
}

/* Free chunks from runs other than the target's, until `want` bytes are gathered,
 * and no more than the target holds; unmapped when this returns. */
static struct ss_chunk *gather(struct ss_pool *pool, struct ss_block *target, uint64_t want)
{
	struct ss_vmm *v = pool->vmm;
	struct ss_chunk *list = NULL, **tail = &list;
	uint64_t got = 0;

	while (got < want) {
		struct donors d = {.v = v, .most = want - got, .room = target->size - got};
		struct ss_block *b;
		struct ss_chunk *c;

		pthread_mutex_lock(&pool->lock);
		d.avoid[0] = target->prev;
		d.avoid[1] = target->next;
		ss_heap_each(&pool->clean, pick_donor, &d);
		c = d.victim;
		b = c ? detach(pool, d.best, c) : NULL;
		pthread_mutex_unlock(&pool->lock);
		if (!b || ss_chunk_unmap(pool, b, c) != SS_OK)
			break;
		c->next = NULL;
		*tail = c;
		tail = &c->next;
		got += c->size;
		pthread_mutex_lock(&pool->lock);
		pool->st.remaps++;
		pthread_mutex_unlock(&pool->lock);
	}
	pthread_mutex_lock(&pool->lock);
	/* Host memory out: it will be filled as it is. */
	shorten(pool, target, got > want ? got : want);
	pthread_mutex_unlock(&pool->lock);
	return list;
}

/* Does the pool stay within a `part`th of its peak, which the `size` bytes asked for may
 * raise, when it grows by `bytes`? Pool lock held. */
static bool within(struct ss_pool *pool, uint64_t size, uint64_t bytes, unsigned part)
{
	uint64_t used = ss_pool_used(pool) + size, high = ss_pool_used_high(pool);

	if (high < used)
		high = used;
	return atomic_load(&pool->reserved) + bytes <= high + high / part;
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
	if (!within(pool, size, bytes, LARGE_PART))
		thrift += LARGE_DEBT;
	return !within(pool, size, bytes, DEBT_PART) &&
	       thrift + (int64_t)(pool->spent.allocs / MOST_DEBT) >= 0;
}

static enum ss_status grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap, uint64_t ahead)
{
	struct search find = {.slot = x ? x->slot : SS_SLOT_CLEAN, .size = size, .align = align};
	bool prefix = pool->core->dev[pool->dev].info.access_prefix, may;
	struct ss_block *target;
	enum ss_status s = SS_OK;
	uint64_t unit;

	if (!pool->vmm && (s = ss_vmm_reserve(pool)) != SS_OK) {
		/* Without addresses of its own it lives on whole segments. */
		if (s == SS_ERR_NOMEM)
			pool->backing = SS_BACKING_HIP;
		return s;
	}
	find.v = pool->vmm;
	find.step = least_chunk(pool);
	pthread_mutex_lock(&pool->lock);
	ss_heap_each(&pool->vmm->holes, prefix ? lowest : consider, &find);
	target = find.hole;
	if (!target) {
		pthread_mutex_unlock(&pool->lock);
		return SS_ERR_NOMEM;
	}
	/* What nobody asked for yet goes to the end, where it joins what comes next. */
	if (find.bytes < ahead && !target->next && within(pool, size, ahead, DEBT_PART))
		find.bytes = ss_round(ahead, find.step);
	ss_heap_remove(&pool->vmm->holes, target);
	ss_set_state(target, SS_BLOCK_QUEUED);
	unit = chunk_size(pool, find.bytes);
	/* Chunks that move leave holes below. */
	may = remap && !prefix && worth_moving(pool, size, find.bytes);
	if (!shorten(pool, target, find.bytes + (may ? SS_MAX_CHUNK : 0))) {
		ss_hole_place(pool, target);
		pthread_mutex_unlock(&pool->lock);
		return SS_ERR_FAILED;
	}
	pthread_mutex_unlock(&pool->lock);
	return ss_chunk_fill(pool, target, may ? gather(pool, target, find.bytes) : NULL, unit);
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
	uint64_t ahead;
	bool waited;

	pthread_mutex_lock(&pool->lock);
	ahead = ss_thrift_ahead(pool, AHEAD_PART);
	pthread_mutex_unlock(&pool->lock);
	if (!ss_vmm_claim(pool, true, &waited))
		return SS_ERR_NOMEM;
	if (pool->vmm)
		ss_chunks_retry(pool);
	/* What another thread mapped meanwhile may do: look again first. */
	if (!waited && pool->backing == SS_BACKING_VMM)
		s = grow(pool, x, size, align, remap, ahead);
	if (s == SS_ERR_NOMEM && ahead && pool->backing == SS_BACKING_VMM)
		s = grow(pool, x, size, align, remap, 0);
	if (ss_refused(s) && is_empty(pool->vmm)) {
		ss_vmm_drop(pool, true);
		pool->backing = SS_BACKING_HIP;
		s = SS_ERR_NOMEM;
	}
	ss_vmm_unclaim(pool);
	return s;
}

/* ---- giving back -------------------------------------------------------- */

static void pick_old(struct ss_block *b, void *arg)
{
	struct donors *d = arg;
	struct ss_vmm *v = d->v;
	uint64_t va = ss_round(b->addr, v->unit), end = b->addr + b->size;

	while (va + v->unit <= end) {
		struct ss_chunk *c = *ss_frame_at(v, va);

		va = c ? c->va + c->size : va + v->unit;
		if (!c || c->va < b->addr || va > end || c->size > d->most)
			continue;
		if (!c->idle_since)
			c->idle_since = b->n ? b->n : d->now ? d->now : 1;
		if (c->idle_since > d->newest)
			d->newest = c->idle_since;
		if (c->idle_since <= d->older_than && !d->best) {
			d->best = b;
			d->victim = c;
		}
	}
}

void ss_vmm_touch(struct ss_pool *pool, const struct ss_block *b)
{
	uint64_t va = b->addr;

	while (va < b->addr + b->size) {
		struct ss_chunk *c = *ss_frame_at(pool->vmm, va);

		c->idle_since = 0;
		va = c->va + c->size;
	}
}

static uint64_t release(struct ss_pool *pool, uint64_t target, uint64_t older_than, bool one)
{
	uint64_t given = 0, size, now = pool->core->drv.now_ms(pool->core->drv.ctx);

	while (atomic_load(&pool->reserved) > target && !(one && given)) {
		struct donors d = {.v = pool->vmm, .older_than = older_than, .now = now,
				   .most = atomic_load(&pool->reserved) - target};
		struct ss_block *b = NULL;
		struct ss_chunk *c;

		pthread_mutex_lock(&pool->lock);
		ss_heap_each(&pool->clean, pick_old, &d);
		c = d.victim;
		if (c)
			b = detach(pool, d.best, c);
		pthread_mutex_unlock(&pool->lock);
		if (!b || ss_chunk_unmap(pool, b, c) != SS_OK)
			break;
		size = c->size;
		if (!ss_chunk_destroy(pool, c))
			break;
		given += size;
	}
	return given;
}

/* Is all of the pool idle for as long? */
static bool all_old(struct ss_pool *pool, uint64_t older_than)
{
	struct donors d = {.v = pool->vmm, .most = UINT64_MAX,
			   .now = pool->core->drv.now_ms(pool->core->drv.ctx)};
	bool idle;

	pthread_mutex_lock(&pool->lock);
	ss_heap_each(&pool->clean, pick_old, &d);
	idle = pool->clean.bytes == atomic_load(&pool->reserved) && d.newest <= older_than;
	pthread_mutex_unlock(&pool->lock);
	return idle;
}

/* As the runtime is known to give back (keeps.c). */
static uint64_t give(struct ss_pool *pool, uint64_t target, uint64_t older_than)
{
	bool idle = !target && all_old(pool, older_than);
	enum ss_giving how = ss_keeps_how(pool, idle);
	uint64_t given = 0, more;
	struct ss_witness w;

	while (how != SS_GIVE_NOTHING) {
		ss_keeps_begin(pool, &w);
		more = release(pool, target, older_than, how == SS_GIVE_ONE);
		if (!more)
			break;
		given += more;
		if (how == SS_GIVE_WHOLE && !pool->vmm->chunks)
			ss_vmm_drop(pool, true);
		ss_keeps_end(pool, &w, more, how);
		if (how != SS_GIVE_ONE)
			break;
		how = ss_keeps_how(pool, idle);
	}
	return given;
}

uint64_t ss_vmm_release(struct ss_pool *pool, uint64_t target, uint64_t older_than)
{
	uint64_t given = 0;

	if (atomic_load(&pool->reserved) <= target || ss_keeps_all(pool))
		return 0;
	/* Whoever grows just now would only want it back. */
	if (!ss_vmm_claim(pool, false, NULL))
		return 0;
	if (pool->vmm)
		given = ss_chunks_retry(pool);
	if (pool->vmm)
		given += give(pool, target, older_than);
	ss_vmm_unclaim(pool);
	return given;
}
