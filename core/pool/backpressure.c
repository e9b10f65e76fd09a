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
 * Locks: the pool's. None while waiting.
 */
#include "core/pool/release.h"
#include "core/pool/request.h"

/* hipMalloc waits if more than the largest of these is under way: */
#define FLOOR (32ull << 20)  /* bytes; growing by less does not matter */
#define PER_STREAM 3         /* blocks of the size asked for on each stream; it uses a fourth */
#define HIGH_PART 8          /* this part of the used peak */
/* A thread that freed since then, and as long ago as four epochs took, has a share */
#define LATELY_MS 50
#define FITS_MOST 16         /* an allocation looks so often at memory that another thread added */

static uint64_t lately_ms(const struct ss_pool *pool)
{
	return 4 * pool->pressure.took + LATELY_MS;
}

/* Will a fence tell when the oldest epoch has completed? */
static bool is_told(struct ss_pool *pool)
{
	struct ss_epoch *e = pool->epochs ? pool->epochs->prev : NULL;

	return e && ss_pressure_asked(pool, e) && !ss_order_capturing(ss_core_of(pool));
}

/* Bytes that may be under way. */
static uint64_t bound(struct ss_pool *pool, uint64_t size)
{
	uint64_t streams = ss_order_streams(ss_core_of(pool), pool->mem.dev);
	uint64_t bytes = PER_STREAM * ss_max(streams, 1) * size;

	return ss_max(ss_max(bytes, ss_used_high(&pool->caches) / HIGH_PART), FLOOR);
}

bool ss_pressure_high(struct ss_pool *pool, uint64_t size)
{
	return pool->classic && atomic_load(&pool->pressure.bytes) >= bound(pool, size);
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
	now = ss_now_ms(ss_core_of(pool));
	for (unsigned i = 0; i < SS_FREERS; i++)
		/* A thread with nothing under way may be waiting for it. */
		others += &by[i] != mine && by[i].last &&
			  (by[i].bytes || now - by[i].last <= lately_ms(pool));
	share = bound(pool, size) / (others + 1);
	return mine->bytes >= share &&
	       pool->mem.completed.bytes + (all - mine->bytes) < size + others * share;
}

/* Does it fit, with what has completed by now? Pool lock held, dropped meanwhile. */
static bool fits_now(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;

	ss_pool_unlock(pool);
	ss_fence_poll(ss_core_of(pool), NULL, -1);
	ss_pool_lock(pool);
	ss_reclaim_epochs(pool);
	return ss_index_best(&pool->mem.completed, r->size, r->align) != NULL;
}

/* Waits until that is no longer better. False: it was not r's turn, or for nothing. Pool lock held,
 * dropped meanwhile. */
static bool try_wait(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	uint64_t completed = pool->pressure.completed;

	if (!ss_wait_turn(r))
		return false;
	while (better_wait(pool, r->size, fits_now(r))) {
		if (!ss_wait_nap(r, completed != pool->pressure.completed))
			return false;
		completed = pool->pressure.completed;
	}
	ss_wait_worked(r);
	return true;
}

enum ss_next ss_backpressure_wait(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_pressure *w = &r->pressure;
	bool again, fits;

	if (!pool->classic || atomic_load(&pool->pressure.bytes) < FLOOR / 2)
		return SS_NEXT;
	ss_pool_lock(pool);
	/* Another thread may have seen epochs complete since this request looked last. */
	again = w->completed != pool->pressure.completed;
	fits = ss_index_best(&pool->mem.completed, r->size, r->align) != NULL;
	/* What another thread added this one may take. */
	if (fits && w->fitted < FITS_MOST && better_wait(pool, r->size, false)) {
		w->fitted++;
		again = true;
	}
	if (!r->wait.over && better_wait(pool, r->size, fits))
		again |= try_wait(r);
	w->completed = pool->pressure.completed;
	ss_pool_unlock(pool);
	return again && !r->wait.over ? SS_AGAIN : SS_NEXT;
}

enum ss_next ss_step_share(struct ss_request *r)
{
	if (!r->tl)
		ss_step_wait(r);
	return SS_NEXT;
}

bool ss_pressure_idle(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t begin, now = ss_now_ms(core);
	uint64_t ms = ss_min(core->opt.oom_wait_ms, ss_wait_budget_us(core, false) / 1000);
	unsigned failed = ss_waits_failed(core, false);
	bool idle;

	if (!pool->classic || !ms || !ss_wait_safe(core))
		return false;
	begin = ss_trace_wait_begin();
	idle = ss_device_wait_idle(core, pool->mem.dev, now + ms);
	ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, pool->mem.dev, NULL);
	if (!idle)
		ss_wait_failed(core, false, failed, 1000 * (ss_now_ms(core) - now));
	return idle;
}
