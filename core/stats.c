/* SPDX-License-Identifier: MIT */
/*
 * Statistics, and the checks that tests make on the core's own structures.
 *
 * Locks: one pool's at a time; queues below it. core->pools, alone, for the counts of pools that
 * are no more; at exit it is the only one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/internal.h"

struct visitor {
	void (*each)(const struct ss_pool_stats *, void *);
	void *arg;
};

/* Under the pool's lock, or (`late`) of figures that others may be changing. */
__attribute__((no_sanitize("thread")))
static void counted(struct ss_pool *pool, struct ss_pool_stats *s, bool late)
{
	*s = pool->st;
	s->allocations += pool->ids;
	for (struct ss_queue *q = pool->done; q; q = ss_queue_after(pool, q)) {
		if (!late)
			ss_bias_visit(&q->lock);
		s->allocations += q->hits;
		s->frees += q->frees;
		*(q == pool->done ? &s->reuse_completed : &s->reuse_same_stream) += q->hits;
		if (!late)
			ss_bias_unlock(&q->lock);
	}
	s->segments = pool->segment_count;
}

static void tell(struct ss_pool *pool, struct ss_pool_stats *s, const struct visitor *v)
{
	char kind[32];

	s->device = pool->dev;
	snprintf(kind, sizeof(kind), "pool %" PRIu64, (uint64_t)(pool->handle & 0xffffffffffffull));
	s->kind = pool->classic ? "classic" : pool->is_default ? "default" : kind;
	s->backing = ss_backing_name(pool->backing);
	s->hits = s->allocations - s->misses;
	s->reserved = pool->reserved;
	s->reserved_high = pool->reserved_high;
	s->used = ss_pool_used(pool);
	s->used_high = ss_pool_used_high(pool);
	s->fences = pool->core->fences;
	s->driver_calls = pool->core->driver_calls;
	s->driver_ns = pool->core->driver_ns;
	if (s->allocations)
		v->each(s, v->arg);
}

static void visit(struct ss_pool *pool, void *arg)
{
	struct ss_pool_stats s;

	pthread_mutex_lock(&pool->lock);
	counted(pool, &s, false);
	pthread_mutex_unlock(&pool->lock);
	tell(pool, &s, arg);
}

void ss_stats(struct ss_core *core, void (*each)(const struct ss_pool_stats *, void *), void *arg)
{
	struct visitor v = {each, arg};

	ss_pools_each(core, -1, visit, &v);
}

void ss_stats_ended(struct ss_pool *pool)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];
	struct ss_pool_stats s, *to = &d->ended;

	if (atomic_exchange(&pool->counted, true))
		return;
	pthread_mutex_lock(&pool->lock);
	counted(pool, &s, false);
	pthread_mutex_unlock(&pool->lock);
	s.reserved_high = pool->reserved_high;
	s.used_high = ss_pool_used_high(pool);
	if (!s.allocations)
		return;
	pthread_mutex_lock(&pool->core->pools);
	d->ended_count++;
	to->allocations += s.allocations;
	to->frees += s.frees;
	to->misses += s.misses;
	to->out_of_memory += s.out_of_memory;
	to->grown += s.grown;
	to->released_bytes += s.released_bytes;
	if (to->reserved_high < s.reserved_high)
		to->reserved_high = s.reserved_high;
	if (to->used_high < s.used_high)
		to->used_high = s.used_high;
	pthread_mutex_unlock(&pool->core->pools);
}

/* What a destroyed pool, or a reset device, had. */
static void print_ended(const struct ss_device_state *d, int dev, void *arg)
{
	FILE *out = arg;
	const struct ss_pool_stats *s = &d->ended;
	double mib = 1 << 20;

	if (!d->ended_count)
		return;
	fprintf(out, "somashim: device %d, %" PRIu64 " pools that are no more (destroyed or reset)\n",
		dev, d->ended_count);
	fprintf(out, "somashim:   allocations %" PRIu64 ", frees %" PRIu64 ", hits %" PRIu64
		" (%.1f %%), misses %" PRIu64 ", out of memory %" PRIu64 "\n",
		s->allocations, s->frees, s->allocations - s->misses,
		100.0 * (double)(s->allocations - s->misses) / (double)s->allocations,
		s->misses, s->out_of_memory);
	fprintf(out, "somashim:   grown %" PRIu64 " times, the largest reserved %.1f MiB, used %.1f MiB, "
		"given back %.1f MiB\n", s->grown, (double)s->reserved_high / mib,
		(double)s->used_high / mib, (double)s->released_bytes / mib);
}

