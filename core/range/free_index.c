/* SPDX-License-Identifier: MIT */
/*
 * The index of free ranges.
 *
 * Two bitmaps find the first bin that can hold a request; inside a bin a treap ordered by (size,
 * address) finds the best range. The treap's priorities are a hash of the address, so a range
 * costs no extra words and the shape does not depend on the order of frees. With a million
 * ranges the treap of a bin is a dozen levels deep, where a single tree would have over twenty.
 */
#include "core/range/free_index.h"

/* Bin of a size: the position of its top bit, then the next four bits. */
static unsigned bin_of(uint64_t size)
{
	uint64_t g = size / SS_GRAIN;
	unsigned fl = 63 - (unsigned)__builtin_clzll(g | 1);
	unsigned sl = fl >= 4 ? (unsigned)(g >> (fl - 4)) & 15 : (unsigned)(g << (4 - fl)) & 15;

	if (fl >= SS_INDEX_FL)
		return SS_INDEX_FL * SS_INDEX_SL - 1;
	return fl * SS_INDEX_SL + sl;
}

static uint64_t priority(const struct ss_block *b)
{
	uint64_t x = (b->addr / SS_GRAIN) * 0x9e3779b97f4a7c15ull;

	return x ^ (x >> 29);
}

static bool before(const struct ss_block *a, uint64_t size, uint64_t addr)
{
	return a->size != size ? a->size < size : a->addr < addr;
}

/* Splits tree t into what sorts before (size, addr) and the rest. */
static void split(struct ss_block *t, uint64_t size, uint64_t addr, struct ss_block **lo,
		  struct ss_block **hi)
{
	while (t) {
		if (before(t, size, addr)) {
			*lo = t;
			lo = &t->right;
			t = t->right;
		} else {
			*hi = t;
			hi = &t->left;
			t = t->left;
		}
	}
	*lo = *hi = NULL;
}

void ss_index_insert(struct ss_free_index *x, struct ss_block *b)
{
	unsigned bin = bin_of(b->size);
	struct ss_block **at = &x->bin[bin];
	uint64_t prio = priority(b);

	while (*at && priority(*at) >= prio)
		at = before(*at, b->size, b->addr) ? &(*at)->right : &(*at)->left;
	split(*at, b->size, b->addr, &b->left, &b->right);
	*at = b;
	x->sl[bin / SS_INDEX_SL] |= (uint16_t)(1u << bin % SS_INDEX_SL);
	x->fl |= 1u << bin / SS_INDEX_SL;
	x->bytes += b->size;
	x->count++;
}

void ss_index_remove(struct ss_free_index *x, struct ss_block *b)
{
	unsigned bin = bin_of(b->size);
	struct ss_block **at = &x->bin[bin];
	struct ss_block *lo = b->left, *hi = b->right;

	while (*at != b)
		at = before(*at, b->size, b->addr) ? &(*at)->right : &(*at)->left;
	/* Join both subtrees; everything in lo sorts before everything in hi. */
	while (lo && hi) {
		if (priority(lo) >= priority(hi)) {
			*at = lo;
			at = &lo->right;
			lo = lo->right;
		} else {
			*at = hi;
			at = &hi->left;
			hi = hi->left;
		}
	}
	*at = lo ? lo : hi;
	if (!x->bin[bin]) {
		x->sl[bin / SS_INDEX_SL] &= (uint16_t)~(1u << bin % SS_INDEX_SL);
		if (!x->sl[bin / SS_INDEX_SL])
			x->fl &= ~(1u << bin / SS_INDEX_SL);
	}
	x->bytes -= b->size;
	x->count--;
}

/* First range of the tree that does not sort before (size, addr). */
static struct ss_block *lower_bound(struct ss_block *t, uint64_t size, uint64_t addr)
{
	struct ss_block *best = NULL;

	while (t) {
		if (before(t, size, addr)) {
			t = t->right;
		} else {
			best = t;
			t = t->left;
		}
	}
	return best;
}

/* First non-empty bin after `bin`, or -1. */
static int next_bin(const struct ss_free_index *x, unsigned bin)
{
	unsigned fl = bin / SS_INDEX_SL;
	uint32_t sl = x->sl[fl] & (uint32_t)~((2u << bin % SS_INDEX_SL) - 1);
	uint32_t rest;

	if (sl)
		return (int)(fl * SS_INDEX_SL) + __builtin_ctz(sl);
	rest = fl + 1 < SS_INDEX_FL ? x->fl & ~((2u << fl) - 1) : 0;
	if (!rest)
		return -1;
	fl = (unsigned)__builtin_ctz(rest);
	return (int)(fl * SS_INDEX_SL) + __builtin_ctz(x->sl[fl]);
}

static struct ss_block *at_least(const struct ss_free_index *x, uint64_t size, uint64_t addr)
{
	unsigned bin = bin_of(size);
	struct ss_block *b = lower_bound(x->bin[bin], size, addr);
	int next;

	if (b || (next = next_bin(x, bin)) < 0)
		return b;
	for (b = x->bin[next]; b->left; b = b->left)
		;
	return b;
}

struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	struct ss_block *b, *sure;

	if (!x->count)
		return NULL;
	b = at_least(x, size, 0);
	if (align <= SS_GRAIN)
		return b;
	/* The next few are tried as they are; a range with room for the worst
	 * padding always fits. */
	for (int tries = 0; b && tries < 16; tries++) {
		if (ss_fits(b, size, align))
			return b;
		b = at_least(x, b->size, b->addr + 1);
	}
	/* The ranges in between fit only by chance. They must be tried all the same: the pool may just
	 * have grown by such a range, and if it does not find it, it grows again and again. */
	sure = b ? at_least(x, size + align - SS_GRAIN, 0) : NULL;
	while (!sure && b && !ss_fits(b, size, align))
		b = at_least(x, b->size, b->addr + 1);
	return sure ? sure : b;
}

struct ss_block *ss_index_best_part(const struct ss_free_index *x, uint64_t size, uint64_t align)
{
	struct ss_block *best = ss_index_best(x, size, align), *b = best;

	if (b && b->size == size)
		return b;
	for (int tries = 0; b && tries < 4; tries++) {
		if (!ss_is_whole(b) && ss_fits(b, size, align))
			return b;
		b = at_least(x, b->size, b->addr + 1);
	}
	return best;
}

struct ss_block *ss_index_largest(const struct ss_free_index *x)
{
	struct ss_block *b;
	unsigned fl, sl;

	if (!x->fl)
		return NULL;
	fl = 31 - (unsigned)__builtin_clz(x->fl);
	sl = 31 - (unsigned)__builtin_clz(x->sl[fl]);
	for (b = x->bin[fl * SS_INDEX_SL + sl]; b->right; b = b->right)
		;
	return b;
}

static void walk(struct ss_block *t, void (*each)(struct ss_block *, void *), void *arg)
{
	while (t) {
		struct ss_block *right = t->right;

		walk(t->left, each, arg);
		each(t, arg);
		t = right;
	}
}

void ss_index_each(const struct ss_free_index *x, void (*each)(struct ss_block *, void *), void *arg)
{
	for (uint32_t rest = x->fl; rest; rest &= rest - 1) {
		unsigned fl = (unsigned)__builtin_ctz(rest);

		for (uint32_t sl = x->sl[fl]; sl; sl &= sl - 1)
			walk(x->bin[fl * SS_INDEX_SL + (unsigned)__builtin_ctz(sl)], each, arg);
	}
}
