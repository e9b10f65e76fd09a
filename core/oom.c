/* SPDX-License-Identifier: MIT */
/*
 * When the device has no more memory: what is tried before the program sees it,
 * and the report when nothing helped.
 *
 * Locks: pool locks one at a time; none across a driver call or a sleep.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/grow.h"
#include "core/oom_report.h"

static void settle(struct ss_pool *pool, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool);
	pthread_mutex_unlock(&pool->lock);
}

/* The next stream from *i on that the newest epoch waits for, which has the latest mark of
 * each; NULL: no more. */
static struct ss_timeline *next_waited(struct ss_pool *pool, uint32_t *i)
{
	struct ss_timeline *tl = NULL;
	const struct ss_epoch *e;

	pthread_mutex_lock(&pool->lock);
	e = pool->epochs;
	for (; e && *i < e->count && !tl; ++*i)
		if (!ss_mark_done(pool, e->mark[*i].slot, e->mark[*i].n))
			tl = ss_slot(pool->core, e->mark[*i].slot);
	pthread_mutex_unlock(&pool->lock);
	return tl;
}

/* Fences for all that waits in queues and epochs of one pool. */
static void fence_everything(struct ss_pool *pool, void *arg)
{
	struct ss_core *core = pool->core;
	struct ss_timeline *tl;

	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		bool waits;

		pthread_mutex_lock(&pool->lock);
		ss_flush(pool, q);
		waits = q->own.count != 0;
		pthread_mutex_unlock(&pool->lock);
		if (waits && q->tl->alive)
			ss_fence_request(core, q->tl, atomic_load(&q->tl->now), SS_FENCE_LATE);
	}
	for (uint32_t i = 0; (tl = next_waited(pool, &i));)
		if (tl->alive)
			ss_fence_request(core, tl, atomic_load(&tl->now), SS_FENCE_LATE);
	settle(pool, NULL);
}

/* Where giving back waits for the whole device, a kernel that never ends would
 * make the wait for ever: then only a device that is known to be idle gives. */
bool ss_idle_soon(struct ss_pool *pool, uint64_t end)
{
	struct ss_core *core = pool->core;

	/* Each asking records fences: ask less and less often. */
	for (unsigned ms = 1; !ss_device_idle(core, pool->dev, true); ms *= 2) {
		uint64_t now = core->drv.now_ms(core->drv.ctx);

		if (now >= end)
			return false;
		core->drv.sleep_ms(core->drv.ctx, ms < end - now ? ms : (unsigned)(end - now));
	}
	return true;
}

struct release {
	int idle; /* -1: not asked yet */
	uint64_t end;
	uint64_t given;
};

static void release_idle(struct ss_pool *pool, void *arg)
{
	struct release *r = arg;

	if (ss_release_waits(pool)) {
		if (atomic_load(&pool->reserved) <= ss_pool_used(pool))
			return;
		if (r->idle < 0)
			r->idle = ss_idle_soon(pool, r->end);
		if (!r->idle)
			return;
	}
	r->given += ss_release(pool, 0, UINT64_MAX);
	ss_pool_reap(pool);
}

static void sum_idle(struct ss_pool *pool, void *arg)
{
	uint64_t used = ss_pool_used(pool) + ss_ipc_pinned(pool), reserved = atomic_load(&pool->reserved);

	*(uint64_t *)arg += reserved > used ? reserved - used : 0;
}

/* A pool at its maxSize has room only where it gives back itself. */
static bool at_max(const struct ss_pool *pool, uint64_t size)
{
	return pool->max_bytes &&
	       atomic_load(&pool->reserved) + size > ss_round(pool->max_bytes, SS_FRAME);
}

static void each_giver(struct ss_pool *pool, uint64_t size, void (*fn)(struct ss_pool *, void *),
		       void *arg)
{
	if (at_max(pool, size))
		fn(pool, arg);
	else
		ss_pools_each(pool->core, pool->dev, fn, arg);
}

