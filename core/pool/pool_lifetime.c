/* SPDX-License-Identifier: MIT */
/*
 * How long a pool lives: who uses it just now, and its end.
 *
 * A destroyed pool goes when nothing of it is live, reserved or in use: a thread that
 * asked the device for memory, or gives some back, does so with no lock held, and would
 * find another pool in its place. So whoever does more to a pool than take or free a block
 * is counted in pool->users, and the last to leave a dying pool ends it.
 *
 * Pool structs are recycled, never freed: a free that races with the end of its pool
 * reads a pool, not garbage. A hit is not counted, as it needs no pool but only a block: where
 * there is one, there is reserved memory, and the pool stays. And should it have looked
 * for its queue before the end and take a block after the next birth, that is at least of
 * the same device: a pool is born again there only.
 *
 * Locks: core->pools. No pool->lock inside.
 */
#include <stdlib.h>

#include "core/grow.h"

bool ss_pool_enter(struct ss_pool *pool)
{
	if (!(atomic_fetch_add(&pool->users, 1) & SS_POOL_GONE))
		return true;
	atomic_fetch_sub(&pool->users, 1);
	return false;
}

/* Dying, unused, and nothing of it left: nobody finds it any more. */
static void end(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	struct ss_pool **at;
	uint32_t nobody = 0;
	bool gone;

	pthread_mutex_lock(&core->pools);
	/* Who enters without the lock looks for a current pool, and that is another. */
	gone = atomic_load(&pool->dying) &&
	       atomic_compare_exchange_strong(&pool->users, &nobody, SS_POOL_GONE);
	if (gone && (ss_pool_used(pool) || atomic_load(&pool->reserved))) {
		atomic_fetch_and(&pool->users, ~SS_POOL_GONE);
		gone = false;
	}
	for (at = &core->pool_list; gone && *at != pool; at = &(*at)->next)
		;
	if (gone)
		*at = pool->next;
	pthread_mutex_unlock(&core->pools);
	if (!gone)
		return;
	ss_stats_ended(pool);
	/* Its addresses go as well before the pool may be born again. */
	ss_pool_drop_memory(pool, true);
	pthread_mutex_lock(&core->pools);
	pool->next = core->dev[pool->dev].spare_pools;
	core->dev[pool->dev].spare_pools = pool;
	pthread_mutex_unlock(&core->pools);
}

void ss_pool_reap(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	bool alive;

	if (!atomic_load(&pool->dying))
		return;
	/* Two last frees at once, each counted in its own queue: one sees both. */
	atomic_thread_fence(memory_order_seq_cst);
	if (ss_pool_used(pool))
		return;
	pthread_mutex_lock(&core->pools);
	alive = atomic_load(&pool->dying) && ss_pool_enter(pool);
	pthread_mutex_unlock(&core->pools);
	if (!alive)
		return;
	if (!ss_release_waits(pool))
		ss_release(pool, 0, UINT64_MAX);
	if (atomic_fetch_sub(&pool->users, 1) == 1)
		end(pool);
}

void ss_pool_leave(struct ss_pool *pool)
{
	if (atomic_fetch_sub(&pool->users, 1) == 1)
		ss_pool_reap(pool);
}

struct ss_pool *ss_pool_current_enter(struct ss_core *core, int dev)
{
	for (;;) {
		struct ss_pool *pool = ss_pool_current(core, dev);

		if (!pool)
			return NULL;
		if (!ss_pool_enter(pool))
			continue;
		if (pool == ss_pool_current(core, dev))
			return pool;
		ss_pool_leave(pool);
	}
}

static struct ss_pool *find(struct ss_core *core, void *handle, bool enter)
{
	uint64_t key = (uintptr_t)handle;
	struct ss_pool *pool;

	if (!ss_pool_is_handle(handle))
		return NULL;
	pthread_mutex_lock(&core->pools);
	HASH_FIND(hh, core->pool_by_handle, &key, sizeof(key), pool);
	if (pool && enter)
		ss_pool_enter(pool);
	pthread_mutex_unlock(&core->pools);
	return pool;
}

struct ss_pool *ss_pool_from_handle(struct ss_core *core, void *handle)
{
	return find(core, handle, false);
}

struct ss_pool *ss_pool_hold(struct ss_core *core, void *handle)
{
	return find(core, handle, true);
}

void ss_pool_let_go(struct ss_pool *pool)
{
	if (pool)
		ss_pool_leave(pool);
}

void ss_pools_each(struct ss_core *core, int dev, void (*each)(struct ss_pool *, void *),
		   void *arg)
{
	struct ss_pool *pool, *few[16], **list = few;
	size_t n = 0, max = 0;

	pthread_mutex_lock(&core->pools);
	for (pool = core->pool_list; pool; pool = pool->next)
		max += dev < 0 || pool->dev == dev;
	if (max > sizeof(few) / sizeof(few[0]))
		list = malloc(max * sizeof(*list));
	for (pool = core->pool_list; list && pool; pool = pool->next)
		if ((dev < 0 || pool->dev == dev) && ss_pool_enter(pool))
			list[n++] = pool;
	pthread_mutex_unlock(&core->pools);
	for (size_t i = 0; i < n; i++) {
		each(list[i], arg);
		ss_pool_leave(list[i]);
	}
	if (list != few)
		free(list);
}
