/* SPDX-License-Identifier: MIT */
/*
 * Chunks of which every byte is free and completed: to be mapped elsewhere, where a run is
 * missing (remapping), or to go back to the device.
 *
 * Locks: pool->lock, dropped for the driver. What a thread works on meanwhile is in state
 * QUEUED, which nobody else touches.
 */
#include "core/vmm.h"

#define MANY 8        /* chunks that move together, and */
#define SMALL_PART 32 /* each so small a part of where they go: they come back as larger ones */

struct donors {
	struct ss_vmm *v;
	const struct ss_gap *gap;  /* gathering: what it is for */
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

/* The first chunk that lies wholly in b, at *va or above; *va is then behind it. */
static struct ss_chunk *next_whole(const struct ss_vmm *v, const struct ss_block *b, uint64_t *va)
{
	uint64_t end = b->addr + b->size;

	while (*va + v->unit <= end) {
		struct ss_chunk *c = v->frame[(*va - v->seg->base) / v->unit];

		*va = c ? c->va + c->size : *va + v->unit;
		if (c && c->va >= b->addr && c->va + c->size <= end)
			return c;
	}
	return NULL;
}

/* The best chunk that lies wholly in the clean range b; NULL if none does. */
static struct ss_chunk *whole_chunk(const struct donors *d, const struct ss_block *b)
{
	uint64_t va = ss_round(b->addr, d->v->unit);
	struct ss_chunk *best = NULL, *c;

	while ((c = next_whole(d->v, b, &va)))
		if (better(d, c, best))
			best = c;
	return best;
}

uint64_t ss_chunks_movable(const struct ss_vmm *v, const struct ss_block *b)
{
	uint64_t va = ss_round(b->addr, v->unit), bytes = 0;
	const struct ss_chunk *c;

	while ((c = next_whole(v, b, &va)))
		bytes += c->size;
	return bytes;
}

struct sum {
	const struct ss_vmm *v;
	uint64_t bytes;
};

static void add_movable(struct ss_block *b, void *arg)
{
	struct sum *sum = arg;

	sum->bytes += ss_chunks_movable(sum->v, b);
}

uint64_t ss_chunks_movable_all(const struct ss_pool *pool)
{
	struct sum sum = {.v = pool->vmm};

	ss_heap_each(&pool->clean, add_movable, &sum);
	return sum.bytes;
}

/* What is free in the run is part of it. */
static bool in_run(const struct donors *d, const struct ss_block *b)
{
	return b->addr < d->gap->to && b->addr + b->size > d->gap->from;
}

static void pick_donor(struct ss_block *b, void *arg)
{
	struct donors *d = arg;
	struct ss_chunk *c;

	if (b->size < d->v->unit || in_run(d, b))
		return;
	c = whole_chunk(d, b);
	/* Of two alike the one in the shorter run: long ones serve as they are. (And the lower one:
	 * the heap's order is that of addresses, which differ from run to run.) */
	if (c && (better(d, c, d->victim) ||
		  (c->size == d->victim->size &&
		   (b->size < d->best->size ||
		    (b->size == d->best->size && b->addr < d->best->addr))))) {
		d->best = b;
		d->victim = c;
	}
}

/* The next one behind the target, and then from the start: what is free there is next in turn, so
 * it is the hole that goes on. */
static void pick_behind(struct donors *d, const struct ss_block *target)
{
	struct ss_block *b = target->next ? target->next : d->v->seg->first;

	for (; b != target && !d->best; b = b->next ? b->next : d->v->seg->first) {
		uint64_t va = ss_round(b->addr, d->v->unit);
		struct ss_chunk *c;

		if (!ss_is_state(b, SS_BLOCK_FREE) || b->slot != SS_SLOT_CLEAN || in_run(d, b))
			continue;
		while (!d->best && (c = next_whole(d->v, b, &va)))
			if (c->size <= d->room) {
				d->best = b;
				d->victim = c;
			}
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

/* ---- moving ------------------------------------------------------------- */

bool ss_hole_shorten(struct ss_pool *pool, struct ss_block *b, uint64_t size)
{
	struct ss_block *rest;

	if (b->size <= size)
		return true;
	rest = ss_block_split(pool->core, b, size);
	if (rest)
		ss_hole_place(pool, rest);
	return rest != NULL;
}

/* What was gathered for `bytes` in small pieces goes back to the device: larger chunks in its place
 * cost fewer calls the next time they move. (`fine`: the pool is still made of small ones.) Not
 * where the device is known to keep it, or others may want it more. */
static void give_small(struct ss_pool *pool, struct ss_chunk **list, uint64_t bytes, bool fine)
{
	uint64_t least = fine || bytes / SMALL_PART > SS_FRAME ? bytes / SMALL_PART : SS_FRAME;
	uint64_t given = 0, size;
	struct ss_chunk **at, *c;
	struct ss_witness w;
	unsigned small = 0;

	for (c = *list; c; c = c->next)
		small += c->size < least;
	if (small < MANY || ss_keeps_how(pool, false) != SS_GIVE_PARTS ||
	    atomic_load(&pool->core->dev[pool->dev].pressed) ||
	    ss_device_low(pool->core, pool->dev))
		return;
	ss_keeps_begin(pool, &w);
	for (at = list; (c = *at);) {
		size = c->size;
		if (size >= least) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		given += ss_chunk_destroy(pool, c) ? size : 0;
	}
	ss_keeps_end(pool, &w, given, SS_GIVE_PARTS);
}

struct ss_chunk *ss_chunks_gather(struct ss_pool *pool, struct ss_block *target,
				  const struct ss_gap *gap, uint64_t want, uint64_t extra,
				  bool fine)
{
	struct ss_vmm *v = pool->vmm;
	struct ss_chunk *list = NULL, **tail = &list;
	uint64_t got = 0;

	while (got < want) {
		struct donors d = {.v = v, .gap = gap, .most = want - got,
				   .room = target->size - got};
		struct ss_block *b;
		struct ss_chunk *c;

		pthread_mutex_lock(&pool->lock);
		if (ss_turns(pool))
			pick_behind(&d, target);
		if (!d.best)
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
	ss_hole_shorten(pool, target, (got > want ? got : want) + extra);
	pthread_mutex_unlock(&pool->lock);
	give_small(pool, &list, target->size, fine);
	return list;
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
