/* SPDX-License-Identifier: MIT */
/*
 * Collects the statistics of all pools, also of those that have ended, for SOMASHIM_STATS, the
 * live page and the attributes of pools.
 *
 * Locks: one pool's at a time; pools->lock, alone, for the counts of ended pools.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "core/pool/pool_state.h"

/* ---- the counts of one pool ------------------------------------------------------------- */

/* Free bytes in the shelves of streams, and bytes with a mark of ALL. */
static uint64_t pending_bytes(const struct ss_pool *pool)
{
	uint64_t bytes = atomic_load(&pool->all.bytes);

	SS_SHELVES_EACH(q, &pool->shelves)
		bytes += ss_shelf_free_hint(q);
	return bytes;
}

const char *ss_pool_kind(const struct ss_pool *pool, char kind[32])
{
	snprintf(kind, 32, "pool %" PRIu64, ss_pool_number(pool));
	return pool->classic ? "classic" : pool->is_default ? "default" : kind;
}

/* The pool's figures, and those of its core. They are read under the pool's lock, or (`late`)
 * while other threads may change them. `kind`: a buffer for the pool's name. */
__attribute__((no_sanitize("thread"))) static void read_counts(struct ss_pool *pool,
							       struct ss_pool_stats *s, bool late,
							       char kind[32])
{
	const struct ss_memory *m = &pool->mem;
	const struct ss_core *core = m->core;

	*s = pool->st;
	s->allocations += pool->ids;
	SS_SHELVES_ALL(q, &pool->shelves) {
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
	s->used = ss_used(&pool->shelves);
	s->used_high = ss_used_high(&pool->shelves);
	s->in_flight = pending_bytes(pool);
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
	read_counts(pool, &s, false, kind);
	ss_pool_unlock(pool);
	if (!s.allocations)
		return;
	pthread_mutex_lock(&core->pools->lock);
	d->ended_count++;
	to->allocations += s.allocations;
	to->frees += s.frees;
	to->misses += s.misses;
	to->out_of_memory += s.out_of_memory;
	to->reuse_same_stream += s.reuse_same_stream;
	to->reuse_completed += s.reuse_completed;
	to->reuse_event += s.reuse_event;
	to->reuse_implicit += s.reuse_implicit;
	to->reuse_internal += s.reuse_internal;
	to->waits += s.waits;
	to->grown += s.grown;
	to->released_bytes += s.released_bytes;
	to->trims += s.trims;
	to->remaps += s.remaps;
	ss_raise(&to->reserved_high, s.reserved_high);
	ss_raise(&to->used_high, s.used_high);
	pthread_mutex_unlock(&core->pools->lock);
}

/* ---- all pools ------------------------------------------------------------------------------ */

static void visit_device(struct ss_core *core, int dev, const struct ss_stats_visitor *v, void *arg)
{
	const struct ss_device_pools *d = ss_device_pools(core, dev);
	const struct ss_device_stats s = {
		.device = dev,
		.name = core->info[dev].name,
		.total_bytes = core->info[dev].total_bytes,
		.limit = ss_device_memory(core, dev)->limit,
		.ended_count = d->ended_count,
		.ended = &d->ended,
	};

	if (v->device && atomic_load(&d->known))
		v->device(&s, arg);
}

/* Hits are counted under the locks of shelves, each of which would have to be taken from the
 * thread that owns it. So the counts are read without those locks (late). */
bool ss_stats_try(struct ss_core *core, const struct ss_stats_visitor *v, void *arg)
{
	struct ss_pool_stats s;
	bool all = true;
	char kind[32];

	if (pthread_mutex_trylock(&core->pools->lock))
		return false;
	for (int dev = 0; dev < core->devices; dev++)
		visit_device(core, dev, v, arg);
	for (struct ss_pool *pool = core->pools->list; pool; pool = pool->next) {
		if (atomic_load(&pool->counted))
			continue; /* counted among the ended pools */
		if (pthread_mutex_trylock(&pool->mem.lock)) {
			all = false;
			break;
		}
		read_counts(pool, &s, true, kind);
		ss_pool_unlock(pool);
		if (s.allocations || s.reserved)
			v->pool(&s, arg);
	}
	pthread_mutex_unlock(&core->pools->lock);
	return all;
}

/* For the end of the process. exit() may have been called by a signal handler in the very thread
 * that holds a lock. So this function waits a second at most for the lock on the list of pools,
 * and takes no other lock. */
void ss_stats(struct ss_core *core, const struct ss_stats_visitor *v, void *arg)
{
	struct ss_pool_stats s;
	struct timespec end;
	char kind[32];
	bool locked;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	locked = !pthread_mutex_timedlock(&core->pools->lock, &end);
	for (struct ss_pool *pool = core->pools->list; pool; pool = pool->next) {
		if (atomic_load(&pool->counted))
			continue; /* counted among the ended pools */
		read_counts(pool, &s, true, kind);
		if (v->pool && s.allocations)
			v->pool(&s, arg);
	}
	for (int dev = 0; dev < core->devices; dev++)
		visit_device(core, dev, v, arg);
	if (locked)
		pthread_mutex_unlock(&core->pools->lock);
}

uint64_t ss_set_aside(struct ss_core *core, int dev)
{
	return atomic_load(&ss_device_memory(core, dev)->set_aside);
}

static void add(const struct ss_pool_stats *s, void *arg)
{
	struct ss_pool_stats *sum = arg;

	sum->allocations += s->allocations;
	sum->frees += s->frees;
	sum->misses += s->misses;
	sum->used_high += s->used_high;
	sum->reserved_high += s->reserved_high;
	sum->taken_again += ss_minus(s->released_bytes + s->reserved, s->reserved_high);
}

static void add_ended(const struct ss_device_stats *d, void *arg)
{
	add(d->ended, arg);
}

void ss_stats_total(struct ss_core *core, struct ss_pool_stats *out)
{
	static const struct ss_stats_visitor sum = {add_ended, add};

	memset(out, 0, sizeof(*out));
	ss_stats(core, &sum, out);
	out->hits = out->allocations - out->misses;
	out->fences = ss_order_fences(core);
	out->busy_queries = ss_order_busy_queries(core);
	out->driver_calls = core->driver_calls;
	out->memory_calls = core->memory_calls;
	out->decayed_bytes = core->decayed_bytes;
	out->excess_bytes = core->excess_bytes;
	out->driver_ns = core->driver_ns;
}
