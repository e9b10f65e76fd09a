/* SPDX-License-Identifier: MIT */
/*
 * Runs a log on the real core over the fake device. It trusts the core with nothing that
 * matters: it checks overlap, backing and alignment of every block itself, and takes the
 * byte counts from the device.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/progress.h"
#include "cli/replay.h"
#include "cli/replay_order.h"
#include "core/core.h"
#include "core/statistics.h"
#include "driver/fake/fake.h"

#define ALIGNMENT 512
#define CHECKS 16 /* how often per log the core checks its invariants */

struct block {
	uintptr_t from, to; /* [from, to); from = 0: not live */
};

struct command {
	uint32_t stream;
	uint64_t at; /* its number on the stream, on which the core enqueues waits, too */
};

struct run {
	const struct ss_events *ev;
	const struct ss_replay_config *config;
	struct ss_fake *fake;
	struct ss_driver drv;
	struct ss_core *core;
	struct ss_pool *pool;
	struct ss_timeline **timelines; /* per stream of the log */
	struct block *blocks;
	void *live; /* tree of struct block by address */
	uint64_t live_bytes;
	struct command *behind; /* ring buffer with the last `lag` commands */
	uint64_t issued, reached;
	uint64_t time_us;
	uint64_t look_at; /* ms of the driver: when idle memory is looked for; UINT64_MAX: never */
	char *err;
	size_t err_size;
};

/* Blocks that overlap compare as equal, so that tsearch() finds an overlap. */
static int compare_blocks(const void *pa, const void *pb)
{
	const struct block *a = pa, *b = pb;
	return a->to <= b->from ? -1 : a->from >= b->to ? 1 : 0;
}

static void *native(uint64_t handle, uint32_t index)
{
	return handle == 0 ? NULL : (void *)(uintptr_t)(0x10000 + 16ull * index);
}

static bool broken(struct run *r, size_t at, const char *what)
{
	snprintf(r->err, r->err_size, "event %zu: %s", at, what);
	return false;
}

/* ---- the device's progress ---------------------------------------------- */

static void reach_one(struct run *r)
{
	struct command *c = &r->behind[r->reached++ % r->config->lag];
	void *stream = native(r->ev->streams[c->stream], c->stream);
	ss_fake_progress(r->fake, 0, stream, c->at - ss_fake_done(r->fake, 0, stream));
}

/* While the core waits, the device makes progress. */
static void on_sleep(void *arg, unsigned ms)
{
	struct run *r = arg;
	for (unsigned i = 0; i < 100 * (ms + 1) && r->reached < r->issued; i++)
		reach_one(r);
}

static void issue(struct run *r, uint32_t s)
{
	if (r->config->device_ns)
		ss_fake_call(r->fake, 0, native(r->ev->streams[s], s));
	if (!r->config->lag)
		return;
	if (r->issued - r->reached == r->config->lag)
		reach_one(r);
	void *stream = native(r->ev->streams[s], s);
	ss_fake_enqueue(r->fake, 0, stream);
	r->behind[r->issued++ % r->config->lag] = (struct command){
		s, ss_fake_enqueued(r->fake, 0, stream)};
}

/* ---- time, and idle memory as the shim's thread releases it ------------------ */

static uint64_t now_ms(const struct run *r)
{
	return r->drv.now_ms(r->drv.ctx);
}

static void wake(void *arg, uint64_t ms)
{
	struct run *r = arg;

	if (ms != UINT64_MAX && now_ms(r) + ms < r->look_at)
		r->look_at = now_ms(r) + ms;
}

static void release_idle(struct run *r)
{
	while (now_ms(r) >= r->look_at) {
		r->look_at = UINT64_MAX;
		ss_decay_notify(r->core);
		wake(r, ss_decay_next(r->core, 0));
	}
}

/* The thread looks at its own times, also if the log has no event for long. */
static void pass(struct run *r, uint64_t ms)
{
	uint64_t step;

	for (; ms; ms -= step) {
		step = r->look_at - now_ms(r);
		step = step < ms ? step : ms;
		ss_fake_advance_ms(r->fake, step);
		release_idle(r);
	}
}

