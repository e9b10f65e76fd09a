/* SPDX-License-Identifier: MIT */
/*
 * How much of a pool's memory is on its way back: bytes in epochs, by the thread that freed them,
 * and how long epochs take.
 *
 * Locks: the pool's, held by the caller.
 */
#include "core/pool/reclaim.h"

/* ---- who freed what ----------------------------------------------------------------- */

/* Threads are numbered as they come. More than SS_FREERS share. */
unsigned ss_pressure_self(void)
{
	static _Thread_local unsigned number __attribute__((tls_model("initial-exec")));
	static _Atomic unsigned threads;

	if (!number)
		number = atomic_fetch_add(&threads, 1) % SS_FREERS + 1;
	return number - 1;
}

void ss_pressure_freed(struct ss_pool *pool, struct ss_epoch *e, uint64_t size)
{
	struct ss_freer *f = &pool->pressure.by[ss_pressure_self()];

	f->bytes += size;
	f->last = ss_now_ms(ss_core_of(pool));
	e->by[ss_pressure_self()] += size;
	atomic_fetch_add(&pool->pressure.bytes, size);
}

void ss_pressure_completed(struct ss_pool *pool, const struct ss_epoch *e)
{
	uint64_t most = 2 * pool->pressure.took + 1;
	uint64_t took = ss_now_ms(ss_core_of(pool)) - e->since;

	/* Nobody may have looked for long, so one epoch at most doubles the estimate. */
	pool->pressure.took = ss_min(took, most);
	pool->pressure.completed++;
	for (unsigned i = 0; i < SS_FREERS; i++) {
		pool->pressure.by[i].bytes -= e->by[i];
		atomic_fetch_sub(&pool->pressure.bytes, e->by[i]);
	}
}

/* ---- asking ---------------------------------------------------------------------------- */

static bool is_asked(struct ss_pool *pool, const struct ss_mark *m)
{
	struct ss_core *core = ss_core_of(pool);

	return ss_pool_mark_done(pool, m->slot, m->n) ||
	       ss_fence_asked(core, ss_slot(core, m->slot), m->n);
}

bool ss_pressure_asked(struct ss_pool *pool, struct ss_epoch *e)
{
	if (!is_asked(pool, &e->mark[e->unasked]))
		return false;
	for (uint32_t i = 0; i < e->count; i++)
		if (!is_asked(pool, &e->mark[i])) {
			e->unasked = i;
			return false;
		}
	return !e->wide;
}

bool ss_pressure_due(struct ss_pool *pool)
{
	uint64_t open = 0;

	if (!pool->classic || ss_nearly_full(ss_core_of(pool), pool->mem.dev))
		return true;
	/* A fence for every stream is not cheap, but what comes back in large pieces comes late: so
	 * there is one when a fifth of what is under way has none. Behind an epoch with fences the
	 * older ones have theirs. */
	for (struct ss_epoch *e = pool->epochs; e && !ss_pressure_asked(pool, e); e = e->next)
		open += e->bytes;
	return 5 * open >= atomic_load(&pool->pressure.bytes);
}
