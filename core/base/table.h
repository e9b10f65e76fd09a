/* SPDX-License-Identifier: MIT */
/*
 * A hash table from handles to records, which is read without a lock.
 *
 * Records contain a link and are recycled, never freed, so a reader may be at a record while it is
 * removed. The worst result is that the reader does not find a record that is there. So a reader
 * that finds nothing must look again with the writers' lock held.
 */
#ifndef SS_CORE_TABLE_H
#define SS_CORE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/compiler.h"

struct ss_link {
	_Atomic(void *) key;
	_Atomic(struct ss_link *) next;
};

#define ss_container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Ends every chain; its key is its own address. */
extern struct ss_link ss_table_end;

struct ss_buckets {
	uint64_t mask;
	struct ss_buckets *older; /* the smaller ones before; readers may still use them */
	_Atomic(struct ss_link *) head[];
};

struct ss_table {
	_Atomic(struct ss_buckets *) buckets;
	uint64_t count;
};

static inline size_t ss_table_hash(const struct ss_buckets *b, const void *key)
{
	return (uint64_t)(uintptr_t)key * 0x61c88647u >> 32 & b->mask;
}

static inline struct ss_link *ss_table_find(const struct ss_table *t, const void *key)
{
	struct ss_buckets *b = atomic_load_explicit(&t->buckets, memory_order_acquire);
	struct ss_link *l = atomic_load_explicit(&b->head[ss_table_hash(b, key)],
						 memory_order_acquire);

	while (unlikely(atomic_load_explicit(&l->key, memory_order_acquire) != key)) {
		if (l == &ss_table_end)
			return NULL;
		l = atomic_load_explicit(&l->next, memory_order_acquire);
	}
	if (!l)
		__builtin_unreachable(); /* spares callers a test for NULL */
	return l;
}

/* Writers, here and below, hold a lock of the caller's. */
bool ss_table_init(struct ss_table *t);
void ss_table_finish(struct ss_table *t);
/* The record must be complete, and no record of the table may have this key. If host memory is out,
 * the table does not grow and becomes slower. */
void ss_table_add(struct ss_table *t, struct ss_link *l, void *key);
void ss_table_remove(struct ss_table *t, struct ss_link *l);
/* Any record of the table; NULL: it is empty. */
struct ss_link *ss_table_any(struct ss_table *t);

#endif
