/* SPDX-License-Identifier: MIT */
/*
 * Pools as objects: making and destroying them, attributes, access, trimming.
 *
 * A pool's handle is a number that is never used twice, so a dead handle is known as one. How a
 * pool ends is in pool/pool_lifetime.c.
 *
 * Locks: pools->lock for the lists, then one pool's lock at a time.
 */
#include <stddef.h>

#include "core/pool/reclaim.h"
#include "core/pool/release.h"

/* ---- making ------------------------------------------------------------------------ */

enum ss_status ss_pool_set_current(struct ss_core *core, int dev, struct ss_pool *pool)
{
	enum ss_status s = SS_OK;

	if (!ss_pool_default(core, dev))
		return ss_pool_none(core, dev);
	if (!pool)
		return SS_ERR_INVALID;
	/* No pool that is being destroyed becomes current. */
	pthread_mutex_lock(&core->pools->lock);
	if (atomic_load(&pool->dying)) {
		s = SS_ERR_INVALID;
	} else if (pool->mem.dev != dev) {
		s = SS_ERR_DEVICE;
	} else {
		atomic_store(&ss_device_pools(core, dev)->current, pool);
		ss_device_current_changed(core, dev);
	}
	pthread_mutex_unlock(&core->pools->lock);
	return s;
}

enum ss_status ss_pool_create(struct ss_core *core, int dev, uint64_t max_bytes,
			      struct ss_pool **out)
{
	struct ss_pool *pool;

	if (!ss_pool_default(core, dev))
		return ss_pool_none(core, dev);
	pthread_mutex_lock(&core->pools->lock);
	pool = ss_pool_new(core, dev, false, false);
	pthread_mutex_unlock(&core->pools->lock);
	if (!pool)
		return SS_ERR_NOMEM;
	/* Blocks are whole grains, and what is more than any device has is no maximum. */
	pool->mem.max_bytes = max_bytes < 1ull << 62 ? ss_round(max_bytes, SS_GRAIN) : 0;
	*out = pool;
	return SS_OK;
}

void ss_pool_share(struct ss_pool *pool)
{
	/* The only memory that has handles. */
	pool->mem.backing = SS_BACKING_HIP;
	pool->shared = true;
}

bool ss_pool_shared(const struct ss_pool *pool)
{
	return pool->shared;
}

void *ss_pool_handle(const struct ss_pool *pool)
{
	return pool->mem.handle;
}

int ss_pool_device(const struct ss_pool *pool)
{
	return pool->mem.dev;
}

/* ---- attributes --------------------------------------------------------- */

enum ss_status ss_pool_set_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t value)
{
	switch (attr) {
	case SS_ATTR_REUSE_FOLLOW_EVENTS: pool->follow = value != 0; return SS_OK;
	case SS_ATTR_REUSE_OPPORTUNISTIC: pool->opportunistic = value != 0; return SS_OK;
	case SS_ATTR_REUSE_INTERNAL: pool->internal = value != 0; return SS_OK;
	case SS_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		pool->threshold_set = true;
		ss_decay_each_sync(core, pool->mem.dev);
		return SS_OK;
	case SS_ATTR_RESERVED_HIGH:
	case SS_ATTR_USED_HIGH:
		if (value)
			return SS_ERR_INVALID;
		if (attr == SS_ATTR_USED_HIGH)
			ss_used_reset(&pool->shelves, false);
		else
			pool->mem.reserved_high = ss_reserved(pool);
		return SS_OK;
	default: return SS_ERR_INVALID;
	}
}

enum ss_status ss_pool_get_attr(struct ss_pool *pool, enum ss_attr attr, uint64_t *value)
{
	switch (attr) {
	case SS_ATTR_REUSE_FOLLOW_EVENTS: *value = pool->follow; break;
	case SS_ATTR_REUSE_OPPORTUNISTIC: *value = pool->opportunistic; break;
	case SS_ATTR_REUSE_INTERNAL: *value = pool->internal; break;
	case SS_ATTR_RELEASE_THRESHOLD: *value = pool->threshold; break;
	case SS_ATTR_RESERVED_CURRENT: *value = ss_reserved(pool); break;
	case SS_ATTR_RESERVED_HIGH: *value = pool->mem.reserved_high; break;
	case SS_ATTR_USED_CURRENT: *value = ss_used(&pool->shelves); break;
	case SS_ATTR_USED_HIGH: *value = ss_used_high(&pool->shelves); break;
	default: return SS_ERR_INVALID;
	}
	return SS_OK;
}

uint64_t ss_pool_access(const struct ss_pool *pool)
{
	return pool->mem.peers;
}

enum ss_status ss_pool_set_access(struct ss_pool *pool, uint64_t give, uint64_t take)
{
	return ss_memory_set_access(&pool->mem, give, take);
}

void ss_pool_set_readers(struct ss_pool *pool, uint64_t readers, uint64_t others)
{
	atomic_fetch_or(&pool->readers, readers);
	atomic_fetch_and(&pool->readers, ~others);
}