static void print(const struct ss_pool_stats *s, void *arg)
{
	FILE *out = arg;
	double mib = 1 << 20;

	fprintf(out, "somashim: device %d %s pool (%s)\n", s->device, s->kind, s->backing);
	fprintf(out, "somashim:   allocations %" PRIu64 ", frees %" PRIu64 ", hits %" PRIu64
		" (%.1f %%), misses %" PRIu64 ", out of memory %" PRIu64 "\n",
		s->allocations, s->frees, s->hits,
		s->allocations ? 100.0 * (double)s->hits / (double)s->allocations : 0.0,
		s->misses, s->out_of_memory);
	fprintf(out, "somashim:   reuse: same stream %" PRIu64 ", completed %" PRIu64
		", event %" PRIu64 ", null-stream join %" PRIu64 ", device-side wait %" PRIu64
		"\n", s->reuse_same_stream, s->reuse_completed, s->reuse_event,
		s->reuse_implicit, s->reuse_internal);
	fprintf(out, "somashim:   segments %" PRIu64 " (grown %" PRIu64
		" times), reserved %.1f MiB (high %.1f), used %.1f MiB (high %.1f), "
		"given back %.1f MiB, trims %" PRIu64 ", remaps %" PRIu64 ", waits %" PRIu64 "\n",
		s->segments, s->grown, (double)s->reserved / mib,
		(double)s->reserved_high / mib, (double)s->used / mib,
		(double)s->used_high / mib, (double)s->released_bytes / mib, s->trims,
		s->remaps, s->waits);
}

/* For the end of the process. exit() may have been called by a signal handler in the very thread
 * that holds a lock: so the lock on the list of pools is awaited for a second at most, and no
 * other lock is taken. */
static void each_at_exit(struct ss_core *core, const struct visitor *v,
			 void (*ended)(const struct ss_device_state *, int, void *))
{
	struct ss_pool_stats s;
	struct timespec end;
	bool locked;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	locked = !pthread_mutex_timedlock(&core->pools, &end);
	for (struct ss_pool *pool = core->pool_list; pool; pool = pool->next) {
		counted(pool, &s, true);
		tell(pool, &s, v);
	}
	for (int dev = 0; dev < core->devices; dev++)
		ended(&core->dev[dev], dev, v->arg);
	if (locked)
		pthread_mutex_unlock(&core->pools);
}

