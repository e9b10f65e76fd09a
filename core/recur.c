/* SPDX-License-Identifier: MIT */
/*
 * Programs that do the same again and again: layer after layer, step after step. Which of their
 * blocks are still live when the peak returns is told by what was asked for before them; their
 * sizes do not tell, since most blocks of a size are gone by then. By best fit those lie wherever
 * there was room, among them in the place of the large blocks of the peak, and each time it
 * returns chunks have to move.
 *
 * So once chunks moved for a large block near the peak, the sizes asked for are followed. A block
 * whose last predecessors were those of one that was live at the last peak has the lowest room
 * there is; all others lie above the line below which those had room together, if they can.
 * After a few returns what stays lies side by side, and nothing moves any more.
 *
 * For that the slow path has to see each allocation and each free, so bins hold nothing meanwhile
 * (queue->most), and a stream counts as growing though its demand is known (slow.c). A program
 * that asks for something new each time is let go of soon; and so is, after a while, one for
 * which nothing moves any more, the later the more often that was followed by moves again. And
 * where the device lags nothing can move: there bins waste less.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/hit.h"
#include "core/vmm.h"

#define LARGE_PART 16    /* of the peak: blocks for which moving is worth all this, */
#define NEAR_HALF 2      /* where so much of it is in use */
#define NOVEL_PART 2     /* not where more of the sizes of late are new */
#define NEAR_PART 32     /* of the peak: it has returned, */
#define AWAY_PART 4      /* and is gone */
#define STAYS_PART 8     /* of the peak: larger blocks are what it is made of */
#define LAGS_PART 4      /* of what is free */
#define LOOKED_AT 1024   /* blocks, for the lowest room */
#define COUNTED 16384    /* at the peak */
#define JUDGED 256       /* allocations: more than half of them new is no recurrence, */
#define SERVES_TIMES 4   /* and one that is served knows so many for each new */
#define LEARNT 128       /* so many say whether it is */
#define PAUSE 4096       /* allocations until another one is looked for */
#define HELD (1u << 16)  /* allocations without a move until then, at first */
#define HELD_MOST (1u << 24)

static bool is_on(const struct ss_pool *pool)
{
	return pool->vmm && pool->vmm->recur && pool->vmm->recur->on;
}

bool ss_recur_places(const struct ss_pool *pool)
{
	return is_on(pool) && pool->vmm->recur->left && pool->vmm->recur->line;
}

void ss_recur_end(struct ss_pool *pool)
{
	if (is_on(pool))
		pool->vmm->recur->on = false;
}

/* Have most of the sizes that q's stream asked for of late not been seen before? */
static bool is_novel(struct ss_queue *q)
{
	bool novel;

	ss_bias_lock(&q->lock);
	novel = q->novel * NOVEL_PART > q->hits + q->asked - q->novel_from;
	ss_bias_unlock(&q->lock);
	return novel;
}

/* Is much of what is free not completed, just after that was asked for? Then nothing can move, and
 * bins waste less. */
static bool lags(struct ss_pool *pool, const struct ss_queue *q)
{
	uint64_t used = ss_pool_used(pool), reserved = atomic_load(&pool->reserved);

	return reserved > used && q->own.bytes > (reserved - used) / LAGS_PART;
}

/* Several threads ask in no order. */
static bool is_shared(struct ss_pool *pool)
{
	return atomic_load(&pool->counter) == SS_COUNTER_SHARED;
}

void ss_recur_begin(struct ss_pool *pool, struct ss_queue *q, uint64_t size, bool moved)
{
	uint64_t high = ss_pool_used_high(pool), used = ss_pool_used(pool) + size;
	struct ss_vmm *v = pool->vmm;
	struct ss_recur *r;

	/* (Where memory without gaps is wanted nothing moves.) */
	if (!v || pool->core->dev[pool->dev].info.access_prefix ||
	    high < pool->core->opt.recur || size < high / LARGE_PART ||
	    used < high / NEAR_HALF || is_shared(pool) || is_novel(q))
		return;
	if (lags(pool, q)) {
		ss_recur_end(pool);
		return;
	}
	/* (Without host memory chunks go on moving.) */
	if (!v->recur && moved)
		v->recur = ss_host_alloc(pool->core, sizeof(*v->recur));
	r = v->recur;
	if (!r)
		return;
	r->moved = pool->spent.allocs;
	if (r->on || r->moved < r->from || !moved)
		return;
	r->on = true;
	r->left = false;
	r->known = r->novel = r->peaks = 0;
	r->held = r->held ? r->held < HELD_MOST ? 2 * r->held : HELD_MOST : HELD;
}

bool ss_recur_serves(const struct ss_pool *pool)
{
	const struct ss_recur *r = is_on(pool) ? pool->vmm->recur : NULL;

	return r && (r->known > SERVES_TIMES * r->novel || r->known + r->novel < LEARNT) &&
	       pool->spent.allocs - r->moved < r->held;
}

