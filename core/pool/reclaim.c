/* SPDX-License-Identifier: MIT */
/*
 * Moves free ranges that have become usable. Ranges move from the shelves of streams, and from the
 * list of ALL, to the completed ranges when their marks have completed. They move from one shelf to
 * another when an order that the application made covers them.
 *
 * All functions are called with the pool's lock held; they visit one shelf at a time.
 */
#include "core/pool/reclaim.h"
#include "core/range/divide.h"

static void all_append(struct ss_pool *pool, struct ss_block *b)
{
	bool exported = b->exported;

	ss_set_free(b, SS_SLOT_ALL);
	b->exported = exported;
	b->right = NULL;
	*(pool->all.oldest ? &pool->all.newest->right : &pool->all.oldest) = b;
	pool->all.newest = b;
	atomic_fetch_add(&pool->all.bytes, b->size);
}

void ss_reclaim_put(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_shelf *q;

	if (b->slot == SS_SLOT_ALL) {
		all_append(pool, b);
	} else if (b->slot == SS_SLOT_COMPLETED) {
		ss_completed_insert(&pool->mem, b);
	} else {
		q = ss_shelf_of_slot(&pool->shelves, b->slot);
		ss_bias_visit(&q->lock);
		ss_shelf_put(q, b);
		ss_bias_unlock(&q->lock);
	}
}

static void count_settled(struct ss_pool *pool, uint64_t count)
{
	if (count)
		atomic_fetch_add(&ss_device_pools(ss_core_of(pool), pool->mem.dev)->settled, count);
}

/* Records that every use of the range has completed, just before it becomes a completed range. */
static void record_reusable(struct ss_pool *pool, const struct ss_block *b)
{
	if (unlikely(ss_core_of(pool)->recorded) && !b->exported)
		ss_trace_reusable_at(ss_moment_now(&pool->mem.moment), (void *)(uintptr_t)b->addr,
				     b->size, pool->mem.dev, pool->mem.handle);
}

/* Moves ranges whose mark of ALL has completed to the completed ranges. */
static uint64_t take_all(struct ss_pool *pool)
{
	uint64_t count = 0, now = ss_now_ms(ss_core_of(pool));
	struct ss_block *b;

	for (; (b = pool->all.oldest) && ss_pool_mark_done(pool, SS_SLOT_ALL, b->n); count++) {
		pool->all.oldest = b->right;
		atomic_fetch_sub(&pool->all.bytes, b->size);
		record_reusable(pool, b);
		ss_set_slot(b, SS_SLOT_COMPLETED);
		b->n = now;
		if (unlikely(b->exported))
			ss_ipc_gap(b);
		else
			ss_completed_insert(&pool->mem, b);
	}
	return count;
}

/* ---- completed ranges of streams ------------------------------------------------ */

struct reached {
	struct ss_pool *pool;
	uint32_t slot;
};

static bool is_reached(const struct ss_block *b, const void *arg)
{
	const struct reached *r = arg;

	return !b->n || ss_pool_mark_done(r->pool, r->slot, b->n);
}

/* Moves the completed ranges of q to the pool's completed ranges. Returns the number of ranges
 * that a mark had held back. */
static uint64_t take_completed(struct ss_pool *pool, struct ss_shelf *q)
{
	struct reached reached = {pool, q->slot};
	struct ss_core *core = ss_core_of(pool);
	uint64_t now = ss_now_ms(core), since, count = 0;
	struct ss_block *b, *next;

	ss_bias_visit(&q->lock);
	b = ss_shelf_extract(q, is_reached, &reached);
	since = q->completed_since;
	ss_bias_unlock(&q->lock);
	for (; b; b = next) {
		next = b->left;
		ss_set_slot(b, SS_SLOT_COMPLETED);
		count += b->n != 0;
		if (b->n)
			record_reusable(pool, b);
		b->n = b->n ? now : since;
		ss_completed_insert(&pool->mem, b);
	}
	return count;
}

void ss_reclaim_all(struct ss_pool *pool)
{
	uint64_t count = take_all(pool);

	SS_SHELVES_EACH(q, &pool->shelves)
		if (ss_shelf_free_hint(q))
			count += take_completed(pool, q);
	count_settled(pool, count);
}

