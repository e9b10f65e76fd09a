/* SPDX-License-Identifier: MIT */
/*
 * The index of free ranges: a bitmap finds the first list that can hold a request. Ranges in one
 * list differ by a 32nd of their size at most, so a look at the first few finds a fit that is
 * nearly the best. Only if no list has a fit among its first few ranges are lists searched to their
 * ends.
 */
#include <string.h>

#include "core/range/free_index.h"

void ss_index_init(struct ss_free_index *x, struct ss_block **list)
{
	*x = (struct ss_free_index){.list = list};
}

void ss_index_clear(struct ss_free_index *x)
{
	memset(x->list, 0, SS_CLASSES * sizeof(x->list[0]));
	ss_index_init(x, x->list);
}

static bool is_better(const struct ss_block *b, const struct ss_block *best)
{
	return !best || b->size < best->size || (b->size == best->size && b->addr < best->addr);
}

/* The best of the first `most` ranges from b on. */
static struct ss_block *best_of(struct ss_block *b, uint64_t size, uint64_t align, unsigned most)
{
	struct ss_block *best = NULL;

	for (; b && most; b = b->right, most--)
		if (ss_fits(b, size, align) && is_better(b, best))
			best = b;
	return best;
}

struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	unsigned first = ss_class(size), i;
	struct ss_block *b = NULL;

	for (i = first; i < SS_CLASSES && !b; i = ss_list_after(x, i))
		b = best_of(x->list[i], size, align, SS_LOOKED_AT);
	/* An exhaustive search is needed: a caller that grows for a block and does not find the
	 * added memory would grow for ever. */
	for (i = first; i < SS_CLASSES && !b; i = ss_list_after(x, i))
		b = best_of(x->list[i], size, align, UINT32_MAX);
	return b;
}

struct ss_block *ss_index_first_after(const struct ss_free_index *x, const struct ss_block *b)
{
	unsigned i = b ? ss_class(b->size) : 0;

	if (b || !(x->used[0] & 1))
		i = ss_list_after(x, i);
	return i < SS_CLASSES ? x->list[i] : NULL;
}
