/* SPDX-License-Identifier: MIT */
/*
 * hipMalloc on a device that lags: when to ask how far its streams are, and when to wait for them
 * rather than to grow.
 *
 * Where hipFree does not wait, a host that is ahead of the device frees faster than the device
 * lets go, and an allocator that never waits would hold a block for every free under way. So
 * beyond a bound an allocation waits for the oldest of them. That costs nothing as long as the
 * device has the rest to do; the real hipFree would have waited for all of it.
 *
 * Each thread that frees has a share of what may be under way. Otherwise the first thread to wake
 * up would take all that came free, and the streams of the others would stand still until the
 * work that it enqueues then is done, too.
 *
 * The work in front of a fence may itself wait for what this thread does next. So a wait is not
 * much longer than work took lately, and each that was for nothing makes the next ones rarer.
 *
 * Locks: the pool's. None while waiting.
 */
#include "core/pool/request.h"

/* hipMalloc waits if more than the largest of these is under way: */
#define FLOOR (32ull << 20)  /* bytes; growing by less does not matter */
#define PER_STREAM 3         /* blocks of the size asked for on each stream; it uses a fourth */
#define HIGH_PART 8          /* this part of the used peak */
/* It waits at most four times as long as an epoch took lately, and these: */
#define SHORTEST_MS 50       /* more: a busy machine alone may take that */
#define LONGEST_MS 2000      /* in all */
#define RAREST 16            /* after waits for nothing, at least one allocation in 2^16 waits */
/* A nap in a wait: this part of what an epoch took lately, between the two limits. */
#define NAP_PART 8
#define NAP_US 50
#define LONGEST_NAP_US 1000
#define FITS_MOST 16         /* an allocation looks so often at memory that another thread added */

