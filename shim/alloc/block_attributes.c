/* SPDX-License-Identifier: MIT */
/*
 * What is remembered of single blocks beside what the core knows: that their memory operations
 * must be synchronous, and the number that they were shown under. Ids are never used twice, so
 * a freed block needs no clearing; it is forgotten when twice as many are known as after the
 * last time.
 *
 * Locks: lock (the table); lookups are made under it. Otherwise a leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/hash.h"
#include "shim/shim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct remark {
	uint64_t id;
	void *ptr;
	unsigned number; /* 0: never asked for */
	bool sync;
	UT_hash_handle hh;
} *remarks;
static unsigned kept;
static _Atomic size_t synced; /* with `sync` */

static void forget(struct remark *r)
{
	HASH_DEL(remarks, r);
	if (r->sync)
		atomic_fetch_sub(&synced, 1);
	free(r);
}

static void sweep(void)
{
	struct remark *r, *next;
	struct ss_block_info info;

	HASH_ITER(hh, remarks, r, next)
		if (!ss_lookup(ss_core, r->ptr, &info) || !info.live || info.id != r->id)
			forget(r);
	kept = HASH_COUNT(remarks);
}

static struct remark *find(uint64_t id)
{
	struct remark *r;

	HASH_FIND(hh, remarks, &id, sizeof(id), r);
	return r;
}

/* NULL: no host memory. */
static struct remark *find_or_add(const struct ss_block_info *b)
{
	struct remark *r = find(b->id);

	if (r)
		return r;
	if (HASH_COUNT(remarks) >= 2 * kept + 64)
		sweep();
	r = calloc(1, sizeof(*r));
	if (r) {
		r->id = b->id;
		r->ptr = b->base;
		HASH_ADD(hh, remarks, id, sizeof(r->id), r);
		if (!SS_HASH_HAS(r)) {
			free(r);
			r = NULL;
		}
	}
	return r;
}

bool ss_sync_memops(uint64_t id)
{
	struct remark *r;
	bool sync;

	if (likely(!ss_sync_memops_any()))
		return false;
	pthread_mutex_lock(&lock);
	r = find(id);
	sync = r && r->sync;
	pthread_mutex_unlock(&lock);
	return sync;
}

bool ss_sync_memops_any(void)
{
	return atomic_load_explicit(&synced, memory_order_relaxed);
}

bool ss_sync_memops_set(const struct ss_block_info *b, bool on)
{
	struct remark *r;

	pthread_mutex_lock(&lock);
	r = on ? find_or_add(b) : find(b->id);
	if (r && r->sync != on) {
		r->sync = on;
		atomic_fetch_add(&synced, on ? 1 : -1);
	}
	pthread_mutex_unlock(&lock);
	return r || !on;
}

/* Apart from the runtime's own, which count up from 1. */
unsigned ss_buffer_id_new(void)
{
	static atomic_uint last;

	return (atomic_fetch_add(&last, 1) + 1) | 1u << 31;
}

unsigned ss_buffer_id(const struct ss_block_info *b)
{
	struct remark *r;
	unsigned number = 0;

	pthread_mutex_lock(&lock);
	r = find_or_add(b);
	if (r && !r->number)
		r->number = ss_buffer_id_new();
	if (r)
		number = r->number;
	pthread_mutex_unlock(&lock);
	return number;
}
