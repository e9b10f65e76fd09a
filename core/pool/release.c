/* SPDX-License-Identifier: MIT */
/*
 * Releasing a pool's memory: whether a release is possible, and the release of its idle memory, or
 * of all of it when the pool ends.
 *
 * Locks: the pool's, not held by the caller.
 */
#include "core/pool/reclaim.h"
#include "core/pool/release.h"

/* ---- may it be released? ---------------------------------------------------------------- */

/* Queries every stream of the device, first the one that was busy at the last query. */
static bool queried(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_timeline *busy = atomic_load(&d->busy);
	bool idle = ss_device_ask(core, dev, &busy);

	atomic_store(&d->busy, busy);
	return idle;
}

bool ss_device_may_release(struct ss_core *core, int dev, enum ss_idle_how how)
{
	switch (how) {
	case SS_IDLE_QUERIED: return queried(core, dev);
	case SS_IDLE_FENCED: return ss_device_record_and_ask(core, dev, false);
	case SS_IDLE_JOINED: return ss_device_record_and_ask(core, dev, true);
	default: return false;
	}
}

/* Only a device that was used has streams. */
static bool is_used(struct ss_core *core, int dev)
{
	return atomic_load(&ss_device_pools(core, dev)->known) || ss_order_streams(core, dev);
}

bool ss_others_may_release(const struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	bool may = true;

	if (!ss_memory_maps(&pool->mem) || !core->info[pool->mem.dev].unmap_waits_all)
		return true;
	for (int dev = 0; dev < core->devices && may; dev++)
		may = dev == pool->mem.dev || !is_used(core, dev) ||
		      ss_device_may_release(core, dev, SS_IDLE_QUERIED) ||
		      ss_device_may_release(core, dev, SS_IDLE_FENCED);
	return may;
}

bool ss_may_release(const struct ss_pool *pool, enum ss_idle_how how)
{
	return !ss_release_waits(&pool->mem) ||
	       (ss_device_may_release(ss_core_of(pool), pool->mem.dev, how) &&
		ss_others_may_release(pool));
}

bool ss_device_wait_idle(struct ss_core *core, int dev, uint64_t end)
{
	struct ss_deadline d = ss_deadline_at(ss_now_ms(core), end);

	/* Each question records fences, so the questions become less and less frequent. */
	for (uint64_t ms = 1; !ss_device_may_release(core, dev, SS_IDLE_JOINED); ms *= 2)
		if (!ss_sleep(core, &d, ms))
			return false;
	return true;
}

/* ---- the release -------------------------------------------------------------------------- */

uint64_t ss_pool_release(struct ss_pool *pool, uint64_t target, uint64_t older_than,
			 enum ss_trace_trim_cause cause)
{
	uint64_t given = ss_ipc_release(pool, older_than == UINT64_MAX);

	given += ss_memory_release(&pool->mem, target, older_than);
	if (given) {
		if (cause == SS_TRACE_TRIM_DECAY)
			atomic_fetch_add(&ss_core_of(pool)->decayed_bytes, given);
		else if (cause == SS_TRACE_TRIM_THRESHOLD)
			atomic_fetch_add(&ss_core_of(pool)->excess_bytes, given);
		ss_nearly_full_set(ss_core_of(pool), pool->mem.dev, false);
		ss_trace_trim(cause, given, ss_reserved(pool), pool->mem.dev, pool->mem.handle);
	}
	return given;
}

static void log_drop(struct ss_pool *pool, const struct ss_block *b)
{
	struct ss_core *core = ss_core_of(pool);
	const void *ptr = (void *)(uintptr_t)b->addr;

	ss_tell_block(core, false, ptr, b->request, NULL);
	if (core->recorded)
		ss_trace_drop_at(ss_used_add(pool->shelves.done, -b->size), ptr, pool->mem.dev,
				 pool->mem.handle);
}

/* Live blocks vanish with the device. Pool lock held, the shelves frozen. */
static void log_dropped(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);

	for (struct ss_segment *seg = pool->mem.segments; seg; seg = seg->next)
		for (struct ss_block *b = ss_segment_first(core, seg); b; b = ss_block_next(b))
			if (ss_is_state(b, SS_BLOCK_LIVE))
				log_drop(pool, b);
}

void ss_pool_drop_memory(struct ss_pool *pool, enum ss_drop how)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t reserved = ss_reserved(pool);

	ss_releasing_begin(core, pool->mem.dev);
	ss_pool_lock(pool);
	if (core->watch.block || core->recorded) {
		ss_shelves_freeze(&pool->shelves, true);
		log_dropped(pool);
		ss_shelves_freeze(&pool->shelves, false);
	}
	SS_SHELVES_ALL(q, &pool->shelves)
		ss_shelf_clear(q);
	pool->all.oldest = NULL;
	atomic_store(&pool->all.bytes, 0);
	ss_pool_unlock(pool);
	ss_memory_drop(&pool->mem, how);
	ss_used_reset(&pool->shelves, true);
	pool->kept = 0;
	ss_releasing_end(core, pool->mem.dev, 1);
	if (reserved)
		ss_trace_trim(SS_TRACE_TRIM_RESET, reserved, 0, pool->mem.dev, pool->mem.handle);
}
