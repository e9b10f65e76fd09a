/* SPDX-License-Identifier: MIT */
/*
 * A table of block attributes (block_attributes.h). Ids of blocks are never used twice, so a free
 * need not clear anything. Entries of freed blocks are dropped when the table has twice the entries
 * that the last sweep left.
 *
 * Locks: lock (the table). The core is asked about blocks under it; otherwise a leaf.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "driver/rocm/guard.h"
#include "shim/alloc/block_attributes.h"
#include "shim/process/service.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct attributes {
	uint64_t id;
	void *ptr;
	unsigned buffer_id; /* 0: never asked for */
	bool sync;
	UT_hash_handle hh;
} * table;
static unsigned swept_count;  /* entries after the last sweep */
static _Atomic size_t synced; /* entries with `sync` */

static void forget(struct attributes *a)
{
	HASH_DEL(table, a);
	if (a->sync)
		atomic_fetch_sub(&synced, 1);
	free(a);
}

static void sweep(void)
{
	struct attributes *a, *next;
	struct ss_block_info info;

	HASH_ITER(hh, table, a, next)
		if (!ss_lookup(ss_core, a->ptr, &info) || !info.live || info.id != a->id)
			forget(a);
	swept_count = HASH_COUNT(table);
}

static struct attributes *find(uint64_t id)
{
	struct attributes *a;

	HASH_FIND(hh, table, &id, sizeof(id), a);
	return a;
}

/* NULL: out of host memory. */
static struct attributes *find_or_add(const struct ss_block_info *b)
{
	struct attributes *a = find(b->id);

	if (a)
		return a;
	if (HASH_COUNT(table) >= 2 * swept_count + 64)
		sweep();
	a = calloc(1, sizeof(*a));
	if (a) {
		a->id = b->id;
		a->ptr = b->base;
		HASH_ADD(hh, table, id, sizeof(a->id), a);
		if (!SS_HASH_HAS(a)) {
			free(a);
			a = NULL;
		}
	}
	return a;
}

bool ss_sync_memops(uint64_t id)
{
	struct attributes *a;
	bool sync;

	if (likely(!ss_sync_memops_any()))
		return false;
	pthread_mutex_lock(&lock);
	a = find(id);
	sync = a && a->sync;
	pthread_mutex_unlock(&lock);
	return sync;
}

bool ss_sync_memops_any(void)
{
	return atomic_load_explicit(&synced, memory_order_relaxed);
}

bool ss_sync_memops_set(const struct ss_block_info *b, bool on)
{
	struct attributes *a;

	pthread_mutex_lock(&lock);
	a = on ? find_or_add(b) : find(b->id);
	if (a && a->sync != on) {
		a->sync = on;
		atomic_fetch_add(&synced, on ? 1 : -1);
	}
	pthread_mutex_unlock(&lock);
	return a || !on;
}

/* The top bit distinguishes our ids from the runtime's, which count up from 1. */
unsigned ss_buffer_id_new(void)
{
	static atomic_uint last;

	return (atomic_fetch_add(&last, 1) + 1) | 1u << 31;
}

unsigned ss_buffer_id(const struct ss_block_info *b)
{
	struct attributes *a;
	unsigned id = 0;

	pthread_mutex_lock(&lock);
	a = find_or_add(b);
	if (a && !a->buffer_id)
		a->buffer_id = ss_buffer_id_new();
	if (a)
		id = a->buffer_id;
	pthread_mutex_unlock(&lock);
	return id;
}