/* Would `size` fit if every idle byte went back? Giving back for nothing would
 * only make the next allocations slow. */
static bool could_fit(struct ss_pool *pool, uint64_t size)
{
	struct ss_core *core = pool->core;
	const struct ss_device_state *d = &core->dev[pool->dev];
	uint64_t idle = 0, left = 0, reserved, taken;

	if (pool->max_bytes && ss_pool_used(pool) + size > ss_round(pool->max_bytes, SS_FRAME))
		return false;
	ss_pools_each(core, pool->dev, sum_idle, &idle);
	/* What is on its way back is in neither figure. Between looking at one and the next
	 * memory moves on from the one to the other only. */
	reserved = atomic_load(&d->reserved);
	taken = atomic_load(&d->taken);
	if (taken > reserved)
		idle += taken - reserved;
	if (d->limit && size + atomic_load(&d->taken) > d->limit + idle)
		return false;
	if (SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->dev, &left, NULL)) != SS_OK)
		return true;
	return size <= left + idle;
}

/* Makes x wait on the device for frees whose fences stand for nothing else. */
static bool wait_on_device(struct ss_pool *pool, struct ss_timeline *x, uint64_t size)
{
	if (!x || !atomic_load(&pool->internal))
		return false;
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		struct ss_block *b;
		uint64_t n = 0;

		if (q->tl == x)
			continue;
		pthread_mutex_lock(&pool->lock);
		b = ss_heap_best(&q->own, size, SS_GRAIN);
		if (b)
			n = b->n;
		pthread_mutex_unlock(&pool->lock);
		if (!b || !ss_fence_gate(pool->core, x, q->tl, n))
			continue;
		pthread_mutex_lock(&pool->lock);
		if (ss_absorb_from(pool, x, q, n))
			pool->st.reuse_internal++;
		pthread_mutex_unlock(&pool->lock);
		return true;
	}
	return false;
}

/* Does a fence stand behind anything that was freed and is still in use? And on which
 * devices does something wait for the null stream? */
struct flight {
	bool fenced;
	uint64_t null;
};

static void waits_for(struct ss_pool *pool, struct flight *f, uint32_t slot, uint64_t n)
{
	const struct ss_timeline *tl = ss_slot(pool->core, slot);

	if (atomic_load(&tl->pending) && !ss_fence_off_limits(pool->core, tl))
		f->fenced = true;
	else if (tl->kind == SS_TL_NULL && !ss_mark_done(pool, slot, n))
		f->null |= 1ull << tl->dev;
}

static void in_flight(struct ss_pool *pool, void *arg)
{
	struct flight *f = arg;

	pthread_mutex_lock(&pool->lock);
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q))
		if (q->own.count)
			waits_for(pool, f, q->slot, atomic_load(&q->tl->now));
	for (struct ss_epoch *e = pool->epochs; e && !f->fenced; e = e->next)
		for (uint32_t i = 0; i < e->count && !f->fenced; i++)
			waits_for(pool, f, e->mark[i].slot, e->mark[i].n);
	pthread_mutex_unlock(&pool->lock);
}

/* A nap, where something is on its way back. No fence can tell of a null stream that others
 * join, but it can be found at its end, once they are: that is asked less and less often, and
 * known once. *ms: 1 at first. */
static bool nap(struct ss_core *core, int dev, uint64_t end, unsigned *ms)
{
	uint64_t now = core->drv.now_ms(core->drv.ctx);
	struct flight f = {0};
	bool idle = false, wait = false, busy;

	ss_pools_each(core, dev, in_flight, &f);
	if (!*ms || now >= end)
		return false;
	if (!f.fenced && !atomic_load(&core->dev[dev].giving)) {
		for (int d = 0; d < core->devices; d++)
			if (f.null >> d & 1) {
				idle |= ss_null_idle(core, d, &busy);
				wait |= busy;
			}
		*ms = idle ? 0 : 2 * *ms;
		if (idle || !wait)
			return idle;
	}
	core->drv.sleep_ms(core->drv.ctx, *ms < end - now ? *ms : (unsigned)(end - now));
	return true;
}