void ss_stats_print(struct ss_core *core, FILE *out)
{
	struct visitor v = {print, out};

	each_at_exit(core, &v, print_ended);
	fprintf(out, "somashim: fences recorded %" PRIu64 ", driver calls %" PRIu64 " in %.3f ms, "
		"host memory for metadata %.1f KiB\n",
		(uint64_t)core->fences, (uint64_t)core->driver_calls,
		(double)core->driver_ns / 1e6, (double)ss_host_bytes(core) / 1024);
	fflush(out);
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

static void add_ended(const struct ss_device_state *d, int dev, void *arg)
{
	add(&d->ended, arg);
}

void ss_stats_total(struct ss_core *core, struct ss_pool_stats *out)
{
	struct visitor v = {add, out};

	memset(out, 0, sizeof(*out));
	each_at_exit(core, &v, add_ended);
	out->hits = out->allocations - out->misses;
	out->fences = core->fences;
	out->driver_calls = core->driver_calls;
	out->driver_ns = core->driver_ns;
}

uint64_t ss_host_bytes(const struct ss_core *core)
{
	return sizeof(*core) + atomic_load(&((struct ss_core *)(uintptr_t)core)->host_bytes);
}

/* ---- checks ------------------------------------------------------------- */

struct checker {
	const char *broken;
	uint64_t heap_bytes;
	const struct ss_heap *heap;
	struct ss_pool *pool;
	uint32_t slot;
	uint64_t live, rest;
};

static void check_range(struct ss_block *b, void *arg)
{
	struct checker *c = arg;

	c->heap_bytes += b->size;
	if (atomic_load(&b->state) != SS_BLOCK_FREE)
		c->broken = "a range in a heap is not free";
	if (b->slot != c->slot)
		c->broken = "a range is in the heap of another timeline";
}

static void check_heap(struct checker *c, const struct ss_heap *h, uint32_t slot)
{
	uint64_t before = c->heap_bytes;

	c->slot = slot;
	ss_heap_each(h, check_range, c);
	if (c->heap_bytes - before != h->bytes)
		c->broken = "a heap's bytes do not add up";
}

/* The blocks from b on, which tile [at, ..); where they end. */
static uint64_t check_blocks(struct checker *c, struct ss_segment *seg, struct ss_block *b,
			     uint64_t at, uint32_t lessee)
{
	struct ss_core *core = c->pool->core;

	for (; b; b = b->next) {
		unsigned state = atomic_load(&b->state);

		if (b->addr != at || !b->size || b->size % SS_GRAIN)
			c->broken = "blocks of a segment do not tile it";
		if (b->next && b->next->prev != b)
			c->broken = "neighbours disagree";
		if (ss_lessee(b) != lessee)
			c->broken = "a block is leased to another stream than its neighbours";
		at = b->addr + b->size;
		if (state == SS_BLOCK_LEASED) {
			uint64_t end = check_blocks(c, seg, b->left, b->addr, ss_lessee(b->left));

			if (lessee || !ss_lessee(b->left) || end != at)
				c->broken = "a leased run is not what stands for it";
			continue;
		}
		if (b->seg != seg || ss_block_at(core, seg, b->addr) != b)
			c->broken = "the address map does not know a block";
		if (ss_block_last_start(core, seg, b->addr + b->size - 1) != b)
			c->broken = "the address map does not find a block's last byte";
		if (state == SS_BLOCK_UNUSED)
			c->broken = "an unused descriptor is in a segment";
		*(state == SS_BLOCK_LIVE ? &c->live : &c->rest) +=
			state == SS_BLOCK_HOLE ? 0 : b->size;
	}
	return at;
}

static void check_pool(struct ss_pool *pool, void *arg)
{
	struct checker *c = arg;
	uint64_t bins = 0;

	c->pool = pool;
	c->heap_bytes = c->live = c->rest = 0;
	pthread_mutex_lock(&pool->lock);
	for (struct ss_segment *seg = pool->segments; seg; seg = seg->next)
		if (check_blocks(c, seg, seg->first, seg->base, 0) != seg->base + seg->size)
			c->broken = "blocks do not fill their segment";
	check_heap(c, &pool->clean, SS_SLOT_CLEAN);
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		check_heap(c, &q->own, q->slot);
		if (q->lease)
			check_heap(c, &q->lease->heap, q->slot);
		bins += q->bytes;
	}
	bins += pool->done->bytes;
	for (struct ss_epoch *e = pool->epochs; e; e = e->next)
		bins += e->bytes;
	for (const struct ss_block *b = pool->unmarked; b; b = b->right)
		bins += b->size;
	if (c->live != ss_pool_used(pool))
		c->broken = "used bytes are not the sum of live blocks";
	if (c->rest != bins + c->heap_bytes)
		c->broken = "free bytes are in no heap, bin or epoch, or in two";
	if (atomic_load(&pool->reserved) < c->live + c->rest)
		c->broken = "reserved bytes are fewer than what the segments hold";
	pthread_mutex_unlock(&pool->lock);
}

const char *ss_check(struct ss_core *core)
{
	struct checker c = {0};

	ss_pools_each(core, -1, check_pool, &c);
	return c.broken;
}
