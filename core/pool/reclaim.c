/* SPDX-License-Identifier: MIT */
/*
 * Where a free range belongs, and how ranges move as the device progresses.
 *
 * A range is in one of three places: the heap of the timeline whose mark it
 * carries (at once usable there), the list of the epoch it was freed in, or the
 * pool's clean heap (usable by anyone). Clean ranges merge with their neighbours,
 * and ranges of one timeline with the same mark do. While only one stream uses the
 * pool its ranges merge whatever their marks and swallow clean ones, which keeps
 * them in one piece. Beside others it costs those no more than a fence, if the device
 * is at its end by then. Where it lags, a fresh mark on old bytes would put them off
 * again with every free beside them; there ranges keep their marks, and an
 * allocation joins what it needs (core/join.c).
 * When a stream has seen another's free through an event, it takes the range
 * over: the range then carries its own present mark, which is ordered after the
 * old one.
 *
 * All functions are called with the pool's lock held; some take core->order.
 */
#include <stdlib.h>

#include "core/internal.h"
#include "core/lease.h"
#include "core/vmm.h"

static struct ss_queue *queue_of(struct ss_pool *pool, uint32_t slot)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);

	return atomic_load_explicit(&t->q[slot], memory_order_acquire);
}

static struct ss_heap *heap_of(struct ss_pool *pool, const struct ss_block *b)
{
	return b->slot == SS_SLOT_CLEAN ? &pool->clean : &queue_of(pool, b->slot)->own;
}

bool ss_mark_done(struct ss_pool *pool, uint32_t slot, uint64_t n)
{
	struct ss_timeline *tl = ss_slot(pool->core, slot);
	/* Completion that only our fences know of is what
	 * ReuseAllowOpportunistic is about. */
	bool any = pool->classic || atomic_load_explicit(&pool->opportunistic,
							 memory_order_relaxed);

	return n <= atomic_load_explicit(any || SS_MUTANT_IS(24) ? &tl->completed : &tl->synced,
					 memory_order_acquire);
}

static bool is_free(const struct ss_block *b)
{
	return b && atomic_load_explicit(&b->state, memory_order_relaxed) == SS_BLOCK_FREE &&
	       b->slot != SS_SLOT_EPOCH;
}

/* May range a swallow its neighbour b? */
static bool swallows(const struct ss_pool *pool, const struct ss_block *a,
		     const struct ss_block *b)
{
	if (!is_free(b))
		return false;
	if (a->slot == SS_SLOT_CLEAN)
		return b->slot == SS_SLOT_CLEAN;
	if (pool->lags && pool->queue_count > 1)
		return b->slot == a->slot && b->n == a->n;
	return b->slot == a->slot || b->slot == SS_SLOT_CLEAN;
}

uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b, uint32_t slot)
{
	uint64_t x = a->slot == slot ? a->n : 0, y = b->slot == slot ? b->n : 0;

	if (SS_MUTANT_IS(26))
		return x && (x < y || !y) ? x : y;
	return x > y ? x : y;
}

void ss_place(struct ss_pool *pool, struct ss_block *b)
{
	uint32_t slot = b->slot;

	/* Freed on another stream than the one that divides what lies round it. */
	if (ss_lessee(b))
		ss_lease_end(pool, ss_lessee_queue(pool, ss_lessee(b)));
	atomic_store_explicit(&b->state, SS_BLOCK_FREE, memory_order_relaxed);
	b->request = 0;
	if (slot == SS_SLOT_EPOCH) {
		struct ss_epoch *e = b->epoch;

		b->left = NULL;
		b->right = e->blocks;
		if (e->blocks)
			e->blocks->left = b;
		e->blocks = b;
		e->bytes += b->size;
		return;
	}
	while (swallows(pool, b, b->next)) {
		ss_heap_remove(heap_of(pool, b->next), b->next);
		b->n = ss_merged_mark(b, b->next, slot);
		ss_block_merge(pool->core, b);
	}
	while (swallows(pool, b, b->prev)) {
		struct ss_block *prev = b->prev;

		ss_heap_remove(heap_of(pool, prev), prev);
		prev->n = ss_merged_mark(prev, b, slot);
		prev->slot = slot;
		ss_block_merge(pool->core, prev);
		b = prev;
	}
	if (b->size == b->seg->size) {
		if (slot == SS_SLOT_CLEAN)
			b->seg->idle_since = b->n ? b->n : pool->core->drv.now_ms(pool->core->drv.ctx);
		pool->idle_bytes += b->size;
	}
	ss_heap_insert(heap_of(pool, b), b);
}

