/* SPDX-License-Identifier: MIT */
/*
 * The report on an allocation that failed: who holds the device's memory, and what was tried.
 *
 * Locks: pool locks one at a time, none across a driver call.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/pool/oom_limiter.h"
#include "core/pool/request.h"

static void larger(struct ss_block *b, void *largest)
{
	ss_raise(largest, b->size);
}

/* Raises *largest to the longest free range of the pool, and prints (out: NULL) what each stream holds. Returns the bytes
 * that have not completed. Pool lock held. */
static uint64_t survey(struct ss_pool *pool, uint64_t *largest, FILE *out)
{
	uint64_t in_flight = 0;

	SS_CACHES_EACH(q, &pool->caches) {
		uint64_t bytes;

		ss_bias_visit(&q->lock);
		ss_arena_drain(q);
		bytes = q->own.bytes + q->foreign.bytes;
		ss_index_each(&q->own, larger, largest);
		ss_index_each(&q->foreign, larger, largest);
		ss_bias_unlock(&q->lock);
		if (bytes && out)
			fprintf(out, "somashim:     stream %p holds %" PRIu64 " free bytes\n",
				ss_timeline_native(q->tl), bytes);
		in_flight += bytes;
	}
	for (struct ss_epoch *e = pool->epochs; e; e = e->next)
		in_flight += e->bytes;
	ss_index_each(&pool->mem.completed, larger, largest);
	return in_flight;
}

static void raise_largest(struct ss_pool *pool, void *largest)
{
	ss_pool_lock(pool);
	survey(pool, largest, NULL);
	ss_pool_unlock(pool);
}

uint64_t ss_largest_free(struct ss_core *core, int device)
{
	uint64_t largest = 0;

	ss_pools_each(core, device, raise_largest, &largest);
	return largest;
}

static void report_pool(struct ss_pool *pool, void *arg)
{
	uint64_t in_flight, largest = 0;
	FILE *out = arg;

	if (!ss_reserved(pool))
		return;
	ss_pool_lock(pool);
	in_flight = survey(pool, &largest, out);
	fprintf(out, "somashim:   %s pool (%s): reserved %" PRIu64 ", used %" PRIu64
		", in flight %" PRIu64 ", completed %" PRIu64 ", exported %" PRIu64
		", largest free run %" PRIu64 "\n",
		pool->classic ? "classic" : pool->is_default ? "default" : "user",
		ss_backing_name(pool->mem.backing), ss_reserved(pool), ss_used(&pool->caches),
		in_flight, pool->mem.completed.bytes, atomic_load(&pool->kept), largest);
	ss_pool_unlock(pool);
}

static void report_device(const struct ss_request *r, FILE *out)
{
	struct ss_core *core = ss_core_of(r->pool);
	int dev = r->pool->mem.dev;
	const struct ss_device_memory *d = ss_device_memory(core, dev);
	uint64_t left = 0, total = 0, mine = atomic_load(&d->reserved);
	char limit[160];

	fprintf(out, "somashim: out of memory: %" PRIu64 " bytes on device %d; ", r->size, dev);
	if (SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, dev, &left, &total)) == SS_OK)
		fprintf(out, "the device has %" PRIu64 " of %" PRIu64
			" free, this process's pools hold %" PRIu64 ", others about %" PRIu64 "\n",
			left, total, mine, ss_minus(total, left + mine));
	else
		fprintf(out, "what the device has free it does not say, this process's pools hold %"
			PRIu64 "\n", mine);
	if (d->limit)
		fprintf(out, "somashim:   SOMASHIM_LIMIT is %" PRIu64 "; past the pools the process took %" PRIu64 "\n",
			d->limit, atomic_load(&d->others));
	if (core->drv.limit && core->drv.limit(core->drv.ctx, limit, sizeof(limit)))
		fprintf(out, "somashim:   a limit was hit: %s\n", limit);
	if (r->refused)
		fputs("somashim:   the driver failed, and did not say that memory is short\n", out);
	if (r->pool->mem.max_bytes)
		fprintf(out, "somashim:   the pool's maxSize is %" PRIu64 "\n",
			atomic_load(&r->pool->mem.max_bytes));
}

static void report_count(const struct ss_request *r, uint64_t count)
{
	FILE *log = ss_core_of(r->pool)->log;

	fprintf(log, "somashim: out of memory: %" PRIu64 " times so far, this time %" PRIu64
		" bytes on device %d\n", count, r->size, r->pool->mem.dev);
	fflush(log);
}

/* A limit that the user or the program set, and which leaves no room for r; 0: none. */
static uint64_t limit_reached(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	const struct ss_device_memory *d = ss_device_memory(ss_core_of(pool), pool->mem.dev);
	uint64_t max = atomic_load(&pool->mem.max_bytes);

	if (max && ss_used(&pool->caches) + r->size > max)
		return max;
	return d->limit && r->size + ss_counted(d) > d->limit ? d->limit : 0;
}

static void record(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t limit = limit_reached(r), left = 0;

	if (!limit)
		SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->mem.dev, &left, NULL));
	ss_trace_oom(limit ? SS_TRACE_LIMIT : SS_TRACE_OOM, r->size, limit ? limit : left,
		     ss_reserved(pool), ss_used(&pool->caches), pool->mem.dev, pool->mem.handle,
		     r->tl ? ss_timeline_native(r->tl) : NULL);
}

/* In memory first, so that reports of several threads do not mix. Where there is no host memory
 * for that either, it is written as it comes. */
void ss_oom_report(const struct ss_request *r)
{
	static _Atomic uint64_t failures; /* of this process, which has one log */
	struct ss_core *core = ss_core_of(r->pool);
	enum ss_oom_print print;
	char *text = NULL;
	size_t length = 0;
	uint64_t count;
	FILE *out;

	if (ss_trace_on())
		record(r);
	if (!core->log)
		return;
	print = ss_oom_print(core->opt.oom_reports, &failures, &count);
	if (print == SS_OOM_PRINT_COUNT)
		report_count(r, count);
	if (print == SS_OOM_PRINT_COUNT || print == SS_OOM_PRINT_NOTHING)
		return;
	out = open_memstream(&text, &length);
	if (!out)
		out = core->log;
	report_device(r, out);
	ss_pools_each(core, r->pool->mem.dev, report_pool, out);
	fputs("somashim:   tried: ", out);
	if (r->tried)
		ss_ladder_tried(r, out);
	else
		fputs("nothing, since it is more than there can ever be", out);
	fputc('\n', out);
	if (print == SS_OOM_PRINT_LAST)
		fputs("somashim:   further failures are only counted "
		      "(SOMASHIM_OOM_REPORTS=all reports each)\n", out);
	if (out != core->log)
		fclose(out);
	if (text)
		fputs(text, core->log);
	fflush(core->log);
	free(text);
}
