/* SPDX-License-Identifier: MIT */
/*
 * The counts of one pool, and those of pools that are no more.
 *
 * Locks: the pool's; pools->lock, alone, for the counts of pools that are no more.
 */
#include <inttypes.h>
#include <string.h>

#include "core/pool/pool_state.h"
#include "core/statistics.h"

/* What streams hold for themselves, and what waits for many streams. */
static uint64_t in_flight(const struct ss_pool *pool)
{
	uint64_t bytes = atomic_load(&pool->pressure.bytes);

	SS_CACHES_EACH(q, &pool->caches)
		bytes += ss_cache_free_hint(q);
	return bytes;
}

const char *ss_pool_kind(const struct ss_pool *pool, char kind[32])
{
	snprintf(kind, 32, "pool %" PRIu64, ss_pool_number(pool));
	return pool->classic ? "classic" : pool->is_default ? "default" : kind;
}

/* Under the pool's lock, or (`late`) of figures that others may be changing. */
__attribute__((no_sanitize("thread"))) void ss_counts_read(struct ss_pool *pool,
							   struct ss_pool_stats *s, bool late,
							   char kind[32])
{
	const struct ss_memory *m = &pool->mem;
	const struct ss_core *core = m->core;

	*s = pool->st;
	s->allocations += pool->ids;
	SS_CACHES_ALL(q, &pool->caches) {
		if (!late)
			ss_bias_visit(&q->lock);
		s->allocations += q->hits;
		s->frees += q->frees;
		s->reuse_same_stream += q->hits;
		if (!late)
			ss_bias_unlock(&q->lock);
	}
	s->segments = m->segment_count;
	s->grown = m->grown;
	s->released_bytes = m->released_bytes;
	s->remaps = m->moved;
	s->device = pool->mem.dev;
	s->kind = ss_pool_kind(pool, kind);
	s->backing = ss_backing_name(pool->mem.backing);
	s->hits = s->allocations - s->misses;
	s->reserved = ss_reserved(pool);
	s->reserved_high = atomic_load(&pool->mem.reserved_high);
	s->used = ss_used(&pool->caches);
	s->used_high = ss_used_high(&pool->caches);
	s->in_flight = in_flight(pool);
	s->fences = ss_order_fences(core);
	s->driver_calls = core->driver_calls;
	s->memory_calls = core->memory_calls;
	s->driver_ns = core->driver_ns;
}

void ss_stats_ended(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_device_pools *d = ss_device_pools(core, pool->mem.dev);
	struct ss_pool_stats s, *to = &d->ended;
	char kind[32];

	if (atomic_exchange(&pool->counted, true))
		return;
	ss_pool_lock(pool);
	ss_counts_read(pool, &s, false, kind);
	ss_pool_unlock(pool);
	if (!s.allocations)
		return;
	pthread_mutex_lock(&core->pools->lock);
	d->ended_count++;
	to->allocations += s.allocations;
	to->frees += s.frees;
	to->misses += s.misses;
	to->out_of_memory += s.out_of_memory;
	to->grown += s.grown;
	to->released_bytes += s.released_bytes;
	ss_raise(&to->reserved_high, s.reserved_high);
	ss_raise(&to->used_high, s.used_high);
	pthread_mutex_unlock(&core->pools->lock);
}
