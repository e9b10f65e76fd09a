/* SPDX-License-Identifier: MIT */
/* An ordered set of address ranges, as a treap. */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "cli/analysis/ranges.h"

struct ss_range_node {
	struct ss_range range;
	uint32_t left, right;
};

/* The priority of a node depends on its number and on a random seed, so that a hostile file
 * cannot make the tree deep. */
static uint64_t priority(const struct ss_ranges *r, uint32_t n) {
	uint64_t x = (n + r->seed) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93ull;
}

void ss_ranges_finish(struct ss_ranges *r) {
	free(r->node);
	*r = (struct ss_ranges){ 0 };
}

static uint32_t take_node(struct ss_ranges *r) {
	if (r->unused) {
		uint32_t n = r->unused;
		r->unused = r->node[n].left;
		return n;
	}
	if (r->count + 1 >= r->room) {
		uint32_t room = r->room ? r->room * 2 : 1024;
		struct ss_range_node *node = room > r->room ?
			realloc(r->node, room * sizeof(*node)) : NULL;
		if (!node) {
			return 0;
		}
		if (!r->room) { /* the kernel's random bytes for this process */
			memcpy(&r->seed, (const void *)getauxval(AT_RANDOM), sizeof(r->seed));
		}
		r->node = node;
		r->room = room;
	}
	return ++r->count;
}

/* Divides the tree `n` at `base` into *low and *high. */
static void split(struct ss_ranges *r, uint32_t n, uint64_t base, uint32_t *low, uint32_t *high) {
	while (n) {
		if (r->node[n].range.base < base) {
			*low = n;
			low = &r->node[n].right;
			n = *low;
		} else {
			*high = n;
			high = &r->node[n].left;
			n = *high;
		}
	}
	*low = *high = 0;
}

bool ss_ranges_add(struct ss_ranges *r, const struct ss_range *range) {
	uint32_t n = take_node(r);

	if (!n) {
		return false;
	}
	uint64_t mine = priority(r, n);
	uint32_t *link = &r->root;
	while (*link && priority(r, *link) >= mine) {
		link = r->node[*link].range.base < range->base ? &r->node[*link].right :
			&r->node[*link].left;
	}
	r->node[n].range = *range;
	split(r, *link, range->base, &r->node[n].left, &r->node[n].right);
	*link = n;
	return true;
}

struct ss_range *ss_ranges_at(struct ss_ranges *r, uint64_t base) {
	uint32_t n = r->root;

	while (n && r->node[n].range.base != base) {
		n = r->node[n].range.base < base ? r->node[n].right : r->node[n].left;
	}
	return n ? &r->node[n].range : NULL;
}

struct ss_range *ss_ranges_from(const struct ss_ranges *r, uint64_t address) {
	uint32_t n = r->root, best = 0;

	while (n) {
		const struct ss_range *range = &r->node[n].range;
		if (range->base + range->size > address) {
			best = n;
			n = range->base <= address ? 0 : r->node[n].left;
		} else {
			n = r->node[n].right;
		}
	}
	return best ? &r->node[best].range : NULL;
}

#define PATH_MAX_NODES (sizeof(((struct ss_ranges_walk *)0)->path) / sizeof(uint32_t))

struct ss_range *ss_ranges_next(const struct ss_ranges *r, struct ss_ranges_walk *walk,
				const struct ss_range *at) {
	uint32_t n;

	if (!walk->begun) { /* the path of all nodes after `at` */
		walk->begun = true;
		for (n = r->root; n && walk->depth < PATH_MAX_NODES;) {
			if (r->node[n].range.base > at->base) {
				walk->path[walk->depth++] = n;
				n = r->node[n].left;
			} else {
				n = r->node[n].right;
			}
		}
	}
	if (walk->depth == PATH_MAX_NODES) { /* a tree so deep is next to impossible */
		return ss_ranges_from(r, at->base + at->size);
	}
	if (walk->depth == 0) {
		return NULL;
	}
	uint32_t next = walk->path[--walk->depth];
	for (n = r->node[next].right; n && walk->depth < PATH_MAX_NODES; n = r->node[n].left) {
		walk->path[walk->depth++] = n;
	}
	return &r->node[next].range;
}

bool ss_ranges_remove(struct ss_ranges *r, uint64_t base, struct ss_range *out) {
	uint32_t *link = &r->root;

	while (*link && r->node[*link].range.base != base) {
		link = r->node[*link].range.base < base ? &r->node[*link].right :
			&r->node[*link].left;
	}
	uint32_t n = *link;
	if (!n) {
		return false;
	}
	*out = r->node[n].range;
	uint32_t left = r->node[n].left, right = r->node[n].right;
	while (left && right) { /* merge the two subtrees */
		if (priority(r, left) >= priority(r, right)) {
			*link = left;
			link = &r->node[left].right;
			left = *link;
		} else {
			*link = right;
			link = &r->node[right].left;
			right = *link;
		}
	}
	*link = left ? left : right;
	r->node[n].left = r->unused;
	r->unused = n;
	return true;
}