/* Looks, for a bounded time, whether anything that was freed is let go of: more than
 * l->settled, whoever saw it, and be it since the last step; or whether another thread has
 * given memory back. That a fence is reached is
 * not enough, since asking records some itself. A fence may stand behind a kernel that
 * never ends as well: that is why nobody sleeps in the runtime for it, and why this ends. */
static bool wait_on_host(struct ss_core *core, struct ss_pool *pool, struct ss_ladder *l)
{
	const struct ss_device_state *d = &core->dev[pool->dev];
	unsigned ms = 1;

	for (bool last = false;; last = !nap(core, pool->dev, l->end, &ms)) {
		uint64_t settled, gave = atomic_load(&d->gave);

		ss_fence_poll(core, NULL, -1);
		ss_pools_each(core, pool->dev, settle, NULL);
		settled = atomic_load(&d->settled);
		l->over = core->drv.now_ms(core->drv.ctx) >= l->end;
		if (settled != l->settled || gave != l->gave) {
			l->settled = settled;
			return true;
		}
		if (last)
			return false;
	}
}

enum ss_status ss_oom(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
		      struct ss_ladder *l)
{
	struct ss_core *core = pool->core;
	struct release r = {.idle = -1};

	/* One allocation waits once, whatever it waits for. */
	if (l->step == 0)
		l->end = core->drv.now_ms(core->drv.ctx) + core->opt.oom_wait_ms;
	r.end = l->end;
	ss_pressed_set(core, pool->dev, true);
	atomic_store(&core->dev[pool->dev].low, true);
	ss_strict(core, pool->dev);
	if (l->over || !could_fit(pool, size))
		return SS_ERR_NOMEM;
	switch (l->step++) {
	case 0: /* what has completed, merged across streams */
		ss_pools_each(core, pool->dev, fence_everything, NULL);
		ss_fence_poll(core, NULL, -1);
		ss_pools_each(core, pool->dev, fence_everything, NULL);
		return SS_OK;
	case 1: /* idle memory of every pool of the device */
		l->settled = atomic_load(&core->dev[pool->dev].settled);
		each_giver(pool, size, release_idle, &r);
		l->gave = atomic_load(&core->dev[pool->dev].gave);
		return SS_OK;
	case 2:
		if (wait_on_device(pool, x, size))
			return SS_OK;
		/* fall through */
	default: /* as often as something ends, until the time is over */
		if (!wait_on_host(core, pool, l))
			return SS_ERR_NOMEM;
		each_giver(pool, size, release_idle, &r);
		l->gave = atomic_load(&core->dev[pool->dev].gave);
		return SS_OK;
	}
}

bool ss_give_back(struct ss_core *core, int dev, bool may_wait, uint64_t *end)
{
	struct release r = {.idle = may_wait ? -1 : 0};
	uint64_t gave;
	unsigned ms = 1;

	if (dev < 0 || dev >= core->devices)
		return false;
	if (!*end)
		*end = core->drv.now_ms(core->drv.ctx) + core->opt.oom_wait_ms;
	r.end = *end;
	gave = atomic_load(&core->dev[dev].gave);
	if (may_wait)
		ss_pools_each(core, dev, fence_everything, NULL);
	do {
		ss_fence_poll(core, NULL, -1);
		ss_pools_each(core, dev, release_idle, &r);
	} while (!r.given && may_wait && nap(core, dev, r.end, &ms));
	return r.given || (core->drv.now_ms(core->drv.ctx) < r.end &&
			   atomic_load(&core->dev[dev].gave) != gave);
}

/* ---- the report --------------------------------------------------------- */

