/* SPDX-License-Identifier: MIT */
/*
 * The index of free ranges: two bitmaps find the first list that can hold a request. Ranges in one
 * list differ by a 32nd of their size at most, so a look at the first few finds a fit that is nearly
 * the best. Only if nothing longer is there is a list searched to its end.
 */
#include "core/range/free_index.h"

#define LOOKED_AT 8   /* ranges of a list */
#define PART_LISTS 4  /* lists, for a range that is no whole segment */
#define LISTS (SS_INDEX_FL * SS_INDEX_SL)

/* The list of a size: the position of its top bit, then the next five bits. */
static unsigned list_of(uint64_t size)
{
	uint64_t g = size / SS_GRAIN;
	unsigned fl;

	if (g < SS_INDEX_SL)
		return (unsigned)g;
	fl = 63 - (unsigned)__builtin_clzll(g);
	if (fl >= SS_INDEX_FL + 4)
		return LISTS - 1;
	return (fl - 4) * SS_INDEX_SL + ((unsigned)(g >> (fl - 5)) & (SS_INDEX_SL - 1));
}

void ss_index_insert(struct ss_free_index *x, struct ss_block *b)
{
	unsigned i = list_of(b->size);
	struct ss_block *first = x->list[i];

	b->left = NULL;
	b->right = first;
	x->list[i] = b;
	x->bytes += b->size;
	x->count++;
	if (first) {
		first->left = b;
		return;
	}
	x->sl[i / SS_INDEX_SL] |= 1u << i % SS_INDEX_SL;
	x->fl |= 1u << i / SS_INDEX_SL;
}

void ss_index_remove(struct ss_free_index *x, struct ss_block *b)
{
	struct ss_block *prev = b->left, *next = b->right;
	unsigned i;

	x->bytes -= b->size;
	x->count--;
	if (next)
		next->left = prev;
	if (prev) {
		prev->right = next;
		return;
	}
	i = list_of(b->size);
	x->list[i] = next;
	if (next)
		return;
	x->sl[i / SS_INDEX_SL] &= ~(1u << i % SS_INDEX_SL);
	if (!x->sl[i / SS_INDEX_SL])
		x->fl &= ~(1u << i / SS_INDEX_SL);
}

/* The first list in use from i on, or -1. */
static int next_list(const struct ss_free_index *x, unsigned i)
{
	unsigned fl = i / SS_INDEX_SL;
	uint32_t rest = x->sl[fl] >> i % SS_INDEX_SL;

	if (rest)
		return (int)i + __builtin_ctz(rest);
	rest = fl + 1 < SS_INDEX_FL ? x->fl & ~((2u << fl) - 1) : 0;
	if (!rest)
		return -1;
	fl = (unsigned)__builtin_ctz(rest);
	return (int)(fl * SS_INDEX_SL) + __builtin_ctz(x->sl[fl]);
}

static bool is_better(const struct ss_block *a, const struct ss_block *b)
{
	return !b || a->size < b->size || (a->size == b->size && a->addr < b->addr);
}

/* The best of the first `most` ranges from b on. `part`: leaves out whole segments that do not fit
 * exactly. */
static struct ss_block *best_of(struct ss_block *b, uint64_t size, uint64_t align, bool part, unsigned most)
{
	struct ss_block *best = NULL;

	for (; b && most; b = b->right, most--)
		if (ss_fits(b, size, align) && is_better(b, best) &&
		    !(part && b->size != size && ss_is_whole(b)))
			best = b;
	return best;
}

/* The best of the first few of each list, in at most `lists` lists. */
static struct ss_block *search(const struct ss_free_index *x, uint64_t size, uint64_t align, bool part,
			       unsigned lists)
{
	struct ss_block *b = NULL;

	for (int i = next_list(x, list_of(size)); i >= 0 && lists && !b; lists--) {
		b = best_of(x->list[i], size, align, part, LOOKED_AT);
		i = (unsigned)i + 1 < LISTS ? next_list(x, (unsigned)i + 1) : -1;
	}
	return b;
}

struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	struct ss_block *b = x->count ? search(x, size, align, false, LISTS) : NULL;

	/* Whoever grows for a block and does not find what was added would grow for ever. */
	if (!b && x->count)
		for (int i = next_list(x, list_of(size)); i >= 0 && !b;
		     i = (unsigned)i + 1 < LISTS ? next_list(x, (unsigned)i + 1) : -1)
			b = best_of(x->list[i], size, align, false, UINT32_MAX);
	return b;
}

struct ss_block *ss_index_best_part(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	struct ss_block *best = ss_index_best(x, size, align), *part;

	if (!best || best->size == size || !ss_is_whole(best))
		return best;
	part = search(x, size, align, true, PART_LISTS);
	return part ? part : best;
}

struct ss_block *ss_index_largest(const struct ss_free_index *x)
{
	struct ss_block *best = NULL;
	unsigned fl;

	if (!x->fl)
		return NULL;
	fl = 31 - (unsigned)__builtin_clz(x->fl);
	for (struct ss_block *b = x->list[fl * SS_INDEX_SL + 31 - (unsigned)__builtin_clz(x->sl[fl])]; b;
	     b = b->right)
		best = !best || b->size > best->size ? b : best;
	return best;
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
