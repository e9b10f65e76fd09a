/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a hit, inlined into their callers: cutting and merging in the shelf, bytes in use,
 * the claim of a live block. The thread that owns the lock makes no atomic exchange. Only shelf/
 * includes this.
 *
 * Bytes in use. The first thread that uses a pool counts alone, with plain stores: its high-water
 * mark is exact however many streams it uses. From the first use by another thread on, every shelf
 * counts for itself under its own lock. The counts are summed only when one passes its own peak; so
 * a peak that several threads reach together by hits alone may go unseen. The sum is always exact.
 */
#ifndef SS_SHELF_HIT_H
#define SS_SHELF_HIT_H

#include "core/shelf/shelf.h"
#include "core/range/divide.h"

static inline uint64_t ss_get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline void ss_put(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, n, memory_order_relaxed);
}

/* False: the sum is a new peak of c. */
static inline bool ss_count_add(struct ss_count *c, uint64_t delta)
{
	uint64_t used = ss_get(&c->used) + delta;

	ss_put(&c->used, used);
	return (int64_t)used <= (int64_t)ss_get(&c->peak);
}

static inline void ss_count_less(struct ss_count *c, uint64_t size)
{
	ss_put(&c->used, ss_get(&c->used) - size);
}

/* The count of the calling thread: the pool's, if the thread counts alone, else that of q. */
struct ss_count *ss_count_of(struct ss_shelf *q);
/* The bytes that *c counts have reached a new peak. q->lock held; unlocks it. */
SS_NOINLINE void ss_count_peak(struct ss_shelf *q, struct ss_count *c);

/* ---- the shelf. q->lock held. ------------------------------------------------ */

/* The word of a free range of the shelf. */
static inline uint64_t ss_free_word(const struct ss_shelf *q)
{
	return ss_word(q->slot, SS_BLOCK_FREE, false);
}

/* a swallows b, its right neighbour; neither is in the index. */
static inline void ss_shelf_merge(struct ss_shelf *q, struct ss_block *a, struct ss_block *b)
{
	a->n = ss_max(a->n, b->n);
	ss_block_merge(q->set->core, &q->spares, a, b);
}

/* Handles the border between b and its right neighbour, which is not free on this stream but may
 * be free in another stream's shelf. */
SS_NOINLINE void ss_border_consider(struct ss_block *b, struct ss_block *next);

/* b, with its mark, becomes free, and merges with the free ranges of the shelf beside it. */
SS_INLINE void ss_shelf_put_own(struct ss_shelf *q, struct ss_block *b)
{
	struct ss_block *next = ss_this_side(ss_right_of(b)), *prev = ss_block_prev(b);
	uint64_t word = ss_free_word(q), right = next ? ss_block_word(next) : q->slot;

	q->free.bytes += b->size;
	if (right == word) {
		ss_index_unlink(&q->free, next);
		ss_shelf_merge(q, b, next);
	} else if (unlikely((uint32_t)right != q->slot)) {
		ss_border_consider(b, next);
	}
	if (prev && ss_block_word(prev) == word) {
		ss_index_unlink(&q->free, prev);
		ss_shelf_merge(q, prev, b);
		b = prev;
	}
	ss_set_word(b, word);
	ss_index_link(&q->free, b);
	if (unlikely(ss_is_whole(b)))
		ss_put(&q->idle, ss_get(&q->idle) + b->size);
}

/* Would a cut of `size` bytes off b divide an idle segment that is better released whole? A
 * segment also counts as idle if the rest of it lies among the completed ranges. The ladder
 * merges the two parts. */
static inline bool ss_splits_idle(const struct ss_shelf *q, const struct ss_block *b, uint64_t size)
{
	const struct ss_block *next = ss_block_next(b);

	if (b->size == size || !ss_is_first(b) ||
	    (next && (!ss_is_free_on(next, SS_SLOT_COMPLETED) || ss_block_next(next))))
		return false;
	return b->seg->size > atomic_load_explicit(&q->cut_freely, memory_order_relaxed);
}

/* `size` bytes at `align`, if a simple search finds them; the block is then in no structure.
 * NULL: ask ss_shelf_take(). */
SS_INLINE struct ss_block *ss_shelf_take_own(struct ss_shelf *q, uint64_t size, uint64_t align)
{
	struct ss_block *b = ss_index_fit(&q->free, size, align), *rest;
	uint64_t had;

	if (unlikely(!b || (align > SS_GRAIN && (b->addr & (align - 1)))))
		return NULL;
	had = b->size;
	if (unlikely(ss_is_first(b))) {
		if (ss_splits_idle(q, b, size))
			return NULL;
		ss_put(&q->idle, ss_get(&q->idle) - (ss_is_whole(b) ? had : 0));
	}
	ss_index_unlink(&q->free, b);
	q->free.bytes -= size;
	if (had == size)
		return b;
	rest = ss_block_split(q->set->core, &q->spares, b, size);
	if (unlikely(!rest)) {
		q->free.bytes -= had - size;
		ss_shelf_put_own(q, b);
		return NULL;
	}
	ss_index_link(&q->free, rest);
	return b;
}

/* ---- blocks. q->lock held. --------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
#define SS_ACQUIRED(b) (void)atomic_load_explicit(&(b)->state, memory_order_acquire)
#else
#define SS_ACQUIRED(b) atomic_thread_fence(memory_order_acquire)
#endif

/* Takes the live block at addr from its owner. `live`: the word of such a block. Of two threads
 * that free one block only one succeeds, since a live block is claimed under the lock of the
 * shelf that handed it out. */
static inline bool ss_claim_hit(struct ss_block *b, uint64_t live, uint64_t addr)
{
	if (unlikely(ss_block_word(b) != live))
		return false;
	SS_ACQUIRED(b);
	return likely(b->addr == addr);
}

#endif