void ss_unplace(struct ss_pool *pool, struct ss_block *b)
{
	if (b->slot != SS_SLOT_EPOCH) {
		if (b->size == b->seg->size)
			pool->idle_bytes -= b->size;
		ss_heap_remove(heap_of(pool, b), b);
		return;
	}
	b->epoch->bytes -= b->size;
	if (b->left)
		b->left->right = b->right;
	else
		b->epoch->blocks = b->right;
	if (b->right)
		b->right->left = b->left;
}

struct ss_block *ss_carve(struct ss_pool *pool, struct ss_block *b, uint64_t size, uint64_t start)
{
	uint64_t pad = start - b->addr;
	struct ss_block *rest, *head;

	ss_unplace(pool, b);
	if (pad) {
		rest = ss_block_split(pool->core, b, pad);
		if (!rest)
			goto fail;
		head = b;
		b = rest;
		/* Out of the way of its own neighbour while it is placed. */
		atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
		ss_place(pool, head);
	}
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	if (b->size > size) {
		rest = ss_block_split(pool->core, b, size);
		if (!rest)
			goto fail;
		ss_place(pool, rest);
	}
	if (pool->vmm)
		ss_vmm_touch(pool, b);
	return b;

fail:
	ss_place(pool, b);
	return NULL;
}

/* ---- bins to heaps ------------------------------------------------------ */

void ss_place_all(struct ss_pool *pool, struct ss_block *b)
{
	while (b) {
		struct ss_block *next = b->left;

		ss_place(pool, b);
		b = next;
	}
}

void ss_flush_large(struct ss_pool *pool, struct ss_queue *q, uint64_t size)
{
	struct ss_block *leased, *freed;

	ss_bias_visit(&q->lock);
	leased = ss_lease_undo(pool, q);
	freed = ss_queue_drain(q, size);
	ss_bias_unlock(&q->lock);
	ss_stays_freed(pool, freed);
	ss_recur_freed(pool, freed);
	ss_place_all(pool, leased);
	ss_place_all(pool, freed);
}

void ss_flush(struct ss_pool *pool, struct ss_queue *q)
{
	ss_flush_large(pool, q, 0);
}

void ss_flush_all(struct ss_pool *pool)
{
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q))
		ss_flush(pool, q);
	if (pool->done)
		ss_flush(pool, pool->done);
}

/* ---- ranges that change hands ------------------------------------------- */

/* Ranges to move are first linked through ->request: moving changes heaps. */
struct mover {
	struct ss_pool *pool;
	const struct ss_row *row;
	struct ss_block *list;
	uint64_t n;
	bool implicit;
};

static void pick(struct mover *m, struct ss_block *b)
{
	/* Not free while its fellows are placed, or they would merge with it and
	 * the list would lose it. */
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	b->request = (uintptr_t)m->list;
	m->list = b;
}

static struct ss_block *take(struct mover *m)
{
	struct ss_block *b = m->list;

	m->list = b ? (struct ss_block *)(uintptr_t)b->request : NULL;
	if (b)
		ss_unplace(m->pool, b);
	return b;
}

static void pick_done(struct ss_block *b, void *arg)
{
	struct mover *m = arg;

	if (ss_mark_done(m->pool, b->slot, b->n))
		pick(m, b);
}

