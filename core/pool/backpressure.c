/* SPDX-License-Identifier: MIT */
/*
 * hipMalloc on a device that lags: when to ask how far its streams are, and when to
 * wait for them rather than to grow.
 *
 * Where hipFree does not wait, a host that is ahead of the device frees faster than the
 * device lets go: an allocator that never waits would hold a block for every free that
 * is under way. So beyond a bound an allocation waits for the oldest of them. That costs
 * nothing as long as the device has the rest to do, and the real hipFree would have
 * waited for all of it.
 *
 * Each thread that frees has a share of what may be under way. Without that, the first
 * to wake up takes all that came free, and the streams of the others stand still until
 * the work that it enqueues then is done, too.
 *
 * The work in front of a fence may itself wait for what this thread does next (for a
 * value, for another process). So a wait is not much longer than work took of late, and
 * each that was for nothing makes the next ones rarer.
 *
 * Locks: pool->lock, then core->order. None while waiting.
 */
#include "core/internal.h"

#define FLOOR (32ull << 20)  /* under way, below which growth is no matter */
#define PER_STREAM 7         /* blocks under way; the eighth is in use */
#define SHORTEST_MS 50       /* what a busy machine alone may take */
#define LONGEST_MS 2000
#define RAREST 16            /* one wait in so many allocations, as a power of two */
#define NAP_US 50            /* at least, */
#define NAP_PART 8
#define LONGEST_NAP_US 1000
#define FITS_MOST 16         /* looks of one allocation at what another thread added */

/* ---- who freed what ----------------------------------------------------- */

/* Threads by the order in which they came. More than there is room for share. */
static unsigned self(void)
{
	static _Thread_local unsigned number
		__attribute__((tls_model("initial-exec")));
	static _Atomic unsigned threads;

	if (!number)
		number = atomic_fetch_add(&threads, 1) % SS_FREERS + 1;
	return number - 1;
}

void ss_patience_freed(struct ss_pool *pool, struct ss_epoch *e, uint64_t size)
{
	struct ss_freer *f = &pool->patience.by[self()];

	f->bytes += size;
	f->last = pool->core->drv.now_ms(pool->core->drv.ctx) + 1;
	e->by[self()] += size;
	atomic_fetch_add(&pool->patience.bytes, size);
}

void ss_patience_completed(struct ss_pool *pool, const struct ss_epoch *e)
{
	uint64_t most = 2 * pool->patience.took + 1;
	uint64_t took = pool->core->drv.now_ms(pool->core->drv.ctx) - e->since;

	/* Nobody may have looked for long: that is not how long it took. */
	pool->patience.took = took < most ? took : most;
	pool->patience.completed++;
	for (unsigned i = 0; i < SS_FREERS; i++) {
		pool->patience.by[i].bytes -= e->by[i];
		atomic_fetch_sub(&pool->patience.bytes, e->by[i]);
	}
}

void ss_patience_never(struct ss_core *core)
{
	atomic_store(&core->hasty, true);
}

/* ---- asking ------------------------------------------------------------- */

/* Is a fence on its way for all that e waits for? Order lock held. */
static bool asked_for(struct ss_pool *pool, const struct ss_epoch *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		const struct ss_timeline *tl = ss_slot(pool->core, e->mark[i].slot);

		if (!ss_mark_done(pool, e->mark[i].slot, e->mark[i].n) &&
		    (tl->fenced < e->mark[i].n ||
		     !(atomic_load(&tl->pending) + atomic_load(&tl->recording))))
			return false;
	}
	return !e->wide;
}

/* A fence for every stream is not cheap, but what comes back in large pieces comes late:
 * so there is one when a fifth of what is under way has none. */
bool ss_epochs_due(struct ss_pool *pool)
{
	uint64_t asked = 0, open = 0;

	if (!pool->classic || atomic_load(&pool->core->dev[pool->dev].pressed))
		return true;
	pthread_mutex_lock(&pool->core->order);
	for (struct ss_epoch *e = pool->epochs; e; e = e->next)
		*(asked_for(pool, e) ? &asked : &open) += e->bytes;
	pthread_mutex_unlock(&pool->core->order);
	return 4 * open >= asked;
}

/* ---- waiting ------------------------------------------------------------ */

static uint64_t limit_us(const struct ss_pool *pool)
{
	uint64_t ms = 4 * pool->patience.took + SHORTEST_MS;

	return 1000 * (ms < LONGEST_MS ? ms : LONGEST_MS);
}

static uint64_t nap_us(const struct ss_pool *pool)
{
	uint64_t us = 1000 * pool->patience.took / NAP_PART;

	return us < NAP_US ? NAP_US : us < LONGEST_NAP_US ? us : LONGEST_NAP_US;
}

/* Will a fence tell when the oldest epoch has completed? And how many streams are
 * there? Pool lock held. */
