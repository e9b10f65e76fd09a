/* SPDX-License-Identifier: MIT */
/*
 * An allocation that failed: who is told, and who holds the device's memory.
 *
 * Locks: pool locks one at a time, none across a driver call.
 */
#include "core/pool/request.h"

struct visit {
	const struct ss_oom_visitor *v;
	void *arg;
};

/* Raises *largest to the longest free range of the pool, and tells `visit` (NULL: nobody) how
 * much each stream holds. Returns the bytes that are still pending. Pool lock held. */
static uint64_t survey(struct ss_pool *pool, uint64_t *largest, const struct visit *visit)
{
	uint64_t in_flight = atomic_load(&pool->all.bytes);

	SS_SHELVES_EACH(q, &pool->shelves) {
		uint64_t bytes;

		ss_bias_visit(&q->lock);
		bytes = q->free.bytes;
		SS_INDEX_EACH(b, &q->free)
			ss_raise(largest, b->size);
		ss_bias_unlock(&q->lock);
		if (bytes && visit)
			visit->v->stream(ss_timeline_native(q->tl), bytes, visit->arg);
		in_flight += bytes;
	}
	SS_INDEX_EACH(b, &pool->mem.completed)
		ss_raise(largest, b->size);
	return in_flight;
}

uint64_t ss_largest_free(struct ss_core *core, int device)
{
	uint64_t largest = 0;

	SS_POOLS_EACH(pool, core, device) {
		ss_pool_lock(pool);
		survey(pool, &largest, NULL);
		ss_pool_unlock(pool);
	}
	return largest;
}

static void visit_pool(struct ss_pool *pool, const struct visit *visit)
{
	struct ss_oom_pool p = {
		.kind = pool->classic    ? "classic" :
			pool->is_default ? "default" :
					   "user",
		.backing = ss_backing_name(pool->mem.backing),
	};

	if (!ss_reserved(pool))
		return;
	ss_pool_lock(pool);
	p.in_flight = survey(pool, &p.largest_free, visit);
	p.reserved = ss_reserved(pool);
	p.used = ss_used(&pool->shelves);
	p.completed = pool->mem.completed.bytes;
	p.exported = atomic_load(&pool->kept);
	visit->v->pool(&p, visit->arg);
	ss_pool_unlock(pool);
}

void ss_oom_visit(struct ss_core *core, int dev, const struct ss_oom_visitor *v, void *arg)
{
	const struct ss_device_memory *m = ss_device_memory(core, dev);
	struct ss_oom_device d = {
		.reserved = atomic_load(&m->reserved),
		.limit = m->limit,
		.past_pools = atomic_load(&m->others),
	};
	struct visit visit = {v, arg};

	d.known = SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, dev, &d.free_bytes,
						    &d.total_bytes)) == SS_OK;
	d.total_bytes = ss_max(d.total_bytes, core->info[dev].total_bytes);
	if (!core->drv.limit || !core->drv.limit(core->drv.ctx, d.cause, sizeof(d.cause)))
		d.cause[0] = '\0';
	v->device(&d, arg);
	SS_POOLS_EACH(pool, core, dev)
		visit_pool(pool, &visit);
}

/* A limit of the user or of the program that leaves no room for r; 0: there is none. */
static uint64_t limit_reached(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	const struct ss_device_memory *d = ss_device_memory(ss_core_of(pool), pool->mem.dev);
	uint64_t max = atomic_load(&pool->mem.max_bytes);

	if (max && ss_used(&pool->shelves) + r->size > max)
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
		     ss_reserved(pool), ss_used(&pool->shelves), pool->mem.dev, pool->mem.handle,
		     r->tl ? ss_timeline_native(r->tl) : NULL);
}

void ss_oom_report(const struct ss_request *r)
{
	const struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	const struct ss_oom oom = {
		.device = pool->mem.dev,
		.size = r->size,
		.max_size = atomic_load(&pool->mem.max_bytes),
		.refused = r->refused,
		.tried = r->tried,
	};

	if (ss_trace_on())
		record(r);
	if (core->watch.out_of_memory)
		core->watch.out_of_memory(core, &oom);
}