/* Mutant 17: what the null stream's next command is ordered after. */
static bool only_ordered(struct ss_pool *pool, uint32_t slot, uint64_t n)
{
	struct ss_timeline *null = ss_timeline_null(pool->core, pool->dev);
	struct ss_row *row = ss_row_of(pool->core, null);
	bool yes = slot == null->slot || n <= ss_row_get(row, slot);

	ss_row_put(row);
	return yes;
}

static bool epoch_done(struct ss_pool *pool, const struct ss_epoch *e)
{
	if (e->wide && atomic_load(&pool->core->dev[e->dev].wide_done) < e->wide)
		return false;
	for (uint32_t i = 0; i < e->count; i++)
		if (!ss_mark_done(pool, e->mark[i].slot, e->mark[i].n) &&
		    !(SS_MUTANT_IS(17) && only_ordered(pool, e->mark[i].slot, e->mark[i].n)))
			return false;
	return true;
}

static void epoch_unlink(struct ss_pool *pool, struct ss_epoch *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		pool->epochs = e->next;
	if (e->next)
		e->next->prev = e->prev;
	ss_host_free(pool->core, e, sizeof(*e) + e->count * sizeof(e->mark[0]));
}

void ss_settle(struct ss_pool *pool)
{
	uint64_t count = 0, now = pool->core->drv.now_ms(pool->core->drv.ctx);
	struct ss_epoch *e, *next;
	struct ss_block *b;

	while (__builtin_expect((b = pool->unmarked) != NULL, 0)) {
		struct ss_block *more = b->right;

		if (!ss_epoch_mark(pool, b))
			break;
		pool->unmarked = more;
		ss_place(pool, b);
	}
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		struct mover m = {.pool = pool};

		if (!q->own.count)
			continue;
		ss_heap_each(&q->own, pick_done, &m);
		while ((b = take(&m))) {
			b->slot = SS_SLOT_CLEAN;
			b->n = ss_freed_by(q->tl, b->n, now);
			ss_place(pool, b);
			count++;
		}
	}
	for (e = pool->epochs; e; e = next) {
		next = e->next;
		if (!epoch_done(pool, e))
			continue;
		while ((b = e->blocks)) {
			ss_unplace(pool, b);
			b->slot = SS_SLOT_CLEAN;
			b->n = now ? now : 1;
			ss_place(pool, b);
		}
		ss_patience_completed(pool, e);
		epoch_unlink(pool, e);
		count++;
	}
	if (count)
		atomic_fetch_add(&pool->core->dev[pool->dev].settled, count);
}

static void pick_usable(struct ss_block *b, void *arg)
{
	struct mover *m = arg;

	if (m->implicit || b->n <= ss_row_get(m->row, b->slot))
		pick(m, b);
}

unsigned ss_absorb(struct ss_pool *pool, struct ss_timeline *x, const struct ss_row *row)
{
	unsigned rules = 0;

	bool follow = atomic_load_explicit(&pool->follow, memory_order_relaxed) ||
		      SS_MUTANT_IS(25);
	struct ss_core *core = pool->core;
	struct ss_block *b;

	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		struct mover m = {.pool = pool, .row = row};

		if (q->tl == x || !q->own.count)
			continue;
		/* The next command on the null stream joins every blocking stream
		 * that still exists by then. */
		if (x->kind == SS_TL_NULL && q->tl->dev == x->dev &&
		    (q->tl->kind == SS_TL_BLOCKING || SS_MUTANT_IS(6))) {
			pthread_mutex_lock(&core->order);
			m.implicit = q->tl->alive && !q->tl->capturing;
			q->tl->joined |= m.implicit;
			pthread_mutex_unlock(&core->order);
		}
		if (SS_MUTANT_IS(5) && q->tl->kind == SS_TL_NULL && x->kind == SS_TL_BLOCKING)
			m.implicit = true;
		if (SS_MUTANT_IS(1))
			m.implicit = true;
		if (!follow && !m.implicit)
			continue;
		ss_heap_each(&q->own, pick_usable, &m);
		while ((b = take(&m))) {
			rules |= m.implicit ? SS_RULE_IMPLICIT : SS_RULE_EVENT;
			b->slot = SS_MUTANT_IS(30) ? SS_SLOT_CLEAN : x->slot;
			b->n = atomic_load(&x->now);
			ss_place(pool, b);
		}
	}
	if (rules)
		atomic_store_explicit(&x->marked, true, memory_order_relaxed);
	return rules;
}