uint64_t ss_pool_free_hint(struct ss_pool *pool)
{
	uint64_t bytes = pool->mem.completed.bytes + atomic_load(&pool->all.bytes);

	SS_SHELVES_ALL(q, &pool->shelves)
		bytes += ss_shelf_free_hint(q);
	return bytes;
}

/* ---- ranges that an order covers -------------------------------------------------- */

struct ordered {
	const struct ss_clock *clock;
	uint32_t slot;
	uint64_t upto; /* or everything up to this position */
	bool all;
};

static bool is_ordered(const struct ss_block *b, const void *arg)
{
	const struct ordered *o = arg;

	return o->all || b->n <= o->upto || b->n <= ss_clock_get(o->clock, o->slot);
}

/* Moves ordered ranges from one shelf into x's, with x's present mark. True: at least one. */
static bool move_ordered(struct ss_pool *pool, struct ss_timeline *x, struct ss_shelf *from,
			 const struct ordered *o)
{
	struct ss_shelf *to = ss_shelf_of_slot(&pool->shelves, ss_timeline_slot(x));
	struct ss_block *list, *b, *next;

	if (!to)
		return false;
	ss_bias_visit(&from->lock);
	list = ss_shelf_extract(from, is_ordered, o);
	ss_bias_unlock(&from->lock);
	if (!list)
		return false;
	ss_bias_visit(&to->lock);
	for (b = list; b; b = next) {
		next = b->left;
		b->n = ss_timeline_now(x);
		ss_set_slot(b, to->slot);
		ss_shelf_put(to, b);
	}
	ss_bias_unlock(&to->lock);
	ss_timeline_marked(x);
	return true;
}

/* Finds which of q's ranges x may use. False: none. */
static bool ordered_of(struct ss_pool *pool, struct ss_timeline *x, const struct ss_clock *clock,
		       struct ss_shelf *q, struct ordered *o)
{
	bool follow = atomic_load_explicit(&pool->follow, memory_order_relaxed);

	if (q->tl == x || !ss_shelf_free_hint(q))
		return false;
	*o = (struct ordered){.clock = clock, .slot = q->slot};
	/* The next command on the null stream joins every blocking stream that still exists by
	 * then. */
	o->all = ss_null_joins(ss_core_of(pool), x, q->tl);
	return follow || o->all;
}

/* Bytes of other streams that x may use. */
static uint64_t ordered_bytes(struct ss_pool *pool, struct ss_timeline *x,
			      const struct ss_clock *clock)
{
	struct ordered o;
	uint64_t bytes = 0;

	SS_SHELVES_EACH(q, &pool->shelves) {
		if (!ordered_of(pool, x, clock, q, &o))
			continue;
		ss_bias_visit(&q->lock);
		SS_INDEX_EACH(b, &q->free)
			bytes += is_ordered(b, &o) ? b->size : 0;
		ss_bias_unlock(&q->lock);
	}
	return bytes;
}

unsigned ss_reclaim_ordered(struct ss_pool *pool, struct ss_timeline *x,
			    const struct ss_clock *clock, uint64_t size)
{
	struct ss_shelf *to = ss_shelf_of_slot(&pool->shelves, ss_timeline_slot(x));
	uint64_t have = pool->mem.completed.bytes + (to ? ss_shelf_free_hint(to) : 0);
	unsigned rules = 0;
	struct ordered o;

	/* Ranges that would not add up to the request stay with the streams that freed them. */
	if (have + ordered_bytes(pool, x, clock) < size)
		return 0;
	SS_SHELVES_EACH(q, &pool->shelves)
		if (ordered_of(pool, x, clock, q, &o) && move_ordered(pool, x, q, &o))
			rules |= o.all ? SS_RULE_IMPLICIT : SS_RULE_EVENT;
	return rules;
}

bool ss_reclaim_gated(struct ss_pool *pool, struct ss_timeline *x, struct ss_shelf *from,
		      uint64_t n)
{
	struct ordered o = {.slot = from->slot, .upto = n};

	return move_ordered(pool, x, from, &o);
}
