/* SPDX-License-Identifier: MIT */
/*
 * All pools asleep: the contents of live blocks in virtual memory are saved, and all chunks are
 * released. The pools stay entered and claimed until they are awake, so none of them maps, releases
 * or ends.
 *
 * A hit needs no device. So blocks may become live or free meanwhile: a block that is handed out
 * after the list was made has no contents, and a block that is freed needs none.
 *
 * Locks: none is held.
 */
#include <stdlib.h>

#include "core/backing/device_memory.h"
#include "core/pool/pool_state.h"
#include "core/pool/release.h"
#include "core/sleep.h"
#include "core/statistics.h"

#define SLACK (64ull << 10) /* free bytes between two live blocks that are saved with them */

struct range {
	uint64_t va, size;
	size_t pool; /* of struct ss_asleep */
};

struct ss_asleep {
	struct ss_core *core;
	const struct ss_sleep_store *store;
	struct ss_pool **pool;
	size_t pools;
	struct range *range;
	size_t ranges;
	uint64_t live, bytes; /* of blocks, and to be saved */
};

/* ---- pools ----------------------------------------------------------------------------- */

/* Can the pool's memory be released? Memory that other processes map must stay. */
static bool can_sleep(const struct ss_pool *pool)
{
	return pool->mem.vmm && !pool->shared;
}

/* If access is accepted only without a gap below, idle memory in the middle is not released: the
 * gap would have to be filled again. */
static uint64_t release_idle(struct ss_pool *pool)
{
	if (ss_core_of(pool)->info[pool->mem.dev].access_prefix)
		return 0;
	return ss_memory_release(&pool->mem, 0, UINT64_MAX);
}

/* A thread may just be making the pool's first memory, so the pool is claimed before it is
 * asked. */
static bool enter(struct ss_pool *pool)
{
	if (!ss_memory_claim(&pool->mem, true, NULL))
		return false;
	if (can_sleep(pool)) {
		atomic_store(&pool->mem.sleeps, true);
		return true;
	}
	ss_memory_unclaim(&pool->mem);
	return false;
}

static bool enter_pools(struct ss_asleep *a, struct ss_slept *out)
{
	size_t room = 0;

	SS_POOLS_EACH(pool, a->core, -1)
		room++;
	a->pool = calloc(room + 1, sizeof(*a->pool));
	if (!a->pool)
		return false;
	SS_POOLS_EACH(pool, a->core, -1) {
		out->idle += release_idle(pool);
		/* (A pool that was made meanwhile stays awake.) */
		if (a->pools == room || !ss_pool_ref(pool))
			continue;
		if (enter(pool))
			a->pool[a->pools++] = pool;
		/* Counted when it cannot grow any more: more than that cannot go. */
		out->held += ss_reserved(pool);
		if (!a->pools || a->pool[a->pools - 1] != pool)
			ss_pool_unref(pool);
	}
	return true;
}

static void leave_pools(struct ss_asleep *a)
{
	for (size_t i = 0; i < a->pools; i++) {
		atomic_store(&a->pool[i]->mem.sleeps, false);
		ss_memory_unclaim(&a->pool[i]->mem);
		ss_pool_unref(a->pool[i]);
	}
	free(a->pool);
	free(a->range);
	free(a);
}

/* ---- live blocks ----------------------------------------------------------------------- */

/* The index of the sleeping pool that holds the address. SIZE_MAX: none. */
static size_t pool_of(const struct ss_asleep *a, uint64_t addr)
{
	for (size_t i = 0; i < a->pools; i++)
		if (ss_memory_mapped_for(&a->pool[i]->mem, addr))
			return i;
	return SIZE_MAX;
}

static int by_address(const void *x, const void *y)
{
	const struct range *a = x, *b = y;

	return a->va < b->va ? -1 : a->va > b->va;
}

/* Neighbours become one range. A gap is longer than SLACK, so there is memory between them. */
static void merge(struct ss_asleep *a)
{
	size_t n = 0;

	qsort(a->range, a->ranges, sizeof(*a->range), by_address);
	for (size_t i = 0; i < a->ranges; i++) {
		struct range *last = n ? &a->range[n - 1] : NULL, r = a->range[i];

		if (last && last->pool == r.pool && r.va - (last->va + last->size) < SLACK)
			last->size = r.va + r.size - last->va;
		else
			a->range[n++] = r;
	}
	a->ranges = n;
}

/* Calls `what` for the parts of all ranges that sleep. Parts that others hold stay on the device:
 * they are not restored, because others may write to them meanwhile. The set of parts does not
 * change, since the pools are claimed. */
static bool each_part(struct ss_asleep *a,
		      bool (*what)(void *ctx, int dev, uint64_t va, uint64_t size), void *ctx)
{
	for (size_t i = 0; i < a->ranges; i++) {
		const struct range *r = &a->range[i];
		const struct ss_memory *m = &a->pool[r->pool]->mem;
		uint64_t va = r->va, end = r->va + r->size, size;

		for (; (size = ss_memory_part(m, &va, end)); va += size)
			if (!what(ctx, m->dev, va, size))
				return false;
	}
	return true;
}

static bool add_bytes(void *bytes, int dev, uint64_t va, uint64_t size)
{
	(void)dev;
	(void)va;
	*(uint64_t *)bytes += size;
	return true;
}

