/* SPDX-License-Identifier: MIT */
/* The oracle's driver: fences, which are commands of the model, and a virtual clock. */
#include "oracle.h"

/* ---- fences ------------------------------------------------------------- */

static int stream_of(struct world *w, int dev, void *native, const char *what)
{
	if (!native)
		return w->null[dev];
	if (native == SS_NATIVE_PER_THREAD && w->pt[cur_thread][dev] >= 0)
		return w->pt[cur_thread][dev];
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].native == native && w->s[i].dev == dev &&
		    native != SS_NATIVE_PER_THREAD)
			return i;
	fail(w, F_DRIVER, "%s on a stream that does not exist", what);
	return -1;
}

static bool capture_forbids(struct world *w, int s)
{
	if (w->s[s].capturing)
		return true;
	for (int i = 0; w->s[s].kind == SS_TL_NULL && i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].capturing && w->s[i].dev == w->s[s].dev &&
		    w->s[i].kind != SS_TL_NONBLOCKING)
			return true;
	return false;
}

/* As on 7.2.4: a call on a stream for which another thread waits does not return before that. */
static void asks(struct world *w, int s)
{
	const struct stream *st = &w->s[s];
	const struct ss_timeline *tl = st->kind == SS_TL_NULL ? ss_timeline_null(w->core, st->dev) :
								st->tl;

	for (int i = 0; i < PAIRS; i++) {
		const struct ss_waiting *a = &w->pair[i].token.waiting;

		if (w->pair[i].used && a->what && w->call.own != s + 1 &&
		    (a->tl ? a->tl == tl : a->dev == st->dev))
			fail(w, F_ASKS, "stream %d is asked, for which another thread waits", s);
	}
}

static enum ss_status fence_record_on(struct world *w, int dev, int s, struct ss_fence *out)
{
	enum ss_status st = device_enter(w, D_RECORD);
	struct clk all;

	if (st)
		return st;
	if (w->nfence == FENCES) {
		w->full = true;
		return SS_ERR_FAILED;
	}
	if (capture_forbids(w, s))
		return SS_ERR_CAPTURE;
	stream_next(w, s, &all);
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[s].kind == SS_TL_NULL && w->call.joining != dev + 1 && i != s &&
		    w->s[i].kern[all.n[i]] > w->done.n[i] &&
		    w->s[i].kern[all.n[i]] > w->s[s].vc.n[i])
			fail(w, F_NULL_FENCE,
			     "a fence on the null stream joins stream %d in a "
			     "call that does not",
			     i);
	enqueue(w, s, CMD_MARKER, NULL);
	struct fence *f = &w->fence[w->nfence++];
	*f = (struct fence){
		.used = true, .dev = dev, .stream = s, .vc = w->s[s].vc, .raced = w->call.hooked};
	w->live_fences++;
	clk_join(&w->call.fenced, &f->vc);
	*out = (struct ss_fence){.h = f, .value = (uint64_t)w->nfence, .device = dev};
	return device_leave(w, SS_OK);
}

static enum ss_status fence_record(void *ctx, int dev, void *native, struct ss_fence *out)
{
	struct world *w = ctx;
	int s = stream_of(w, dev, native, "a fence");

	if (s < 0)
		return SS_ERR_FAILED;
	asks(w, s);
	w->s[s].busy++; /* a legal program does not destroy the stream during the call */
	w->s[s].fencing++;
	w->fencing++;
	enum ss_status st = fence_record_on(w, dev, s, out);
	w->fencing--;
	w->s[s].fencing--;
	w->s[s].busy--;
	return st;
}

static enum ss_status fence_query_of(struct world *w, struct fence *f)
{
	enum ss_status st = device_enter(w, D_QUERY);

	if (st)
		return st;
	if (f->gone)
		return SS_OK;
	if (!f->used) {
		fail(w, F_DRIVER, "a fence is queried that was released");
		return SS_ERR_INVALID;
	}
	if (!f->reached && clk_done(w, &f->vc) && !(w->cfg.lazy_query && rnd(&w->rng) & 1))
		f->reached = true;
	if (f->reached)
		know(w, &f->vc, false);
	return device_leave(w, f->reached ? SS_OK : SS_ERR_NOT_READY);
}

