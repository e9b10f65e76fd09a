/* SPDX-License-Identifier: MIT */
/* Address-ordered treaps. */
#include <stdatomic.h>

#include "device/macros.h"
#include "device/range.h"

static void update_max(struct sim_range *n)
{
	size_t m = n->size;

	if (n->l && n->l->max > m)
		m = n->l->max;
	if (n->r && n->r->max > m)
		m = n->r->max;
	n->max = m;
}

static uint32_t next_prio(void)
{
	static _Atomic uint32_t state = 1;
	uint32_t x = atomic_fetch_add_explicit(&state, 0x9e3779b9u, memory_order_relaxed);

	x ^= x >> 16;
	x *= 0x7feb352du;
	x ^= x >> 15;
	x *= 0x846ca68bu;
	return x ^ (x >> 16);
}

static void split(struct sim_range *t, uintptr_t key, struct sim_range **a, struct sim_range **b)
{
	if (!t) {
		*a = *b = NULL;
	} else if (t->base < key) {
		split(t->r, key, &t->r, b);
		*a = t;
		update_max(t);
	} else {
		split(t->l, key, a, &t->l);
		*b = t;
		update_max(t);
	}
}

static struct sim_range *merge(struct sim_range *a, struct sim_range *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->prio > b->prio) {
		a->r = merge(a->r, b);
		update_max(a);
		return a;
	}
	b->l = merge(a, b->l);
	update_max(b);
	return b;
}

void sim_range_insert(struct sim_range **root, struct sim_range *n)
{
	struct sim_range *a, *b;

	n->l = n->r = NULL;
	n->max = n->size;
	n->prio = next_prio();
	split(*root, n->base, &a, &b);
	*root = merge(merge(a, n), b);
}

void sim_range_remove(struct sim_range **root, struct sim_range *n)
{
	struct sim_range *a, *b, *m;

	split(*root, n->base, &a, &b);
	split(b, n->base + 1, &m, &b);
	*root = merge(a, b);
}

struct sim_range *sim_range_floor(struct sim_range *t, uintptr_t addr)
{
	struct sim_range *best = NULL;

	while (t) {
		if (t->base <= addr) {
			best = t;
			t = t->r;
		} else {
			t = t->l;
		}
	}
	return best;
}

struct sim_range *sim_range_next(struct sim_range *t, uintptr_t addr)
{
	struct sim_range *best = NULL;

	while (t) {
		if (t->base >= addr) {
			best = t;
			t = t->l;
		} else {
			t = t->r;
		}
	}
	return best;
}

struct sim_range *sim_range_fit(struct sim_range *t, size_t size, size_t align)
{
	struct sim_range *n;

	if (!t || t->max < size)
		return NULL;
	n = sim_range_fit(t->l, size, align);
	if (n)
		return n;
	if (t->size >= size && SIM_ALIGN(t->base, align) - t->base <= t->size - size)
		return t;
	return sim_range_fit(t->r, size, align);
}