static void advance_clock(struct run *r, uint64_t time_us)
{
	if (r->config->device_ns)
		return;
	/* A log has the time of day only. A large step back is midnight, a small one noise. */
	if (time_us > r->time_us)
		pass(r, time_us / 1000 - r->time_us / 1000);
	if (time_us > r->time_us || r->time_us - time_us > 3600000000ull)
		r->time_us = time_us;
}

/* ---- events ------------------------------------------------------------- */

static bool replay_alloc(struct run *r, size_t at, struct ss_replay_result *out)
{
	const struct ss_event *e = &r->ev->list[at];
	struct block *b = &r->blocks[e->block];
	void *ptr = NULL;

	out->allocations++;
	enum ss_status st = r->config->classic ?
				    ss_alloc_classic(r->core, 0, e->size, &ptr) :
				    ss_alloc_async(r->core, r->pool, r->timelines[e->stream],
						   e->size, &ptr);
	if (st != SS_OK) {
		if (!out->failed++) {
			uint64_t hole = ss_largest_free(r->core, 0);
			uint64_t left = r->config->vram - ss_fake_reserved(r->fake, 0);

			out->first = (struct ss_replay_failure){e->at, e->size, r->live_bytes,
								hole > left ? hole : left};
		}
		return st == SS_ERR_NOMEM ? true :
					    broken(r, at,
						   "an allocation failed, and not "
						   "for lack of memory");
	}
	b->from = (uintptr_t)ptr;
	b->to = b->from + e->size;
	r->live_bytes += e->size;
	if (!ptr || b->from % ALIGNMENT)
		return broken(r, at, "a block is not aligned");
	if (!ss_fake_usable(r->fake, 0, ptr, e->size))
		return broken(r, at, "a block lies outside of memory that is mapped");
	struct block **found = tsearch(b, &r->live, compare_blocks);
	if (!found || *found != b)
		return broken(r, at, found ? "two live blocks overlap" : "out of memory");
	return true;
}

static bool replay_free(struct run *r, size_t at, struct ss_replay_result *out)
{
	const struct ss_event *e = &r->ev->list[at];
	struct block *b = &r->blocks[e->block];
	enum ss_status st;

	if (!b->from)
		return true; /* its allocation failed */
	tdelete(b, &r->live, compare_blocks);
	void *ptr = (void *)b->from;
	r->live_bytes -= b->to - b->from;
	b->from = b->to = 0;
	if (!r->config->classic) {
		st = ss_free_async(r->core, ptr, r->timelines[e->stream]);
	} else if (r->config->lag || r->config->device_ns) {
		st = ss_free_classic(r->core, ptr, NULL);
	} else {
		struct ss_token t = ss_streams_sync_begin(r->core, 0);
		st = ss_free_classic(r->core, ptr, &t);
	}
	out->frees++;
	return st == SS_OK ? true : broken(r, at, "a free failed");
}

static uint64_t driver_calls(struct ss_fake *fake)
{
	struct ss_fake_counts c = ss_fake_counts(fake);
	return c.segment_alloc + c.segment_free + c.chunk_create + c.chunk_release + c.map +
	       c.unmap;
}

static bool replay_events(struct run *r, struct ss_replay_result *out)
{
	size_t count = r->ev->count, step = count / CHECKS + 1, tick = count / 200 + 1;
	uint64_t calls_at_peak = 0, allocations_at_peak = 0;

	for (size_t at = 0; at < count; at++) {
		const struct ss_event *e = &r->ev->list[at];
		advance_clock(r, e->time_us);
		if (r->config->events && at && e[-1].stream != e->stream)
			ss_replay_order(r->core, r->timelines[e[-1].stream],
					r->timelines[e->stream]);
		issue(r, e->stream);
		release_idle(r);
		if (!(e->is_free ? replay_free : replay_alloc)(r, at, out))
			return false;
		if (at == r->ev->peak_at) {
			calls_at_peak = driver_calls(r->fake);
			allocations_at_peak = out->allocations;
			out->host_bytes = ss_host_bytes(r->core);
		}
		if (at % step == 0 || at == count - 1) {
			const char *wrong = ss_check(r->core);
			if (wrong)
				return broken(r, at, wrong);
		}
		if (r->config->progress && at % tick == 0)
			ss_progress_draw((double)at / (double)count);
	}
	out->driver_calls = driver_calls(r->fake);
	out->driver_calls_after = out->driver_calls - calls_at_peak;
	out->allocations_after = out->allocations - allocations_at_peak;
	struct ss_fake_counts c = ss_fake_counts(r->fake);
	out->took = c.segment_alloc + c.chunk_create;
	out->took_bytes = c.taken;
	out->maps = c.map;
	out->unmaps = c.unmap;
	out->set_access = c.set_access;
	out->gave = c.segment_free + c.chunk_release;
	out->gave_bytes = c.given;
	out->fences = c.fence_record;
	out->reserved_peak = ss_fake_reserved_high(r->fake, 0);
	out->used_peak = r->ev->peak;
	struct ss_fake_times times = ss_fake_times(r->fake);
	out->device_end = times.end;
	out->queue_full = times.full;
	out->waits = times.waits;
	out->waited = times.waited;
	out->device_idle = times.idle;
	out->driver = times.driver;
	return true;
}

