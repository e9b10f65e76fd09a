/* SPDX-License-Identifier: MIT */
/*
 * Statistics: the counts of each pool, and the table of them.
 *
 * Locks: one pool's at a time; pools->lock, alone, for the counts of pools that are no more.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "core/pool/pool_state.h"

#define MIB ((double)(1 << 20))

static void visit_device(struct ss_core *core, int dev, const struct ss_stats_visitor *v, void *arg)
{
	const struct ss_device_pools *d = ss_device_pools(core, dev);
	const struct ss_device_stats s = {
		.device = dev, .name = core->info[dev].name,
		.total_bytes = core->info[dev].total_bytes,
		.limit = ss_device_memory(core, dev)->limit,
		.ended_count = d->ended_count, .ended = &d->ended,
	};

	if (atomic_load(&d->known))
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

/* ---- the table --------------------------------------------------------------------- */

static void print_counts(const struct ss_pool_stats *s, FILE *out)
{
	uint64_t hits = s->allocations - s->misses;

	fprintf(out, "somashim:   allocations %" PRIu64 ", frees %" PRIu64 ", hits %" PRIu64
		" (%.1f %%), misses %" PRIu64 ", out of memory %" PRIu64 "\n",
		s->allocations, s->frees, hits,
		s->allocations ? 100.0 * (double)hits / (double)s->allocations : 0.0, s->misses,
		s->out_of_memory);
}

static void print_ended(const struct ss_device_pools *d, int dev, void *arg)
{
	const struct ss_pool_stats *s = &d->ended;
	FILE *out = arg;

	if (!d->ended_count)
		return;
	fprintf(out, "somashim: device %d, %" PRIu64 " pools that are no more (destroyed or reset)\n",
		dev, d->ended_count);
	print_counts(s, out);
	fprintf(out, "somashim:   grown %" PRIu64 " times, the largest reserved %.1f MiB, used %.1f MiB, "
		"given back %.1f MiB\n", s->grown, (double)s->reserved_high / MIB,
		(double)s->used_high / MIB, (double)s->released_bytes / MIB);
}

/* Which steps of the ladder found memory for what was no hit, or made some. */
static void print_ladder(const struct ss_pool_stats *s, FILE *out)
{
	const char *before = "somashim:   steps that helped a miss: ";

	for (unsigned i = 0; i < SS_LADDER_ROWS; i++)
		if (s->served[i]) {
			fprintf(out, "%s%s %" PRIu64, before, ss_ladder_row(i), s->served[i]);
			before = ", ";
		}
	if (*before == ',')
		fputc('\n', out);
}

static void print_pool(const struct ss_pool_stats *s, void *arg)
{
	FILE *out = arg;

	fprintf(out, "somashim: device %d %s pool (%s)\n", s->device, s->kind, s->backing);
	print_counts(s, out);
	fprintf(out, "somashim:   reuse: same stream %" PRIu64 ", completed %" PRIu64
		", event %" PRIu64 ", null-stream join %" PRIu64 ", device-side wait %" PRIu64
		"\n", s->reuse_same_stream, s->reuse_completed, s->reuse_event,
		s->reuse_implicit, s->reuse_internal);
	fprintf(out, "somashim:   segments %" PRIu64 " (grown %" PRIu64
		" times), reserved %.1f MiB (high %.1f), used %.1f MiB (high %.1f), "
		"given back %.1f MiB, trims %" PRIu64 ", remaps %" PRIu64 ", waits %" PRIu64 "\n",
		s->segments, s->grown, (double)s->reserved / MIB,
		(double)s->reserved_high / MIB, (double)s->used / MIB,
		(double)s->used_high / MIB, (double)s->released_bytes / MIB, s->trims,
		s->remaps, s->waits);
	print_ladder(s, out);
}

/* For the end of the process. exit() may have been called by a signal handler in the very thread
 * that holds a lock. So the lock on the list of pools is awaited for a second at most, and no other
 * lock is taken. */
static void each_at_exit(struct ss_core *core, void (*each)(const struct ss_pool_stats *, void *),
			 void (*ended)(const struct ss_device_pools *, int, void *), void *arg)
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
		if (s.allocations)
			each(&s, arg);
	}
	for (int dev = 0; ended && dev < core->devices; dev++)
		ended(ss_device_pools(core, dev), dev, arg);
	if (locked)
		pthread_mutex_unlock(&core->pools->lock);
}

uint64_t ss_set_aside(struct ss_core *core, int dev)
{
	return atomic_load(&ss_device_memory(core, dev)->set_aside);
}

void ss_stats_print(struct ss_core *core, FILE *out)
{
	each_at_exit(core, print_pool, print_ended, out);
	for (int dev = 0; dev < core->devices; dev++)
		if (ss_set_aside(core, dev))
			fprintf(out, "somashim: device %d, set aside %.1f MiB (the runtime gives no access to it, "
				"and does not unmap it)\n", dev, (double)ss_set_aside(core, dev) / MIB);
	fprintf(out, "somashim: fences recorded %" PRIu64 ", busy streams asked %" PRIu64
		", driver calls %" PRIu64 " in %.3f ms "
		"(the sum over all threads), host memory for metadata %.1f KiB\n",
		ss_order_fences(core), ss_order_busy_queries(core), (uint64_t)core->driver_calls,
		(double)core->driver_ns / 1e6, (double)ss_host_bytes(core) / 1024);
	fflush(out);
}

void ss_stats(struct ss_core *core, void (*each)(const struct ss_pool_stats *, void *), void *arg)
{
	each_at_exit(core, each, NULL, arg);
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

static void add_ended(const struct ss_device_pools *d, int dev, void *arg)
{
	add(&d->ended, arg);
}

void ss_stats_total(struct ss_core *core, struct ss_pool_stats *out)
{
	memset(out, 0, sizeof(*out));
	each_at_exit(core, add, add_ended, out);
	out->hits = out->allocations - out->misses;
	out->fences = ss_order_fences(core);
	out->busy_queries = ss_order_busy_queries(core);
	out->driver_calls = core->driver_calls;
	out->memory_calls = core->memory_calls;
	out->driver_ns = core->driver_ns;
}
