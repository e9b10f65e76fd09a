/* SPDX-License-Identifier: MIT */
/*
 * The index of free ranges: two bitmaps find the first list that can hold a request. Ranges in one
 * list differ by a 32nd of their size at most, so a look at the first few finds a fit that is nearly
 * the best. Only if no list has a fit among its first few ranges are lists searched to their ends.
 */
#include "core/range/free_index.h"

#define LOOKED_AT 4   /* ranges of a list */
#define LISTS (SS_INDEX_FL * SS_INDEX_SL)

/* The list after i that is in use; LISTS: there is none. */
static inline unsigned list_after(const struct ss_free_index *x, unsigned i)
{
	unsigned fl = i / SS_INDEX_SL;
	uint32_t rest = x->sl[fl] & ~1u << i % SS_INDEX_SL;

	if (!rest) {
		rest = x->fl & ~1u << fl;
		if (!rest)
			return LISTS;
		fl = (unsigned)__builtin_ctz(rest);
		rest = x->sl[fl];
	}
	return fl * SS_INDEX_SL + (unsigned)__builtin_ctz(rest);
}

/* The list of a size: the position of its top bit, then the next five bits. */
static inline unsigned list_of(uint64_t size)
{
	uint64_t g = size / SS_GRAIN;
	unsigned up;

	if (g < SS_INDEX_SL)
		return (unsigned)g;
	up = 58 - (unsigned)__builtin_clzll(g);
	return up * SS_INDEX_SL + (unsigned)(g >> up);
}

/* The first list that may have a range of that size; LISTS: there is none. */
static inline unsigned first_list(const struct ss_free_index *x, uint64_t size)
{
	unsigned i = list_of(size);

	return i >= LISTS || x->list[i] ? i : list_after(x, i);
}

static inline void link_first(struct ss_free_index *x, struct ss_block *b, unsigned i)
{
	struct ss_block *first = x->list[i];

	b->left = NULL;
	b->right = first;
	x->list[i] = b;
	if (first) {
		first->left = b;
		return;
	}
	x->sl[i / SS_INDEX_SL] |= 1u << i % SS_INDEX_SL;
	x->fl |= 1u << i / SS_INDEX_SL;
}

static inline void unlink_from(struct ss_free_index *x, struct ss_block *b, unsigned i)
{
	struct ss_block *prev = b->left, *next = b->right;

	if (next)
		next->left = prev;
	if (prev) {
		prev->right = next;
		return;
	}
	x->list[i] = next;
	if (next)
		return;
	x->sl[i / SS_INDEX_SL] &= ~(1u << i % SS_INDEX_SL);
	if (!x->sl[i / SS_INDEX_SL])
		x->fl &= ~(1u << i / SS_INDEX_SL);
}

void ss_index_insert(struct ss_free_index *x, struct ss_block *b)
{
	x->bytes += b->size;
	link_first(x, b, list_of(b->size));
}

void ss_index_remove(struct ss_free_index *x, struct ss_block *b)
{
	x->bytes -= b->size;
	unlink_from(x, b, list_of(b->size));
}

void ss_index_replace(struct ss_free_index *x, struct ss_block *old, uint64_t old_size,
		      struct ss_block *b, uint64_t size)
{
	unsigned i = list_of(old_size), to = list_of(size);

	x->bytes += size - old_size;
	if (i != to) {
		unlink_from(x, old, i);
		link_first(x, b, to);
	} else if (b != old) {
		b->left = old->left;
		b->right = old->right;
		if (b->right)
			b->right->left = b;
		if (b->left)
			b->left->right = b;
		else
			x->list[i] = b;
	}
}

static bool is_better(const struct ss_block *b, const struct ss_block *best)
{
	return !best || b->size < best->size || (b->size == best->size && b->addr < best->addr);
}

/* The best of the first `most` ranges from b on. */
static inline __attribute__((always_inline)) struct ss_block *
best_of(struct ss_block *b, uint64_t size, uint64_t align, unsigned most)
{
	struct ss_block *best = NULL;

	for (; b && most; b = b->right, most--)
		if (b->size >= size && (align <= SS_GRAIN || ss_fits(b, size, align)) && is_better(b, best))
			best = b;
	return best;
}

struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	unsigned first = first_list(x, size), i;
	struct ss_block *b = NULL;

	for (i = first; i < LISTS && !b; i = list_after(x, i))
		b = best_of(x->list[i], size, align, LOOKED_AT);
	/* Whoever grows for a block and does not find what was added would grow for ever. */
	for (i = first; i < LISTS && !b; i = list_after(x, i))
		b = best_of(x->list[i], size, align, UINT32_MAX);
	return b;
}

void ss_index_each(const struct ss_free_index *x, void (*each)(struct ss_block *, void *), void *arg)
{
	for (uint32_t rest = x->fl; rest; rest &= rest - 1) {
		unsigned fl = (unsigned)__builtin_ctz(rest);

		for (uint32_t sl = x->sl[fl]; sl; sl &= sl - 1)
			for (struct ss_block *b = x->list[fl * SS_INDEX_SL + (unsigned)__builtin_ctz(sl)];
			     b; b = b->right)
				each(b, arg);
	}
}