static void add_stats(const struct ss_pool_stats *s, void *arg)
{
	struct ss_replay_result *out = arg;
	out->hits += s->hits;
	out->remaps += s->remaps;
	out->released += s->released_bytes;
}

static void free_nothing(void *node)
{
}

static bool start(struct run *r)
{
	struct ss_fake_config config = {
		.vram = r->config->vram,
		.vmm = true,
		.idle = r->config->lag == 0 && r->config->device_ns == 0,
		.hip_release_waits = true,
		.vmm_release_waits = true,
		.access_prefix = r->config->no_remap,
		.host_ns = r->config->host_ns,
		.device_ns = r->config->device_ns,
		.segment_ns = r->config->segment_ns,
		.chunk_ns = r->config->chunk_ns,
		.queue = r->config->queue,
	};
	r->fake = ss_fake_create(&config);
	r->timelines = calloc(r->ev->stream_count, sizeof(*r->timelines));
	r->blocks = calloc(r->ev->blocks, sizeof(*r->blocks));
	r->behind = calloc(r->config->lag + 1, sizeof(*r->behind));
	if (!r->fake || !r->timelines || !r->blocks || !r->behind)
		return broken(r, 0, "out of memory");
	r->drv = ss_fake_driver(r->fake);
	r->core = ss_core_create(&r->drv, r->config->options);
	r->pool = r->core ? ss_pool_default(r->core, 0) : NULL;
	if (!r->pool)
		return broken(r, 0, "the core has no default pool");
	r->look_at = UINT64_MAX;
	if (r->config->options->decay_ms)
		ss_decay_watch(r->core, wake, r);
	ss_fake_on_sleep(r->fake, on_sleep, r);
	for (uint32_t i = 0; i < r->ev->stream_count; i++) {
		void *handle = native(r->ev->streams[i], i);
		r->timelines[i] = handle ? ss_timeline_add(r->core, 0, handle, SS_TL_NONBLOCKING,
							   true) :
					   ss_timeline_null(r->core, 0);
		if (!r->timelines[i]) {
			snprintf(r->err, r->err_size,
				 "%u streams, and there is room for %u at once",
				 r->ev->stream_count, i);
			return false;
		}
	}
	r->time_us = r->ev->list[0].time_us;
	return true;
}

double ss_ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

double ss_calls_per_100(const struct ss_replay_result *r)
{
	return 100 * ss_ratio(r->driver_calls_after, r->allocations_after);
}

bool ss_replay(const struct ss_events *ev, const struct ss_replay_config *config,
	       struct ss_replay_result *out, char *err, size_t err_size)
{
	struct run r = {.ev = ev, .config = config, .err = err, .err_size = err_size};
	struct timespec from, to;

	memset(out, 0, sizeof(*out));
	clock_gettime(CLOCK_MONOTONIC, &from);
	out->refused = !start(&r);
	bool ok = !out->refused && replay_events(&r, out);
	clock_gettime(CLOCK_MONOTONIC, &to);
	out->seconds = (double)(to.tv_sec - from.tv_sec) +
		       (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	if (r.core)
		ss_stats(r.core, &(struct ss_stats_visitor){.pool = add_stats}, out);
	if (config->progress)
		ss_progress_clear();
	while (r.behind && r.reached < r.issued)
		reach_one(&r);
	ss_core_destroy(r.core);
	ss_fake_destroy(r.fake);
	tdestroy(r.live, free_nothing);
	free(r.timelines);
	free(r.blocks);
	free(r.behind);
	return ok;
}
