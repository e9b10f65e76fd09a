/* SPDX-License-Identifier: MIT */
/*
 * An index of free ranges by size, which finds a good fit in constant time.
 *
 * It takes no lock; the lock of its owner guards it. `bytes` may be read without the lock, as a
 * hint.
 */
#ifndef SS_RANGE_FREE_INDEX_H
#define SS_RANGE_FREE_INDEX_H

#include "core/range/block.h"

#define SS_CLASSES 1280
#define SS_LOOKED_AT 4 /* ranges that are checked in the list to which a size belongs */

/* Lists of ranges whose sizes differ by a 32nd at most. */
struct ss_free_index {
	uint64_t used[SS_CLASSES / 64]; /* lists in use */
	uint32_t sum;                   /* words of `used` that are not 0 */
	uint64_t bytes;
	/* SS_CLASSES of them, each linked by ->right, with ->at back */
	struct ss_block **list;
};

/* An empty index. `list`: SS_CLASSES zeroed pointers, which belong to the caller and outlive it. */
void ss_index_init(struct ss_free_index *x, struct ss_block **list);
/* Forgets all ranges. */
void ss_index_clear(struct ss_free_index *x);
/* A range that holds `size` bytes at `align`: the smallest, and of equal ones the lowest, of the
 * first few in the first list that has one. NULL: there is none at all. */
struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align);
/* The first range of the first list in use after that of b (NULL: of all lists); NULL: none. */
struct ss_block *ss_index_first_after(const struct ss_free_index *x, const struct ss_block *b);
/* The range after b (NULL: before all), smaller lists first; NULL: there are no more. */
static inline struct ss_block *ss_index_next(const struct ss_free_index *x,
					     const struct ss_block *b)
{
	return b && b->right ? b->right : ss_index_first_after(x, b);
}
/* All ranges. The loop must not change the index. */
#define SS_INDEX_EACH(b, x) \
	for (struct ss_block *b = ss_index_next(x, NULL); b; b = ss_index_next(x, b))

/* ---- inlined, for the hot path --------------------------------------------- */

/* The list of a size: 32 for each power of two. The exponent of the size as a floating-point
 * number, and the first five bits after it. */
static inline unsigned ss_class(uint64_t size)
{
	double d = (double)(int64_t)size;
	uint64_t bits;

	_Static_assert(SS_GRAIN == 1 << 9, "the first list");
	__builtin_memcpy(&bits, &d, sizeof(bits));
	return (unsigned)(bits >> 47) - ((1023 + 9) << 5);
}

/* The list after i that is in use; SS_CLASSES: there is none. */
static inline unsigned ss_list_after(const struct ss_free_index *x, unsigned i)
{
	unsigned j = i / 64;
	uint64_t rest = x->used[j] & ~1ull << i % 64;

	if (!rest) {
		uint32_t words = x->sum & ~1u << j;

		if (unlikely(!words))
			return SS_CLASSES;
		j = (unsigned)__builtin_ctz(words);
		rest = x->used[j];
	}
	return j * 64 + (unsigned)__builtin_ctzll(rest);
}

/* For a caller that itself adds the inserted bytes to x->bytes, and subtracts the removed bytes. */
static inline void ss_index_link(struct ss_free_index *x, struct ss_block *b)
{
	unsigned i = ss_class(b->size);
	struct ss_block **at = &x->list[i], *first = *at;

	b->right = first;
	b->at = at;
	*at = b;
	if (first) {
		first->at = &b->right;
		return;
	}
	x->used[i / 64] |= 1ull << i % 64;
	x->sum |= 1u << i / 64;
}

static inline void ss_index_unlink(struct ss_free_index *x, struct ss_block *b)
{
	struct ss_block **at = b->at, *next = b->right;
	size_t i;

	*at = next;
	if (next) {
		next->at = at;
		return;
	}
	i = (size_t)(((uintptr_t)at - (uintptr_t)x->list) / sizeof(*at));
	if (i >= SS_CLASSES)
		return;
	x->used[i / 64] &= ~(1ull << i % 64);
	x->sum &= ~((uint32_t)!x->used[i / 64] << i / 64);
}

static inline void ss_index_insert(struct ss_free_index *x, struct ss_block *b)
{
	x->bytes += b->size;
	ss_index_link(x, b);
}

static inline void ss_index_remove(struct ss_free_index *x, struct ss_block *b)
{
	x->bytes -= b->size;
	ss_index_unlink(x, b);
}

/* The same at a fraction of the cost, for hits: of the next list only the first range is
 * checked. NULL: ask ss_index_best(). */
SS_INLINE struct ss_block *ss_index_fit(const struct ss_free_index *x, uint64_t size,
					uint64_t align)
{
	unsigned i = ss_class(size), looks = SS_LOOKED_AT;
	struct ss_block *best = NULL, *b;

	for (b = x->list[i]; b; b = b->right) {
		if (align > SS_GRAIN ? ss_fits(b, size, align) : b->size >= size) {
			if (b->size == size)
				return b;
			if (!best || b->size < best->size)
				best = b;
		}
		if (!--looks)
			break;
	}
	if (best)
		return best;
	i = ss_list_after(x, i);
	if (unlikely(i == SS_CLASSES))
		return NULL;
	b = x->list[i];
	return align <= SS_GRAIN || ss_fits(b, size, align) ? b : NULL;
}

#endif