/* As on 6.4.3: querying a fence that was recorded before a capture ends the capture, if the fence
 * is of the captured stream, or of a destroyed one that may have had the same address. */
static enum ss_status fence_query(void *ctx, const struct ss_fence *fence)
{
	struct world *w = ctx;
	struct fence *f = fence->h;
	bool gone = !w->s[f->stream].alive;
	enum ss_status st;

	for (int i = 0; i < w->nstreams; i++)
		if ((gone || i == f->stream) && w->cfg.query_spoils && w->s[i].alive &&
		    w->s[i].capturing)
			fail(w, F_DRIVER,
			     "a fence of stream %d is asked for while stream %d is "
			     "captured",
			     f->stream, i);
	w->fencing++;
	w->querying++;
	st = fence_query_of(w, f);
	w->querying--;
	w->fencing--;
	return st;
}

static enum ss_status fence_wait_on(struct world *w, int s, struct fence *f)
{
	enum ss_status st = device_enter(w, D_WAIT);

	if (st)
		return st;
	if (!f->used)
		fail(w, F_DRIVER, "a stream waits for a fence that was released");
	if (capture_forbids(w, s))
		return SS_ERR_CAPTURE;
	if (w->call.gates < 16) {
		w->call.gate_stream[w->call.gates] = s;
		w->call.gate[w->call.gates++] = (int)(f - w->fence);
	}
	enqueue(w, s, CMD_WAIT, &f->vc);
	return device_leave(w, SS_OK);
}

static enum ss_status fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence)
{
	struct world *w = ctx;
	int s = stream_of(w, dev, native, "a wait");

	if (s < 0)
		return SS_ERR_FAILED;
	asks(w, s);
	w->s[s].busy++;
	enum ss_status st = fence_wait_on(w, s, fence->h);
	w->s[s].busy--;
	return st;
}

static void fence_release(void *ctx, struct ss_fence *fence)
{
	struct world *w = ctx;
	struct fence *f = fence->h;

	if (f->gone)
		return;
	if (!f->used) {
		fail(w, F_DRIVER, "a fence is released twice");
		return;
	}
	f->used = false;
	w->live_fences--;
}

static enum ss_status stream_idle(void *ctx, int dev, void *native)
{
	struct world *w = ctx;
	int s = stream_of(w, dev, native, "a query");

	if (s >= 0)
		asks(w, s);
	if (s < 0 || w->s[s].capturing || !clk_done(w, &w->s[s].vc) ||
	    (w->cfg.lazy_query && rnd(&w->rng) & 1))
		return SS_ERR_NOT_READY;
	know(w, &w->s[s].vc, false);
	return SS_OK;
}

/* ---- time --------------------------------------------------------------- */

static uint64_t now_ms(void *ctx)
{
	return ((struct world *)ctx)->now_ms;
}

static void progress_some(struct world *w)
{
	for (int i = 0; i < w->nstreams; i++)
		if (rnd(&w->rng) & 1)
			progress(w, i, (int)(rnd(&w->rng) % 4));
}

static void moment(void *ctx)
{
	struct world *w = ctx;

	w->moments++;
	if (w->cfg.restless && rnd(&w->rng) % 8 == 0)
		progress_some(w);
}

/* Most that a pool grows by for a block, beyond the block. */
#define GROWTH_MORE (4ull << 20)

/* A stream waits only where growth would set a new peak although the pool has enough free memory.
 * Other threads may change that at any time. */
static void check_growth_wait(struct world *w)
{
	const struct call *c = &w->call;
	uint64_t reserved = pool_value(w, c->pool, SS_ATTR_RESERVED_CURRENT);
	uint64_t more = c->size + w->cfg.opt.align_large + GROWTH_MORE;

	if (c->hooked || w->depth)
		return;
	if (reserved + more <= pool_value(w, c->pool, SS_ATTR_RESERVED_HIGH))
		fail(w, F_BLOCKS, "the host waits, and growth would set no new peak");
	if (pool_value(w, c->pool, SS_ATTR_USED_CURRENT) + c->size > reserved)
		fail(w, F_BLOCKS, "the host waits, and free memory would not do");
}