static void pick_at_most(struct ss_block *b, void *arg)
{
	struct mover *m = arg;

	if (b->n <= m->n)
		pick(m, b);
}

bool ss_absorb_from(struct ss_pool *pool, struct ss_timeline *x, struct ss_queue *q, uint64_t n)
{
	struct mover m = {.pool = pool, .n = n};
	struct ss_block *b;
	bool any = false;

	ss_heap_each(&q->own, pick_at_most, &m);
	while ((b = take(&m))) {
		b->slot = x->slot;
		b->n = atomic_load(&x->now);
		ss_place(pool, b);
		any = true;
	}
	atomic_store_explicit(&x->marked, true, memory_order_relaxed);
	return any;
}

/* ---- epochs ------------------------------------------------------------- */

/* Does tl belong to what may touch the pool's memory? */
static bool concerns(const struct ss_pool *pool, const struct ss_timeline *tl)
{
	if (tl->dev != pool->dev && !(pool->peers >> tl->dev & 1) &&
	    !(atomic_load(&tl->visits) >> pool->dev & 1))
		return false;
	return tl->alive || atomic_load(&tl->completed) < tl->last;
}

bool ss_epoch_mark(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_core *core = pool->core;
	struct ss_epoch *e = pool->epochs, *fresh = NULL;
	uint32_t count = 0, i, max = 0;
	bool same;

	for (int d = 0; d < core->devices; d++)
		if ((d == pool->dev || pool->peers >> d & 1) && !ss_timeline_null(core, d))
			return false;
	pthread_mutex_lock(&core->order);
	for (i = 0; i < core->slot_count; i++)
		max += concerns(pool, core->slots[i]);
	same = e && e->count == max && !e->wide && !ss_distrusted(core);
	if (!same) {
		fresh = ss_host_alloc(core, sizeof(*fresh) + max * sizeof(fresh->mark[0]));
		if (!fresh) {
			pthread_mutex_unlock(&core->order);
			return false;
		}
	}
	for (i = 0; i < core->slot_count; i++) {
		struct ss_timeline *tl = core->slots[i];
		uint64_t n = atomic_load(&tl->now);

		if (!concerns(pool, tl))
			continue;
		if (!tl->alive)
			n = tl->last;
		if (same && (e->mark[count].slot != i || (e->mark[count].n != n && !SS_MUTANT_IS(39)))) {
			/* Something moved on: this free needs an epoch of its own. */
			same = false;
			fresh = ss_host_alloc(core,
					      sizeof(*fresh) + max * sizeof(fresh->mark[0]));
			if (!fresh) {
				pthread_mutex_unlock(&core->order);
				return false;
			}
			memcpy(fresh->mark, e->mark, count * sizeof(e->mark[0]));
		}
		if (fresh) {
			fresh->mark[count].slot = i;
			fresh->mark[count].n = n;
		}
		atomic_store(&tl->marked, true);
		count++;
	}
	if (fresh) {
		fresh->count = max;
		if (SS_MUTANT_IS(9) && count)
			fresh->mark[count - 1].n = 0;
		fresh->dev = pool->dev;
		fresh->since = core->drv.now_ms(core->drv.ctx);
		if (ss_distrusted(core) && !SS_MUTANT_IS(37))
			fresh->wide = atomic_load(&core->dev[pool->dev].wide_now);
		fresh->next = pool->epochs;
		if (pool->epochs)
			pool->epochs->prev = fresh;
		pool->epochs = fresh;
		e = fresh;
	}
	pthread_mutex_unlock(&core->order);
	b->slot = SS_SLOT_EPOCH;
	b->epoch = e;
	ss_patience_freed(pool, e, b->size);
	return true;
}