static bool told(struct ss_pool *pool, uint64_t *streams)
{
	struct ss_core *core = pool->core;
	const struct ss_epoch *e = pool->epochs;
	bool yes;

	while (e && e->next)
		e = e->next;
	pthread_mutex_lock(&core->order);
	yes = e && asked_for(pool, e);
	*streams = 0;
	for (uint32_t i = 0; i < core->slot_count; i++) {
		const struct ss_timeline *tl = core->slots[i];

		yes &= !tl->alive || !tl->capturing;
		*streams += tl->dev == pool->dev && tl->alive && tl->kind != SS_TL_NULL;
	}
	pthread_mutex_unlock(&core->order);
	*streams += !*streams;
	return yes;
}

/* Is it better to wait than to grow, or (it fits) than to take what other threads have
 * a share in? Pool lock held. */
static bool better_wait(struct ss_pool *pool, uint64_t size, bool fits)
{
	const struct ss_freer *by = pool->patience.by, *mine = &by[self()];
	uint64_t all = atomic_load(&pool->patience.bytes), bound, share, now;
	uint64_t others = 0, streams, high;

	if (all < FLOOR / 2 || (fits && !mine->bytes) || !told(pool, &streams))
		return false;
	high = ss_pool_used_high(pool);
	bound = PER_STREAM * streams * size;
	bound = bound > high ? bound : high;
	bound = bound > FLOOR ? bound : FLOOR;
	if (!fits)
		return all >= bound;
	now = pool->core->drv.now_ms(pool->core->drv.ctx) + 1;
	for (unsigned i = 0; i < SS_FREERS; i++)
		/* One that has nothing under way may be waiting for it. */
		others += &by[i] != mine && by[i].last &&
			  (by[i].bytes || now - by[i].last <= limit_us(pool) / 1000);
	share = bound / (others + 1);
	return mine->bytes >= share &&
	       pool->clean.bytes + (all - mine->bytes) < size + others * share;
}

/* Does it fit, with what has completed by now? Called with the pool lock held, drops it
 * meanwhile. */
static bool look(struct ss_pool *pool, uint64_t size, uint64_t align)
{
	pthread_mutex_unlock(&pool->lock);
	ss_fence_poll(pool->core, NULL, -1);
	pthread_mutex_lock(&pool->lock);
	ss_settle(pool);
	return ss_heap_best(&pool->clean, size, align) != NULL;
}

/* Naps until it is no longer better to wait. False: that takes too long. Called with the
 * pool lock held, drops it meanwhile. */
static bool sit_out(struct ss_pool *pool, uint64_t size, uint64_t align, struct ss_wait *w)
{
	struct ss_core *core = pool->core;
	uint64_t start = w->us, completed = pool->patience.completed, us;

	while (better_wait(pool, size, look(pool, size, align))) {
		/* As long as epochs complete, the device does not stand still. */
		if (completed != pool->patience.completed) {
			completed = pool->patience.completed;
			start = w->us;
		}
		if (w->us - start >= limit_us(pool) || w->us >= LONGEST_MS * 1000)
			return false;
		pool->st.waits += !w->us;
		us = nap_us(pool);
		pthread_mutex_unlock(&pool->lock);
		w->us += core->drv.nap(core->drv.ctx, us) + 1;
		pthread_mutex_lock(&pool->lock);
	}
	return true;
}

void ss_patience_failed(struct ss_pool *pool)
{
	unsigned failed = pool->patience.failed;

	pool->patience.skip = (1u << failed) - 1;
	pool->patience.failed += failed < RAREST;
}

bool ss_patience(struct ss_pool *pool, uint64_t size, uint64_t align, struct ss_wait *w)
{
	struct ss_core *core = pool->core;
	uint64_t before = w->us;
	bool again, fits;
	unsigned failed;

	if (!pool->classic || atomic_load(&pool->patience.bytes) < FLOOR / 2 ||
	    !core->drv.nap || atomic_load(&core->hasty))
		return false;
	pthread_mutex_lock(&pool->lock);
	/* Others may have made something known of which this thread has seen one half. */
	again = w->completed != pool->patience.completed;
	fits = ss_heap_best(&pool->clean, size, align) != NULL;
	/* Or by growth: what another thread added this one may take. */
	if (fits && w->fitted < FITS_MOST && better_wait(pool, size, false)) {
		w->fitted++;
		again = true;
	}
	if (!w->over && better_wait(pool, size, fits)) {
		failed = pool->patience.failed;
		if (pool->patience.skip && !w->us) {
			pool->patience.skip--;
			w->over = true;
		} else if (sit_out(pool, size, align, w)) {
			again = true;
			if (w->us > before)
				pool->patience.failed /= 2;
		} else {
			w->over = true;
			/* Threads that waited together have failed once. */
			if (failed == pool->patience.failed)
				ss_patience_failed(pool);
		}
	}
	w->completed = pool->patience.completed;
	pthread_mutex_unlock(&pool->lock);
	return again && !w->over;
}