/* Does another thread wait for a stream? The core may not ask that one, and the end of the wait
 * tells how far it has come. */
static bool is_waited(const struct world *w)
{
	for (int i = 0; i < PAIRS; i++)
		if (w->pair[i].used && w->pair[i].token.waiting.what)
			return true;
	return false;
}

/* Only an allocation may nap, not for long, beside no capture and nothing that may need the host,
 * and only while a fence is on its way. (Another thread may be about to record or to reach the one
 * that tells, or it waits for a stream itself.) */
static uint64_t nap(void *ctx, unsigned us)
{
	struct world *w = ctx;
	bool worth = w->fencing != 0;

	for (int i = 0; i < w->nfence && !worth; i++)
		worth = w->fence[i].used;
	worth = worth || is_waited(w);
	if (!w->call.in_alloc || !worth)
		fail(w, F_BLOCKS, "the host waits in a call that must not");
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].capturing)
			fail(w, F_BLOCKS, "the host waits while stream %d is captured", i);
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].host > w->done.n[i])
			fail(w, F_BLOCKS, "the host waits, and stream %d may wait for it", i);
	if (w->in_function)
		fail(w, F_BLOCKS, "the host waits beside a host function");
	if (!w->call.in_classic)
		check_growth_wait(w);
	w->now_ms += (w->call.napped + us) / 1000 - w->call.napped / 1000;
	w->call.napped += us;
	if (w->call.napped > 1000 * w->cfg.opt.growth_wait_ms + 1000)
		fail(w, F_BLOCKS, "an allocation has waited %lu us", (unsigned long)w->call.napped);
	progress_some(w);
	if (w->cfg.functions && rnd(&w->rng) % 8 == 0)
		host_function(w, true);
	device_leave(w, SS_OK);
	run_at_nap(w);
	return us;
}

/* Only an allocation that found no memory may sleep, for a bounded time, and only
 * if there is something to hope for: a free in flight, a fence of the core that is
 * (it does not see what was enqueued before), memory that cannot go back before
 * the device is idle, or another thread's call in progress, which may be giving
 * memory back or will tell how far a stream is. */
static void sleep_ms(void *ctx, unsigned ms)
{
	struct world *w = ctx;
	bool worth = w->fencing || w->depth || w->cfg.lazy_query || is_waited(w) ||
		     w->cfg.release_waits[SS_BACKING_HIP] || w->cfg.release_waits[SS_BACKING_VMM];

	if (!w->call.in_alloc)
		fail(w, F_BLOCKS, "the host waits in a call that must not");
	for (int i = 0; i < w->nhz && !worth; i++)
		for (int t = 0; t < NS; t++)
			worth |= w->hz[i].at.n[t] > w->H.n[t];
	for (int i = 0; i < w->nfence && !worth; i++)
		worth = w->fence[i].used && !clk_done(w, &w->fence[i].vc);
	if (!worth)
		fail(w, F_LATE, "the host waits, but nothing that was freed is in flight");
	w->now_ms += ms ? ms : 1;
	w->call.slept += ms ? ms : 1;
	if (w->call.slept > w->cfg.opt.oom_wait_ms + 1)
		fail(w, F_BLOCKS, "the host has waited %lu ms", (unsigned long)w->call.slept);
	progress_some(w);
	device_leave(w, SS_OK);
}

void device_fences(struct ss_driver *drv)
{
	drv->fence_record = fence_record;
	drv->fence_query = fence_query;
	drv->fence_wait = fence_wait;
	drv->fence_release = fence_release;
	drv->stream_idle = stream_idle;
	drv->now_ms = now_ms;
	drv->pause = moment;
	drv->nap = nap;
	drv->sleep_ms = sleep_ms;
}