static void report_pool(struct ss_pool *pool, void *arg)
{
	uint64_t in_flight = 0, run;
	struct ss_block *largest;
	FILE *out = arg;

	if (!atomic_load(&pool->reserved))
		return;
	pthread_mutex_lock(&pool->lock);
	largest = ss_heap_largest(&pool->clean);
	run = largest ? largest->size : 0;
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		if (!(largest = ss_heap_largest(&q->own)))
			continue;
		fprintf(out, "somashim:     stream %p holds %" PRIu64 " free bytes\n",
			q->tl->native, q->own.bytes);
		in_flight += q->own.bytes;
		run = largest->size > run ? largest->size : run;
	}
	for (struct ss_epoch *e = pool->epochs; e; e = e->next)
		in_flight += e->bytes;
	fprintf(out, "somashim:   %s pool (%s): reserved %" PRIu64 ", used %" PRIu64
		", in flight %" PRIu64 ", clean %" PRIu64 ", exported %" PRIu64
		", largest free run %" PRIu64 "\n",
		pool->classic ? "classic" : pool->is_default ? "default" : "user",
		ss_backing_name(pool->backing),
		atomic_load(&pool->reserved), ss_pool_used(pool), in_flight, pool->clean.bytes,
		atomic_load(&pool->kept), run);
	pthread_mutex_unlock(&pool->lock);
}

/* In memory first: one report is one piece, whatever other threads say. Where there is
 * no host memory for that either, it is said as it comes. */
static void report_count(struct ss_pool *pool, uint64_t size, uint64_t count)
{
	fprintf(pool->core->log, "somashim: out of memory: %" PRIu64 " times so far, this time %" PRIu64
		" bytes on device %d\n", count, size, pool->dev);
	fflush(pool->core->log);
}

void ss_oom_report(struct ss_pool *pool, uint64_t size, const struct ss_ladder *l, bool refused)
{
	static const char *const tried[] = { /* by step */
		"nothing, since it is more than what is free and what is idle together",
		"completed frees, merging",
		"completed frees, merging, idle memory",
		"completed frees, merging, idle memory, device-side and bounded host waiting",
	};
	static _Atomic uint64_t failures; /* of this process, which has one log */
	struct ss_core *core = pool->core;
	uint64_t left = 0, total = 0, mine, count;
	enum ss_oom_print print;
	enum ss_status s;
	char limit[160], *text = NULL;
	size_t length = 0;
	FILE *out;

	if (!core->log)
		return;
	print = ss_oom_print(core->opt.oom_reports, &failures, &count);
	if (print == SS_OOM_PRINT_COUNT)
		report_count(pool, size, count);
	if (print == SS_OOM_PRINT_COUNT || print == SS_OOM_PRINT_NOTHING)
		return;
	out = open_memstream(&text, &length);
	if (!out)
		out = core->log;
	s = SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->dev, &left, &total));
	mine = atomic_load(&core->dev[pool->dev].reserved);
	fprintf(out, "somashim: out of memory: %" PRIu64 " bytes on device %d; ", size, pool->dev);
	if (s == SS_OK)
		fprintf(out, "the device has %" PRIu64 " of %" PRIu64 " free, this process's pools hold %"
			PRIu64 ", others about %" PRIu64 "\n", left, total, mine,
			total > left + mine ? total - left - mine : 0);
	else
		fprintf(out, "what the device has free it does not say, this process's pools hold %"
			PRIu64 "\n", mine);
	if (core->dev[pool->dev].limit)
		fprintf(out, "somashim:   SOMASHIM_LIMIT is %" PRIu64 "\n",
			core->dev[pool->dev].limit);
	if (core->drv.limit && core->drv.limit(core->drv.ctx, limit, sizeof(limit)))
		fprintf(out, "somashim:   a limit was hit: %s\n", limit);
	if (refused)
		fputs("somashim:   the driver failed, and did not say that memory is short\n", out);
	if (pool->max_bytes)
		fprintf(out, "somashim:   the pool's maxSize is %" PRIu64 "\n", pool->max_bytes);
	ss_pools_each(core, pool->dev, report_pool, out);
	fprintf(out, "somashim:   tried: %s\n", tried[l->step < 3 ? l->step : 3]);
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
