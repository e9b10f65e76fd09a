/* SPDX-License-Identifier: MIT */
/*
 * Placement: free ranges by size, best fit, lowest address first.
 *
 * Two bitmaps find the first bin that can hold a request; inside a bin a treap
 * ordered by (size, address) finds the best range. The treap's priorities are a
 * hash of the address, so a range costs no extra words and the shape does not
 * depend on the order of frees. With a million ranges a bin's treap is a dozen
 * levels deep, where one tree of everything would be twenty and more.
 *
 * Takes no lock: a heap belongs to a pool and is used under the pool's lock.
 */
#include "core/internal.h"

#define WITHIN_TRIES 64 /* ranges looked at for one between two addresses */

/* Bin of a size: the position of its top bit, then the next four bits. */
static unsigned bin_of(uint64_t size)
{
	uint64_t g = size / SS_GRAIN;
	unsigned fl = 63 - (unsigned)__builtin_clzll(g | 1);
	unsigned sl = fl >= 4 ? (unsigned)(g >> (fl - 4)) & 15 : (unsigned)(g << (4 - fl)) & 15;

	if (fl >= SS_HEAP_FL)
		return SS_HEAP_FL * SS_HEAP_SL - 1;
	return fl * SS_HEAP_SL + sl;
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

void ss_heap_insert(struct ss_heap *h, struct ss_block *b)
{
	unsigned bin = bin_of(b->size);
	struct ss_block **at = &h->bin[bin];
	uint64_t prio = priority(b);

	while (*at && priority(*at) >= prio)
		at = before(*at, b->size, b->addr) ? &(*at)->right : &(*at)->left;
	split(*at, b->size, b->addr, &b->left, &b->right);
	*at = b;
	h->sl[bin / SS_HEAP_SL] |= (uint16_t)(1u << bin % SS_HEAP_SL);
	h->fl |= 1u << bin / SS_HEAP_SL;
	h->bytes += b->size;
	h->count++;
}

void ss_heap_remove(struct ss_heap *h, struct ss_block *b)
{
	unsigned bin = bin_of(b->size);
	struct ss_block **at = &h->bin[bin];
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
	if (!h->bin[bin]) {
		h->sl[bin / SS_HEAP_SL] &= (uint16_t)~(1u << bin % SS_HEAP_SL);
		if (!h->sl[bin / SS_HEAP_SL])
			h->fl &= ~(1u << bin / SS_HEAP_SL);
	}
	h->bytes -= b->size;
	h->count--;
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
static int next_bin(const struct ss_heap *h, unsigned bin)
{
	unsigned fl = bin / SS_HEAP_SL;
	uint32_t sl = h->sl[fl] & (uint32_t)~((2u << bin % SS_HEAP_SL) - 1);
	uint32_t rest;

	if (sl)
		return (int)(fl * SS_HEAP_SL) + __builtin_ctz(sl);
	rest = fl + 1 < SS_HEAP_FL ? h->fl & ~((2u << fl) - 1) : 0;
	if (!rest)
		return -1;
	fl = (unsigned)__builtin_ctz(rest);
	return (int)(fl * SS_HEAP_SL) + __builtin_ctz(h->sl[fl]);
}

static struct ss_block *at_least(const struct ss_heap *h, uint64_t size, uint64_t addr)
{
	unsigned bin = bin_of(size);
	struct ss_block *b = lower_bound(h->bin[bin], size, addr);
	int next;

	if (b || (next = next_bin(h, bin)) < 0)
		return b;
	for (b = h->bin[next]; b->left; b = b->left)
		;
	return b;
}

static bool fits(const struct ss_block *b, uint64_t size, uint64_t align)
{
	return ss_round(b->addr, align) + size <= b->addr + b->size;
}

struct ss_block *ss_heap_best(const struct ss_heap *h, uint64_t size, uint64_t align)
{
	struct ss_block *b, *sure;

	if (!h->count)
		return NULL;
	b = at_least(h, size, 0);
	if (align <= SS_GRAIN)
		return b;
	/* The next few are tried as they are; a range with room for the worst
	 * padding always fits. */
	for (int tries = 0; b && tries < 16; tries++) {
		if (fits(b, size, align))
			return b;
		b = at_least(h, b->size, b->addr + 1);
	}
	/* What is in between fits by chance only, but it may be what was just made for it, and
	 * then nothing else would do: who grows and does not find it grows for ever. */
	sure = b ? at_least(h, size + align - SS_GRAIN, 0) : NULL;
	while (!sure && b && !fits(b, size, align))
		b = at_least(h, b->size, b->addr + 1);
	return sure ? sure : b;
}

struct ss_block *ss_heap_best_part(const struct ss_heap *h, uint64_t size, uint64_t align)
{
	struct ss_block *best = ss_heap_best(h, size, align), *b = best;

	if (b && b->size == size)
		return b;
	for (int tries = 0; b && tries < 4; tries++) {
		if (b->size != b->seg->size && fits(b, size, align))
			return b;
		b = at_least(h, b->size, b->addr + 1);
	}
	return best;
}

struct ss_block *ss_heap_best_within(const struct ss_heap *h, uint64_t size, uint64_t align,
				     uint64_t from, uint64_t to)
{
	struct ss_block *b = ss_heap_best(h, size, align);

	for (int tries = 0; b && tries < WITHIN_TRIES; tries++) {
		uint64_t end = b->addr + b->size;

		if (ss_start_in(b, align, from) + size <= (end < to ? end : to))
			return b;
		b = at_least(h, b->size, b->addr + 1);
	}
	return NULL;
}

struct ss_block *ss_heap_largest(const struct ss_heap *h)
{
	struct ss_block *b;
	unsigned fl, sl;

	if (!h->fl)
		return NULL;
	fl = 31 - (unsigned)__builtin_clz(h->fl);
	sl = 31 - (unsigned)__builtin_clz(h->sl[fl]);
	for (b = h->bin[fl * SS_HEAP_SL + sl]; b->right; b = b->right)
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

void ss_heap_each(const struct ss_heap *h, void (*each)(struct ss_block *, void *), void *arg)
{
	for (uint32_t rest = h->fl; rest; rest &= rest - 1) {
		unsigned fl = (unsigned)__builtin_ctz(rest);

		for (uint32_t sl = h->sl[fl]; sl; sl &= sl - 1)
			walk(h->bin[fl * SS_HEAP_SL + (unsigned)__builtin_ctz(sl)], each, arg);
	}
}