/* Where what is live now and stays would end if it lay side by side; 0: too many to look at. */
static uint64_t end_of_staying(const struct ss_pool *pool, uint64_t high)
{
	const struct ss_block *first = pool->vmm->seg->first, *b;
	uint64_t bytes = 0, room = 0;
	unsigned left = COUNTED;

	for (b = first; b && left; b = b->next, left--)
		if (ss_is_state(b, SS_BLOCK_LIVE) && b->size <= high / STAYS_PART)
			bytes += b->size;
	if (!left)
		return 0;
	for (b = first; b && room < bytes; b = b->next)
		if (!ss_is_state(b, SS_BLOCK_HOLE))
			room += b->size;
	return b ? b->addr : 0;
}

/* What became of the last block with these predecessors, or with others that share its place. */
static uint32_t *fate_of(struct ss_recur *r, uint32_t key)
{
	return &r->fate[key >> (32 - SS_FATE_BITS)];
}

/* Is it that of one with these? */
static bool same(uint32_t fate, uint32_t key)
{
	return (fate | 1) == (key | 1);
}

struct ss_past ss_recur_asked(struct ss_pool *pool, uint64_t size)
{
	struct ss_recur *r = is_on(pool) ? pool->vmm->recur : NULL;
	uint64_t high, used, mixed = size * 0x9e3779b97f4a7c15ull;
	struct ss_past past = {0};

	if (r && is_shared(pool)) {
		ss_recur_end(pool);
		r = NULL;
	}
	if (!r)
		return past;
	/* Five bits a step: what is older than thirteen allocations does not count. */
	r->sizes = r->sizes << 5 ^ (mixed ^ mixed >> 32);
	mixed = (r->sizes ^ r->sizes >> 32) * 0xff51afd7ed558ccdull;
	mixed = (mixed ^ mixed >> 32) * 0xc4ceb9fe1a85ec53ull;
	past.key = (uint32_t)(mixed >> 32) | 2;
	past.peaks = r->peaks;
	if (same(*fate_of(r, past.key), past.key))
		r->known++;
	else
		r->novel++;
	if (r->known + r->novel >= JUDGED) {
		if (r->known < r->novel) {
			ss_recur_end(pool);
			r->from = pool->spent.allocs + PAUSE;
		}
		r->known /= 2;
		r->novel /= 2;
	}
	high = ss_pool_used_high(pool);
	used = ss_pool_used(pool) + size;
	if (used > high - high / NEAR_PART) {
		r->peaks++;
		if (!r->at_peak)
			r->line = end_of_staying(pool, high);
		r->at_peak = true;
	} else if (used < high - high / AWAY_PART) {
		r->left |= r->peaks != 0;
		r->at_peak = false;
	}
	return past;
}

void ss_recur_freed(struct ss_pool *pool, struct ss_block *list)
{
	struct ss_recur *r = is_on(pool) ? pool->vmm->recur : NULL;
	uint64_t high = r ? ss_pool_used_high(pool) : 0;

	for (; r && list; list = list->left) {
		struct ss_past past = list->past;
		bool stayed = past.peaks != r->peaks && list->size <= high / STAYS_PART;

		list->past = (struct ss_past){0};
		if (past.key)
			*fate_of(r, past.key) = (past.key & ~1u) | stayed;
	}
}

static bool may_have(const struct ss_block *b, const struct ss_queue *q)
{
	return ss_is_state(b, SS_BLOCK_FREE) &&
	       (b->slot == SS_SLOT_CLEAN || (q->tl && b->slot == q->tl->slot) ||
		(SS_MUTANT_IS(53) && b->slot != SS_SLOT_EPOCH));
}

static struct ss_block *lowest(const struct ss_pool *pool, const struct ss_queue *q,
			       uint64_t size, uint64_t align)
{
	uint64_t end = ss_stays_from(pool->vmm);
	unsigned left = LOOKED_AT;

	for (struct ss_block *b = pool->vmm->seg->first; b && b->addr < end && left--; b = b->next)
		if (may_have(b, q) && ss_start_in(b, align, 0) + size <= b->addr + b->size)
			return b;
	return NULL;
}

struct ss_block *ss_recur_spot(struct ss_pool *pool, struct ss_queue *q, const struct ss_past *past,
			       uint64_t size, uint64_t align, uint64_t *start)
{
	struct ss_recur *r = q && past->key && ss_recur_places(pool) ? pool->vmm->recur : NULL;
	struct ss_block *own, *clean, *b;
	uint64_t from = 0, end;

	if (!r)
		return NULL;
	end = ss_stays_from(pool->vmm);
	if (*fate_of(r, past->key) == (past->key | 1)) {
		b = lowest(pool, q, size, align);
	} else {
		from = r->line;
		own = ss_heap_best_within(&q->own, size, align, from, end);
		clean = ss_heap_best_within(&pool->clean, size, align, from, end);
		b = !own || (clean && clean->size < own->size) ? clean : own;
	}
	if (b)
		*start = ss_start_in(b, align, from);
	return b;
}