static bool list_live(struct ss_asleep *a)
{
	struct ss_block_entry *block = NULL;
	size_t count = ss_blocks_list(a->core, &block), pool;

	if (count == SIZE_MAX)
		return false;
	a->range = calloc(count + 1, sizeof(*a->range));
	for (size_t i = 0; a->range && i < count; i++) {
		pool = pool_of(a, block[i].address);
		if (pool == SIZE_MAX)
			continue;
		a->range[a->ranges++] = (struct range){block[i].address, block[i].rounded, pool};
	}
	free(block);
	if (a->range) {
		(void)each_part(a, add_bytes, &a->live);
		merge(a);
		(void)each_part(a, add_bytes, &a->bytes);
	}
	return a->range;
}

/* ---- to sleep -------------------------------------------------------------------------- */

static bool save(struct ss_asleep *a)
{
	const struct ss_sleep_store *store = a->store;
	bool ok = store->open(store->ctx, a->bytes) && each_part(a, store->save, store->ctx) &&
		  store->flush(store->ctx);

	if (!ok)
		store->close(store->ctx);
	return ok;
}

/* The free bytes that the devices report, of those devices that have pools. */
static uint64_t devices_free(struct ss_core *core)
{
	uint64_t sum = 0, left;

	for (int dev = 0; dev < core->devices; dev++)
		if (atomic_load(&ss_device_pools(core, dev)->known) &&
		    ss_device_left(core, dev, &left))
			sum += left;
	return sum;
}

enum ss_status ss_core_sleep(struct ss_core *core, const struct ss_sleep_store *store,
			     struct ss_asleep **asleep, struct ss_slept *out)
{
	struct ss_asleep *a = calloc(1, sizeof(*a));
	enum ss_status s = SS_ERR_NOMEM;
	uint64_t before;
	bool entered;

	*out = (struct ss_slept){0};
	if (!a)
		return s;
	a->core = core;
	a->store = store;
	before = devices_free(core);
	entered = enter_pools(a, out);
	/* (What the store takes for its copies is no part of it.) */
	out->seen = ss_minus(devices_free(core), before);
	if (entered && list_live(a))
		s = save(a) ? SS_OK : SS_ERR_FAILED;
	if (s != SS_OK) {
		leave_pools(a);
		return s;
	}
	before = devices_free(core);
	for (size_t i = 0; i < a->pools; i++)
		out->exported += ss_memory_exported(&a->pool[i]->mem, &out->by);
	for (size_t i = 0; i < a->pools; i++)
		out->gone += ss_memory_sleep(&a->pool[i]->mem, &out->chunks);
	out->seen += ss_minus(devices_free(core), before);
	out->stays = out->held - out->gone;
	out->live = a->live;
	out->ranges = (uint32_t)a->ranges;
	*asleep = a;
	return SS_OK;
}

/* ---- waking ----------------------------------------------------------------------------- */

static bool lacks(struct ss_asleep *a, int dev)
{
	uint64_t left;

	return ss_device_left(a->core, dev, &left) && left < ss_asleep_bytes(a->core, dev);
}

/* An attempt that fails half way would take memory that others need meanwhile. If there is no
 * room, idle memory of pools that do not sleep is released. No device has work, so that does not
 * wait. */
static bool has_room(struct ss_asleep *a)
{
	for (size_t i = 0; i < a->pools; i++) {
		int dev = a->pool[i]->mem.dev;

		if (!lacks(a, dev))
			continue;
		SS_POOLS_EACH(pool, a->core, dev)
			(void)ss_pool_release(pool, 0, UINT64_MAX, SS_TRACE_TRIM_OOM);
		if (lacks(a, dev))
			return false;
	}
	return true;
}

static bool restore(struct ss_asleep *a)
{
	const struct ss_sleep_store *store = a->store;
	bool ok = each_part(a, store->restore, store->ctx);

	/* All enqueued work must complete before the memory is released again. */
	return store->flush(store->ctx) && ok;
}

enum ss_status ss_core_wake(struct ss_asleep *a)
{
	enum ss_status s = has_room(a) ? SS_OK : SS_ERR_NOMEM;
	uint32_t chunks = 0;
	size_t woken;

	for (woken = 0; s == SS_OK && woken < a->pools; woken++)
		s = ss_memory_wake(&a->pool[woken]->mem);
	if (s == SS_OK && !restore(a))
		s = SS_ERR_FAILED;
	if (s != SS_OK) {
		while (woken--)
			(void)ss_memory_sleep(&a->pool[woken]->mem, &chunks);
		return s;
	}
	a->store->close(a->store->ctx);
	leave_pools(a);
	return SS_OK;
}

bool ss_core_stays(struct ss_core *core, const void *ptr, uint64_t size, const char *by)
{
	struct ss_segment *seg = ss_segment_lock(core, (uintptr_t)ptr);
	struct ss_pool *pool;
	bool any = false, has;

	if (!seg)
		return false;
	pool = seg->pool;
	has = seg->backing == SS_BACKING_VMM && ss_pool_ref(pool);
	ss_pool_unlock(pool);
	if (!has)
		return false;
	if (ss_memory_claim(&pool->mem, true, NULL)) {
		any = ss_memory_export(&pool->mem, (uintptr_t)ptr, size, by);
		ss_memory_unclaim(&pool->mem);
	}
	ss_pool_unref(pool);
	return any;
}

uint64_t ss_asleep_bytes(struct ss_core *core, int dev)
{
	return atomic_load(&ss_device_memory(core, dev)->asleep);
}
