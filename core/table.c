/* SPDX-License-Identifier: MIT */
/* The writers' half of core/table.h. Locks: the caller's. */
#include <stdlib.h>

#include "core/table.h"

#define FIRST_BITS 6

static struct ss_buckets *buckets_new(unsigned bits)
{
	struct ss_buckets *b = calloc(1, sizeof(*b) + (sizeof(b->head[0]) << bits));

	if (b)
		b->shift = 64 - bits;
	return b;
}

bool ss_table_init(struct ss_table *t)
{
	t->buckets = buckets_new(FIRST_BITS);
	return t->buckets != NULL;
}

void ss_table_finish(struct ss_table *t)
{
	struct ss_buckets *b = atomic_load(&t->buckets), *older;

	for (; b; b = older) {
		older = b->older;
		free(b);
	}
}

static void push(struct ss_buckets *b, struct ss_link *l)
{
	_Atomic(struct ss_link *) *head = &b->head[ss_table_hash(b, atomic_load(&l->key))];

	atomic_store_explicit(&l->next, atomic_load(head), memory_order_release);
	atomic_store_explicit(head, l, memory_order_release);
}

/* Twice as wide. Who is in the old buckets meanwhile may miss something. */
static void widen(struct ss_table *t)
{
	struct ss_buckets *old = atomic_load(&t->buckets);
	struct ss_buckets *b = buckets_new(64 - old->shift + 1);

	if (!b)
		return;
	for (size_t i = 0; i >> (64 - old->shift) == 0; i++) {
		struct ss_link *l = atomic_load(&old->head[i]), *next;

		for (; l; l = next) {
			next = atomic_load(&l->next);
			push(b, l);
		}
	}
	b->older = old;
	atomic_store_explicit(&t->buckets, b, memory_order_release);
}

void ss_table_add(struct ss_table *t, struct ss_link *l, void *key)
{
	struct ss_buckets *b = atomic_load(&t->buckets);

	if (t->count++ >> (64 - b->shift))
		widen(t);
	atomic_store_explicit(&l->key, key, memory_order_release);
	push(atomic_load(&t->buckets), l);
}

void ss_table_remove(struct ss_table *t, struct ss_link *l)
{
	struct ss_buckets *b = atomic_load(&t->buckets);
	_Atomic(struct ss_link *) *at = &b->head[ss_table_hash(b, atomic_load(&l->key))];

	while (atomic_load(at) != l)
		at = &atomic_load(at)->next;
	atomic_store_explicit(at, atomic_load(&l->next), memory_order_release);
	atomic_store_explicit(&l->key, SS_NO_KEY, memory_order_release);
	t->count--;
}
