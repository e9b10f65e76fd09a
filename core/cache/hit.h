/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a hit, inlined where they are used: cutting and merging in the arena, bytes in use,
 * the claim of a live block. No atomic exchange for the thread that owns the lock. Only cache/
 * includes this.
 *
 * Bytes in use. The first thread that uses a pool counts alone, with plain stores: its high-water
 * mark is exact however many streams it uses. From the first use by another thread on, every
 * cache counts for itself under its own lock, and only when one passes its own peak are they
 * summed; a peak of several threads at once that is made of hits alone may go unseen. The sum is
 * always exact.
 */
#ifndef SS_CACHE_HIT_H
#define SS_CACHE_HIT_H

#include "core/cache/stream_cache.h"
#include "core/range/divide.h"

static inline uint64_t ss_get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline void ss_put(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, n, memory_order_relaxed);
}

/* False: that is more than there ever was. */
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

/* Where the calling thread counts: for the pool, if it counts alone, else for q. */
struct ss_count *ss_count_of(struct ss_stream_cache *q);
/* What *c counts is a new peak of it. q->lock held; unlocks it. */
SS_NOINLINE void ss_count_peak(struct ss_stream_cache *q, struct ss_count *c);

/* ---- the arena. q->lock held. ------------------------------------------------ */

/* The word of a free range at home in the arena. */
static inline uint64_t ss_free_word(const struct ss_stream_cache *q)
{
	return ss_word(q->slot, SS_BLOCK_FREE, false, true);
}

/* What was freed before this position does not merge with what is freed now: it has completed, so
 * other streams may have it. 0: there are no others. */
static inline uint64_t ss_merges_from(const struct ss_stream_cache *q, struct ss_timeline *tl)
{
	if (!atomic_load_explicit(&q->others, memory_order_relaxed))
		return 0;
	return atomic_load_explicit(&ss_progress(tl)->completed, memory_order_relaxed) + 1;
}

/* a swallows b, its right neighbour; neither is in the index. */
static inline void ss_arena_merge(struct ss_stream_cache *q, struct ss_block *a, struct ss_block *b)
{
	a->n = ss_max(a->n, b->n);
	ss_block_merge(q->set->core, &q->spares, a, b);
}

/* What lies on the right of b, which is at home here, is another stream's, or completed. */
SS_NOINLINE void ss_border_consider(struct ss_block *b, struct ss_block *next);

/* Is `next` on the right of b no more than the rest of the segment of a large block? Then it merges
 * with b though it has completed and b has not. Other streams lose it, but small blocks there would
 * keep the large one from being had again. */
static inline bool ss_is_rest(const struct ss_block *b, const struct ss_block *next)
{
	return b->size > SS_CUT_FREELY && next->size < SS_FRAME;
}

/* b, at home here and free, is large and starts its segment. If the rest has completed, all of the
 * segment is idle, and the ladder is to merge it before a hit cuts it. */
static inline void ss_arena_first(struct ss_stream_cache *q, const struct ss_block *b)
{
	const struct ss_block *next = ss_block_next(b);

	if (unlikely(ss_is_free_on(next, SS_SLOT_COMPLETED)) && !ss_block_next(next) &&
	    b->seg->size > ss_get(&q->cut_freely) &&
	    !atomic_load_explicit(&q->scattered, memory_order_relaxed)) {
		atomic_store(&q->scattered, true);
		atomic_fetch_add(&q->set->core->recent_gen, 1); /* as ss_hits_end() */
	}
}

/* b, at home here, with its mark, becomes free, one with the free ranges beside it whose mark is
 * `from` or later. */
SS_INLINE void ss_arena_put_own(struct ss_stream_cache *q, struct ss_block *b, uint64_t from)
{
	struct ss_block *next = ss_this_side(ss_right_of(b)), *prev = ss_block_prev(b);
	uint64_t word = ss_free_word(q), right = next ? ss_block_word(next) : q->slot;

	q->own.bytes += b->size;
	if (right == word) {
		if (likely(next->n >= from) || ss_is_rest(b, next)) {
			ss_index_unlink(&q->own, next);
			ss_arena_merge(q, b, next);
		} else {
			q->apart = true;
		}
	} else if (from && unlikely((uint32_t)right != q->slot)) {
		ss_border_consider(b, next);
	}
	if (prev && ss_block_word(prev) == word) {
		if (likely(prev->n >= from)) {
			ss_index_unlink(&q->own, prev);
			ss_arena_merge(q, prev, b);
			b = prev;
		} else {
			q->apart = true;
		}
	}
	ss_set_word(b, word);
	ss_index_link(&q->own, b);
	if (unlikely(ss_is_first(b))) {
		if (!ss_right_of(b))
			q->idle += b->size;
		else if (unlikely(b->size > SS_CUT_FREELY))
			ss_arena_first(q, b);
	}
}

/* `size` bytes at `align` from what is at home here, if that takes no second look; then not in any
 * structure. NULL: ask ss_arena_take(). */
SS_INLINE struct ss_block *ss_arena_take_own(struct ss_stream_cache *q, uint64_t size,
					     uint64_t align)
{
	struct ss_block *b = ss_index_fit(&q->own, size, align), *rest;
	uint64_t had;

	if (unlikely(!b || (align > SS_GRAIN && (b->addr & (align - 1)))))
		return NULL;
	had = b->size;
	if (unlikely(ss_is_whole(b))) {
		if (had != size && had > atomic_load_explicit(&q->cut_freely, memory_order_relaxed))
			return NULL;
		q->idle -= had;
	}
	ss_index_unlink(&q->own, b);
	q->own.bytes -= size;
	if (had == size)
		return b;
	rest = ss_block_split(q->set->core, &q->spares, b, size);
	if (unlikely(!rest)) {
		q->own.bytes -= had - size;
		ss_arena_put_own(q, b, UINT64_MAX);
		return NULL;
	}
	ss_index_link(&q->own, rest);
	return b;
}

/* ---- blocks. q->lock held. --------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
#define SS_ACQUIRED(b) (void)atomic_load_explicit(&(b)->state, memory_order_acquire)
#else
#define SS_ACQUIRED(b) atomic_thread_fence(memory_order_acquire)
#endif

/* Of a block at home in another arena. */
#define SS_NOT_OWN(word) ((word) & ~(0xffull << 56))

/* Takes the live block at addr from its owner. `live`: the word of such a block at home here. Of
 * two threads that free one block only one succeeds, since a live block is claimed under the lock
 * of the cache that handed it out. */
static inline bool ss_claim_hit(struct ss_block *b, uint64_t live, uint64_t addr)
{
	uint64_t word = ss_block_word(b);

	if (unlikely(word != live) && word != SS_NOT_OWN(live))
		return false;
	SS_ACQUIRED(b);
	return likely(b->addr == addr);
}

#endif
