/* SPDX-License-Identifier: MIT */
/* The writers' half of base/table.h. Locks: the caller's. */
#include <stdlib.h>

#include "core/base/table.h"

#define FIRST 64

struct ss_link ss_table_end = {.key = &ss_table_end};

static struct ss_buckets *buckets_new(size_t count)
{
	struct ss_buckets *b = malloc(sizeof(*b) + count * sizeof(b->head[0]));

	if (!b)
		return NULL;
	b->mask = count - 1;
	b->older = NULL;
	for (size_t i = 0; i < count; i++)
		atomic_init(&b->head[i], &ss_table_end);
	return b;
}

bool ss_table_init(struct ss_table *t)
{
	t->buckets = buckets_new(FIRST);
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

/* Doubles the number of buckets. Readers in the old ones may miss records meanwhile. */
static void widen(struct ss_table *t)
{
	struct ss_buckets *old = atomic_load(&t->buckets);
	struct ss_buckets *b = buckets_new((old->mask + 1) * 2);

	if (!b)
		return;
	for (size_t i = 0; i <= old->mask; i++) {
		struct ss_link *l = atomic_load(&old->head[i]), *next;

		for (; l != &ss_table_end; l = next) {
			next = atomic_load(&l->next);
			push(b, l);
		}
	}
	b->older = old;
	atomic_store_explicit(&t->buckets, b, memory_order_release);
}

void ss_table_add(struct ss_table *t, struct ss_link *l, void *key)
{
	if (t->count++ > atomic_load(&t->buckets)->mask)
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
	/* From now on no handle matches the record. */
	atomic_store_explicit(&l->key, &ss_table_end, memory_order_release);
	t->count--;
}

struct ss_link *ss_table_any(struct ss_table *t)
{
	struct ss_buckets *b = atomic_load(&t->buckets);

	for (size_t i = 0; i <= b->mask; i++)
		if (atomic_load(&b->head[i]) != &ss_table_end)
			return atomic_load(&b->head[i]);
	return NULL;
}