void ss_backpressure_never(struct ss_core *core)
{
	atomic_store(&core->pools->no_backpressure, true);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static uint64_t limit_us(const struct ss_pool *pool)
{
	return 1000 * ss_min(4 * pool->pressure.took + SHORTEST_MS, LONGEST_MS);
}

static uint64_t nap_us(const struct ss_pool *pool)
{
	return ss_min(ss_max(1000 * pool->pressure.took / NAP_PART, NAP_US), LONGEST_NAP_US);
}

/* Will a fence tell when the oldest epoch has completed? */
static bool is_told(struct ss_pool *pool)
{
	const struct ss_epoch *e = pool->epochs ? pool->epochs->prev : NULL;

	return e && ss_pressure_asked(pool, e) && !ss_order_capturing(ss_core_of(pool));
}

/* Bytes that may be under way. */
static uint64_t bound(struct ss_pool *pool, uint64_t size)
{
	uint64_t streams = ss_order_streams(ss_core_of(pool), pool->mem.dev);
	uint64_t bytes = PER_STREAM * ss_max(streams, 1) * size;

	return ss_max(ss_max(bytes, ss_used_high(&pool->caches) / HIGH_PART), FLOOR);
}

/* Is it better to wait than to grow, or (`fits`) than to take what other threads have a share in?
 * Pool lock held. */
static bool better_wait(struct ss_pool *pool, uint64_t size, bool fits)
{
	const struct ss_freer *by = pool->pressure.by, *mine = &by[ss_pressure_self()];
	uint64_t all = atomic_load(&pool->pressure.bytes), share, now, others = 0;

	if (all < FLOOR / 2 || (fits && !mine->bytes) || !is_told(pool))
		return false;
	if (!fits)
		return all >= bound(pool, size);
	now = ss_now_ms(ss_core_of(pool)) + 1;
	for (unsigned i = 0; i < SS_FREERS; i++)
		/* A thread with nothing under way may be waiting for it. */
		others += &by[i] != mine && by[i].last &&
			  (by[i].bytes || now - by[i].last <= limit_us(pool) / 1000);
	share = bound(pool, size) / (others + 1);
	return mine->bytes >= share &&
	       pool->mem.clean.bytes + (all - mine->bytes) < size + others * share;
}

/* Does it fit, with what has completed by now? Pool lock held, dropped meanwhile. */
static bool fits_now(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;

	ss_pool_unlock(pool);
	ss_fence_poll(ss_core_of(pool), NULL, -1);
	ss_pool_lock(pool);
	ss_reclaim_epochs(pool);
	return ss_index_best(&pool->mem.clean, r->size, r->align) != NULL;
}

/* Naps until it is no longer better to wait. False: that takes too long. Pool lock held, dropped
 * meanwhile. */
static bool nap_while_better(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	struct ss_pressure *w = &r->pressure;
	uint64_t start = w->us, completed = pool->pressure.completed, us;

	while (better_wait(pool, r->size, fits_now(r))) {
		/* As long as epochs complete, the device does not stand still. */
		if (completed != pool->pressure.completed) {
			completed = pool->pressure.completed;
			start = w->us;
		}
		if (w->us - start >= limit_us(pool) || w->us >= LONGEST_MS * 1000)
			return false;
		pool->st.waits += !w->us;
		us = nap_us(pool);
		ss_pool_unlock(pool);
		w->us += core->drv.nap(core->drv.ctx, (unsigned)us) + 1;
		ss_pool_lock(pool);
	}
	return true;
}

/* A wait was for nothing: the next allocations do without. Pool lock held. */
static void failed(struct ss_pool *pool)
{
	unsigned times = pool->pressure.failed;

	pool->pressure.skip = (1u << times) - 1;
	pool->pressure.failed += times < RAREST;
}

/* Waits, unless waits were for nothing lately. False: it was skipped, or for nothing, and r does not
 * wait again. Pool lock held, dropped meanwhile. */
static bool try_wait(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	uint64_t before = r->pressure.us;
	unsigned times = pool->pressure.failed;

	if (pool->pressure.skip && !before) {
		pool->pressure.skip--;
	} else if (nap_while_better(r)) {
		if (r->pressure.us > before)
			pool->pressure.failed /= 2;
		return true;
	} else if (times == pool->pressure.failed) {
		/* Threads that waited together have failed once. */
		failed(pool);
	}
	r->pressure.over = true;
	return false;
}

/* Waits where that is better. True: it is worth looking again before the pool grows. */
static bool wait_if_better(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	struct ss_pressure *w = &r->pressure;
	uint64_t before = w->us, begin = ss_trace_wait_begin();
	bool again, fits;

	if (!pool->classic || r->tl || atomic_load(&pool->pressure.bytes) < FLOOR / 2 ||
	    !core->drv.nap || atomic_load(&core->pools->no_backpressure))
		return false;
	ss_pool_lock(pool);
	/* Another thread may have seen epochs complete since this request looked last. */
	again = w->completed != pool->pressure.completed;
	fits = ss_index_best(&pool->mem.clean, r->size, r->align) != NULL;
	/* What another thread added this one may take. */
	if (fits && w->fitted < FITS_MOST && better_wait(pool, r->size, false)) {
		w->fitted++;
		again = true;
	}
	if (!w->over && better_wait(pool, r->size, fits))
		again |= try_wait(r);
	w->completed = pool->pressure.completed;
	ss_pool_unlock(pool);
	if (w->us > before)
		ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, pool->mem.dev, NULL);
	return again && !w->over;
}

enum ss_next ss_step_share(struct ss_request *r)
{
	wait_if_better(r);
	return SS_NEXT;
}

enum ss_next ss_step_wait(struct ss_request *r)
{
	return wait_if_better(r) ? SS_AGAIN : SS_NEXT;
}

bool ss_pressure_idle(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t begin;
	bool skip, idle;

	if (!pool->classic || atomic_load(&core->pools->no_backpressure) || ss_order_capturing(core))
		return false;
	ss_pool_lock(pool);
	skip = pool->pressure.skip;
	pool->pressure.skip -= skip;
	ss_pool_unlock(pool);
	if (skip)
		return false;
	begin = ss_trace_wait_begin();
	idle = ss_idle_soon(core, pool->mem.dev, ss_now_ms(core) + core->opt.oom_wait_ms);
	ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, pool->mem.dev, NULL);
	if (!idle) {
		ss_pool_lock(pool);
		failed(pool);
		ss_pool_unlock(pool);
	}
	return idle;
}
