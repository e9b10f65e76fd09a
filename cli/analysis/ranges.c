/* SPDX-License-Identifier: MIT */
/*
 * An ordered set of address ranges: a directory of leaves, each with up to 256 ranges. A search
 * reads a few cache lines where a binary tree reads one per level, and a recording may have
 * millions of live blocks. Making room moves the keys only, never the ranges.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/ranges.h"

#define LEAF 256

struct ss_range_leaf {
	uint64_t base[LEAF]; /* ascending, the first `count` of them */
	uint8_t slot[LEAF];  /* slot of the range of each base; the other entries are free slots */
	uint32_t count;
	struct ss_range range[LEAF];
};

void ss_ranges_finish(struct ss_ranges *r)
{
	for (uint32_t i = 0; i < r->leaves; i++)
		free(r->leaf[i]);
	free(r->leaf);
	free(r->first);
	*r = (struct ss_ranges){0};
}

/* The number of keys that are at most `address`. The keys ascend. */
static uint32_t up_to(const uint64_t *key, uint32_t count, uint64_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (key[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The leaf in which a range that begins at `address` is or would be. There is at least one. */
static uint32_t leaf_of(const struct ss_ranges *r, uint64_t address)
{
	uint32_t n = up_to(r->first, r->leaves, address);

	return n ? n - 1 : 0;
}

static struct ss_range *range_at(const struct ss_ranges *r, uint32_t leaf, uint32_t at)
{
	struct ss_range_leaf *l = r->leaf[leaf];

	return &l->range[l->slot[at]];
}

/* Makes an empty leaf the one with index `at`. */
static bool add_leaf(struct ss_ranges *r, uint32_t at)
{
	struct ss_range_leaf *l;

	if (r->leaves == r->room) {
		uint32_t room = r->room ? r->room * 2 : 16;
		struct ss_range_leaf **leaf = realloc(r->leaf, room * sizeof(*leaf));
		if (!leaf)
			return false;
		r->leaf = leaf;
		uint64_t *first = realloc(r->first, room * sizeof(*first));
		if (!first)
			return false;
		r->first = first;
		r->room = room;
	}
	l = malloc(sizeof(*l));
	if (!l)
		return false;
	l->count = 0;
	for (unsigned i = 0; i < LEAF; i++)
		l->slot[i] = (uint8_t)i;
	memmove(r->leaf + at + 1, r->leaf + at, (r->leaves - at) * sizeof(*r->leaf));
	memmove(r->first + at + 1, r->first + at, (r->leaves - at) * sizeof(*r->first));
	r->leaf[at] = l;
	r->leaves++;
	return true;
}

static void insert(struct ss_ranges *r, uint32_t leaf, const struct ss_range *range)
{
	struct ss_range_leaf *l = r->leaf[leaf];
	uint32_t at = up_to(l->base, l->count, range->base);
	uint8_t free_slot = l->slot[l->count];

	memmove(l->base + at + 1, l->base + at, (l->count - at) * sizeof(*l->base));
	memmove(l->slot + at + 1, l->slot + at, l->count - at);
	l->base[at] = range->base;
	l->slot[at] = free_slot;
	l->range[free_slot] = *range;
	l->count++;
	r->first[leaf] = l->base[0];
}

/* Makes room in a full leaf. Returns the leaf that takes `base`; UINT32_MAX: out of memory. */
static uint32_t divide(struct ss_ranges *r, uint32_t leaf, uint64_t base)
{
	struct ss_range_leaf *l = r->leaf[leaf];
	/* Ranges often come in ascending order, which should leave full leaves behind. */
	uint32_t stay = leaf + 1 == r->leaves && base > l->base[LEAF - 1] ? LEAF : LEAF / 2;

	if (!add_leaf(r, leaf + 1))
		return UINT32_MAX;
	r->first[leaf + 1] = base;
	for (uint32_t i = stay; i < LEAF; i++)
		insert(r, leaf + 1, &l->range[l->slot[i]]);
	l->count = stay;
	return base < r->first[leaf + 1] ? leaf : leaf + 1;
}

bool ss_ranges_add(struct ss_ranges *r, const struct ss_range *range)
{
	uint32_t leaf;

	if (r->leaves == 0 && !add_leaf(r, 0))
		return false;
	leaf = leaf_of(r, range->base);
	if (r->leaf[leaf]->count == LEAF) {
		leaf = divide(r, leaf, range->base);
		if (leaf == UINT32_MAX)
			return false;
	}
	insert(r, leaf, range);
	r->count++;
	return true;
}

/* Finds the range that begins at `base`. False: there is none. */
static bool find(const struct ss_ranges *r, uint64_t base, uint32_t *leaf, uint32_t *at)
{
	if (r->leaves == 0)
		return false;
	*leaf = leaf_of(r, base);
	*at = up_to(r->leaf[*leaf]->base, r->leaf[*leaf]->count, base);
	return *at > 0 && r->leaf[*leaf]->base[--*at] == base;
}

struct ss_range *ss_ranges_at(struct ss_ranges *r, uint64_t base)
{
	uint32_t leaf, at;

	return find(r, base, &leaf, &at) ? range_at(r, leaf, at) : NULL;
}

struct ss_range *ss_ranges_from(const struct ss_ranges *r, uint64_t address)
{
	uint32_t leaf, at;

	if (r->leaves == 0)
		return NULL;
	leaf = leaf_of(r, address);
	at = up_to(r->leaf[leaf]->base, r->leaf[leaf]->count, address);
	if (at > 0) {
		struct ss_range *before = range_at(r, leaf, at - 1);
		if (before->base + before->size > address)
			return before;
	}
	if (at < r->leaf[leaf]->count)
		return range_at(r, leaf, at);
	return leaf + 1 < r->leaves ? range_at(r, leaf + 1, 0) : NULL;
}

struct ss_range *ss_ranges_next(const struct ss_ranges *r, struct ss_ranges_walk *walk,
				const struct ss_range *at)
{
	if (!walk->begun) {
		walk->begun = true;
		walk->leaf = leaf_of(r, at->base);
		walk->at = up_to(r->leaf[walk->leaf]->base, r->leaf[walk->leaf]->count, at->base);
	}
	if (walk->at == r->leaf[walk->leaf]->count) {
		if (walk->leaf + 1 == r->leaves)
			return NULL;
		walk->leaf++;
		walk->at = 0;
	}
	return range_at(r, walk->leaf, walk->at++);
}

bool ss_ranges_remove(struct ss_ranges *r, uint64_t base, struct ss_range *out)
{
	uint32_t leaf, at;

	if (!find(r, base, &leaf, &at))
		return false;
	struct ss_range_leaf *l = r->leaf[leaf];
	uint8_t slot = l->slot[at];
	*out = l->range[slot];
	l->count--;
	r->count--;
	memmove(l->base + at, l->base + at + 1, (l->count - at) * sizeof(*l->base));
	memmove(l->slot + at, l->slot + at + 1, l->count - at);
	l->slot[l->count] = slot;
	r->first[leaf] = l->base[0];
	if (l->count == 0) {
		free(l);
		r->leaves--;
		memmove(r->leaf + leaf, r->leaf + leaf + 1, (r->leaves - leaf) * sizeof(*r->leaf));
		memmove(r->first + leaf, r->first + leaf + 1,
			(r->leaves - leaf) * sizeof(*r->first));
	}
	return true;
}
