/* SPDX-License-Identifier: MIT */
/*
 * Statistics: the counts of each pool, for those who show them.
 *
 * Locks: one pool's at a time; pools->lock, alone, for the counts of pools that are no more.
 */
#include <string.h>
#include <time.h>

#include "core/pool/pool_state.h"
#include "core/statistics.h"

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

/* Hits are counted under the locks of caches, each of which would have to be taken from the thread
 * that owns it. They are read without (late). */
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
			continue; /* among those that are no more */
		if (pthread_mutex_trylock(&pool->mem.lock)) {
			all = false;
			break;
		}
		ss_counts_read(pool, &s, true, kind);
		ss_pool_unlock(pool);
		if (s.allocations || s.reserved)
			v->pool(&s, arg);
	}
	pthread_mutex_unlock(&core->pools->lock);
	return all;
}

/* For the end of the process. exit() may have been called by a signal handler in the very thread
 * that holds a lock. So the lock on the list of pools is awaited for a second at most, and no other
 * lock is taken. */
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
			continue; /* among those that are no more */
		ss_counts_read(pool, &s, true, kind);
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
	out->driver_ns = core->driver_ns;
}
