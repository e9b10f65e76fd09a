/* SPDX-License-Identifier: MIT */
/*
 * Splitting and merging blocks. The caller holds the blocks, and the lock that guards the spare
 * descriptors.
 */
#ifndef SS_RANGE_DIVIDE_H
#define SS_RANGE_DIVIDE_H

#include "core/range/address_map.h"

/* b: a `next`; across a border nothing is written. */
static inline void ss_set_prev(struct ss_block *b, struct ss_block *prev)
{
	if (ss_this_side(b))
		atomic_store_explicit(&b->prev, prev, memory_order_relaxed);
}

static inline void ss_set_next(struct ss_block *b, struct ss_block *next)
{
	atomic_store_explicit(&b->next, next, memory_order_relaxed);
}

/* Draws the border between b, which the caller holds, and `next`, its right neighbour. */
static inline void ss_border_draw(struct ss_block *b, struct ss_block *next)
{
	ss_set_next(b, (struct ss_block *)((uintptr_t)next | SS_BORDER));
	ss_set_prev(next, (struct ss_block *)SS_BORDER);
}

/* No border lies on the right of b, which the caller holds, from now on. */
static inline void ss_border_remove(struct ss_block *b)
{
	struct ss_block *next = ss_block_next(b);

	if (next != ss_right_of(b)) {
		ss_set_next(b, next);
		ss_set_prev(next, b);
	}
}

/* Removes the border on the right of b, which the caller holds, if the range there is in no
 * other shelf any more. */
static inline void ss_border_review(struct ss_block *b)
{
	struct ss_block *next = ss_block_next(b);

	if (ss_right_of(b) != next && (!ss_home(next) || ss_home(next) == ss_home(b)))
		ss_border_remove(b);
}

/* Makes `home` the home of b, which the caller holds. */
static inline void ss_rehome(struct ss_block *b, uint32_t home)
{
	ss_set_home(b, home);
	ss_border_remove(b);
}

/* Splits b, which is not exported, after `size` bytes and returns the right part, which inherits
 * mark, state and home. NULL: host memory is out, and nothing changed. */
SS_INLINE struct ss_block *ss_block_split(struct ss_core *core, struct ss_spares *own,
					  struct ss_block *b, uint64_t size)
{
	struct ss_block *rest = ss_block_new(core, own), *next = ss_right_of(b);

	if (unlikely(!rest))
		return NULL;
	rest->addr = b->addr + size;
	rest->size = b->size - size;
	rest->seg = b->seg;
	rest->n = b->n;
	ss_set_home(rest, ss_home(b));
	ss_set_word(rest, atomic_load_explicit(&b->word, memory_order_relaxed));
	ss_set_next(rest, next);
	ss_set_prev(rest, b);
	ss_set_prev(next, rest);
	ss_set_next(b, rest);
	b->size = size;
	ss_start_set(b->seg, rest->addr, rest->index);
	return rest;
}

/* Merges b, the right neighbour of a, into a. The caller sets the mark. */
SS_INLINE void ss_block_merge(struct ss_core *core, struct ss_spares *own, struct ss_block *a,
			      struct ss_block *b)
{
	struct ss_block *next = ss_right_of(b);

	ss_set_next(a, next);
	ss_set_prev(next, a);
	ss_start_clear(b->seg, b->addr);
	a->size += b->size;
	ss_block_recycle(core, own, b);
}

/* The mark of a and b merged: the later of their marks on `slot`; a completed range has none. */
static inline uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b,
				      uint32_t slot)
{
	return ss_max(a->slot == slot ? a->n : 0, b->slot == slot ? b->n : 0);
}

#endif