uint64_t ss_pool_readers(const struct ss_pool *pool)
{
	return atomic_load(&pool->readers);
}

/* ---- trim ---------------------------------------------------------------------------- */

/* Is there memory to release, and is that possible without a wait? The streams may not have been
 * queried since their last free, so they are queried now. */
static bool trims_now(struct ss_pool *pool, uint64_t keep)
{
	bool unasked = ss_may_release(pool, SS_IDLE_UNASKED), any;
	struct ss_core *core = ss_core_of(pool);

	/* Memory that could not be unmapped or released earlier is in no free range. */
	any = ss_reserved(pool) > keep && ss_reserved(pool) >= ss_used(&pool->shelves) + SS_FRAME;
	if (!any)
		return unasked;
	if (ss_device_may_release(core, pool->mem.dev, SS_IDLE_QUERIED))
		return ss_others_may_release(pool);
	if (unasked)
		(void)ss_device_ask_busy(core, pool->mem.dev);
	return unasked || ss_may_release(pool, SS_IDLE_FENCED);
}

/* The bytes that a trim which comes too early still has to leave. A trim concerns the memory that
 * is idle when it is called. If a threshold keeps memory at synchronizations, pending memory stays,
 * too. While no stream is known to be busy, all free memory may be idle. */
static uint64_t trim_leaves(struct ss_core *core, struct ss_pool *pool, uint64_t keep)
{
	uint64_t reserved, idle;

	if (!atomic_load(&pool->threshold_set) || !ss_device_ask_busy(core, pool->mem.dev))
		return keep;
	ss_pool_lock(pool);
	ss_reclaim_all(pool);
	reserved = ss_reserved(pool);
	idle = pool->mem.completed.bytes;
	ss_pool_unlock(pool);
	return ss_max(ss_minus(reserved, idle), keep);
}

enum ss_status ss_pool_trim(struct ss_core *core, struct ss_pool *pool, uint64_t keep)
{
	ss_pool_lock(pool);
	pool->st.trims++;
	ss_pool_unlock(pool);
	ss_fences_poll(core, NULL, -1);
	if (trims_now(pool, keep)) {
		ss_pool_release(pool, keep, UINT64_MAX, SS_TRACE_TRIM_CALL);
		return SS_OK;
	}
	/* A release would wait for the device. The trim is remembered, as a threshold for the next
	 * call that waits anyway. */
	keep = trim_leaves(core, pool, keep);
	ss_pool_lock(pool);
	/* Memory that is allocated later is not meant. An earlier trim that is remembered still
	 * counts. */
	if (ss_reserved(pool) > keep) {
		if (!pool->trim_wanted || pool->trim_keep > keep)
			pool->trim_keep = keep;
		pool->trim_wanted = true;
	}
	ss_pool_unlock(pool);
	ss_decay_each_sync(core, pool->mem.dev);
	ss_decay_wake(core);
	return SS_OK;
}

/* ---- destroying ---------------------------------------------------------------------- */

/* Is the pool destroyed, and has memory left of which nothing is in use? */
static bool has_rest(struct ss_pool *pool)
{
	return atomic_load(&pool->dying) && !ss_used(&pool->shelves) && ss_reserved(pool);
}

/* With a pool its memory goes, if nobody has to wait for that. So the device is asked, as for a
 * trim; and what other pools left that were destroyed while it was at work goes, too. */
static void release_destroyed(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	bool any = false;

	ss_fences_poll(core, NULL, -1);
	if (ss_may_release(pool, SS_IDLE_UNASKED))
		ss_pool_release(pool, 0, UINT64_MAX, SS_TRACE_TRIM_RESET);
	SS_POOLS_EACH(rest, core, pool->mem.dev)
		any |= has_rest(rest);
	if (!any || !ss_device_may_release(core, pool->mem.dev, SS_IDLE_FENCED))
		return;
	SS_POOLS_EACH(rest, core, pool->mem.dev)
		if (has_rest(rest) && ss_others_may_release(rest))
			ss_pool_release(rest, 0, UINT64_MAX, SS_TRACE_TRIM_RESET);
}

enum ss_status ss_pool_destroy(struct ss_core *core, struct ss_pool *pool)
{
	int dev = pool->mem.dev; /* the pool may end here */
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_pool *expected = pool;

	pthread_mutex_lock(&core->pools->lock);
	if (pool->is_default || atomic_load(&pool->dying)) {
		pthread_mutex_unlock(&core->pools->lock);
		return SS_ERR_INVALID;
	}
	ss_table_remove(&core->pools->by_handle, &pool->link);
	atomic_compare_exchange_strong(&d->current, &expected, atomic_load(&d->def));
	ss_device_current_changed(core, dev);
	atomic_fetch_add(&pool->users, 1);
	atomic_store_explicit(&pool->dying, true, memory_order_release);
	pthread_mutex_unlock(&core->pools->lock);
	ss_decay_each_sync(core, dev);
	release_destroyed(pool);
	ss_pool_unref(pool);
	ss_decay_wake(core);
	return SS_OK;
}
