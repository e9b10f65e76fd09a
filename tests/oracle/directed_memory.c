/* SPDX-License-Identifier: MIT */
/* Tests memory pressure, thresholds, failures, pools and reset. */
#include <stdlib.h>
#include <string.h>

#include "directed.h"
#include "core/statistics.h"

#define BIG (32ull << 20)
#define CHECK(cond) d_check((cond), #cond, __LINE__)
#define W d_world()

static void threshold_exact(void)
{
	D(attr(4, 2 * BIG), alloc(0, NUL, BIG), alloc(1, NUL, BIG), alloc(2, NUL, BIG));
	D(free_(0, NUL), free_(1, NUL), free_(2, NUL));
	CHECK(given() == 3 * BIG);
	D(ssync(NUL));
	CHECK(given() == 2 * BIG);
	D(attr(4, BIG / 2), dsync());
	CHECK(given() == BIG); /* one more would leave less than was asked for */
}

static void threshold_other_stream(void)
{
	D(attr(4, 0), stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), alloc(1, S(1), BIG));
	D(stall(S(1)), free_(0, S(0)), free_(1, S(1)), ssync(S(0)));
	CHECK(given() == BIG); /* S(1) still runs, and nobody waited for it */
	D((struct op){.kind = OP_RELEASE}, dsync());
	CHECK(given() == 0);
}

static void trim_keeps(void)
{
	D(attr(4, 1ull << 40), alloc(0, NUL, BIG), alloc(1, NUL, BIG), free_(0, NUL), free_(1, NUL),
	  ssync(NUL), trim(BIG));
	CHECK(given() == BIG);
	D(trim(0));
	CHECK(given() == 0);
}

static void trim_in_flight(void)
{
	D(attr(4, 1ull << 40), stream(0, NB), alloc(0, S(0), BIG), stall(S(0)));
	D(free_(0, S(0)), trim(0));
	CHECK(given() == BIG);
}

#define MIB (1ull << 20)

/* An idle segment is exchanged for one of the right size, though its stream still has it: the
 * stream is asked whether it has completed. */
static void exchanges_what_streams_have(void)
{
	D(stream(0, NB), alloc(0, S(0), 80 * MIB), alloc(1, S(0), 20 * MIB),
	  alloc(2, S(0), 20 * MIB));
	D(stall(S(0)), free_(1, S(0)), free_(2, S(0)), alloc(3, S(0), 40 * MIB), free_(3, S(0)));
	CHECK(given() == 160 * MIB);
	/* A fifth of the used peak, 120 MiB, stays free beside what is in use if 20 MiB are cut:
	 * too little. */
	D((struct op){.kind = OP_RELEASE}, advance(), alloc(4, S(0), 10 * MIB));
	CHECK(given() == 150 * MIB);
}

/* Freed blocks merge before a longer range is cut, however often their sizes were repeated
 * before. */
static void merges_before_cutting(void)
{
	struct ss_timeline *tl = ss_timeline_null(W->core, 0);
	struct ss_pool *pool = ss_pool_default(W->core, 0);
	uint64_t before;
	void *p;

	D(attr(4, 1ull << 40), alloc(0, NUL, 2 * MIB), alloc(1, NUL, 8 * BIG));
	D(alloc(2, NUL, MIB), free_(2, NUL));
	for (int i = 0; i < 5000; i++) {
		CHECK(ss_alloc_async(W->core, pool, tl, MIB, &p) == SS_OK);
		CHECK(ss_free_async(W->core, p, tl) == SS_OK);
		W->pool[POOL_DEFAULT(0)].allocations++;
		W->pool[POOL_DEFAULT(0)].frees++;
	}
	D(alloc(2, NUL, MIB), alloc(3, NUL, MIB), free_(2, NUL), free_(3, NUL));
	D(free_(0, NUL), free_(1, NUL), ssync(NUL), trim(0));
	CHECK(given() == 0);
	before = given();
	for (int i = 4; i < 8; i++)
		D(alloc(i, NUL, MIB));
	D(alloc(8, NUL, 8 * MIB), free_(8, NUL), free_(4, NUL), free_(5, NUL));
	D(alloc(4, NUL, 2 * MIB), alloc(8, NUL, 8 * MIB));
	CHECK(given() == before + 12 * MIB);
}

static void decay(void)
{
	D(alloc(0, NUL, BIG), free_(0, NUL), ssync(NUL));
	CHECK(given() == BIG);
	D((struct op){.kind = OP_TICK, .n = 1500}, ssync(NUL));
	D((struct op){.kind = OP_TICK, .n = 1500}, ssync(NUL));
	CHECK(given() == 0);
}

/* A watcher releases what is due, and synchronizations leave that to it. A free tells it once, also
 * where all frees are hits; while a stream is busy nothing goes. */
static unsigned woken;
static uint64_t woken_ms;

static void count_woken(void *arg, uint64_t ms)
{
	woken++;
	woken_ms = ms;
}

static void decay_watched(void)
{
	struct op tick = {.kind = OP_TICK, .n = 1500}, half = {.kind = OP_TICK, .n = 500};
	struct ss_core *core = W->core;

	woken = 0;
	ss_decay_watch(core, count_woken, NULL);
	D(stream(0, NB), alloc(0, S(0), BIG), alloc(2, S(0), 4096), ssync(S(0)), tick);
	CHECK(ss_decay_next(core, 0) == UINT64_MAX && woken == 0);
	for (int i = 0; i < 20; i++)
		D(alloc(1, S(0), 4096), free_(1, S(0)));
	CHECK(woken == 1 && woken_ms <= 251);
	D(ssync(S(0)), tick);
	CHECK(ss_decay_next(core, 0) == UINT64_MAX); /* in each segment something is in use */
	D(tick, free_(0, S(0)), ssync(S(0)));
	CHECK(woken == 1 && given() > BIG);
	CHECK(ss_decay_next(core, 0) <= 1000);
	D(half);
	CHECK(ss_decay_next(core, 0) <= 500 && given() > BIG);
	D(tick, ssync(S(0)));
	CHECK(given() > BIG);
	CHECK(ss_decay_next(core, 0) == UINT64_MAX && given() < BIG);
	ss_decay_notify(core);
	D(alloc(0, S(0), BIG), kernel(S(0)), stall(S(0)), free_(0, S(0)));
	CHECK(woken == 2);
	for (int i = 0; i < 10; i++) {
		D(tick);
		CHECK(ss_decay_next(core, 0) < 32000 && given() > BIG);
	}
	/* Nobody synchronizes. It is asked for, found idle, and goes when it has been idle for long
	 * enough. */
	D((struct op){.kind = OP_RELEASE}, (struct op){.kind = OP_ADVANCE, .a = 1, .b = 255});
	D((struct op){.kind = OP_TICK, .n = 32000});
	CHECK(ss_decay_next(core, 0) <= 1000 && given() > BIG);
	D(tick);
	CHECK(ss_decay_next(core, 0) == UINT64_MAX && given() < BIG);
}

/* The device is busy whenever the watcher looks, and idle at each synchronization: those release
 * what is overdue, and the watcher is told when more is due. */
static void decay_overdue(void)
{
	struct op tick = {.kind = OP_TICK, .n = 1500};
	struct op run = {.kind = OP_ADVANCE, .a = 1, .b = 255};
	struct ss_core *core = W->core;

	woken = 0;
	ss_decay_watch(core, count_woken, NULL);
	D(stream(0, NB), alloc(0, S(0), BIG), free_(0, S(0)));
	CHECK(woken == 1);
	for (int i = 0; i < 2; i++) {
		D(kernel(S(0)), stall(S(0)), tick);
		CHECK(ss_decay_next(core, 0) < 32000 && given() == BIG);
		D((struct op){.kind = OP_RELEASE}, run, tick);
		woken = 0;
		D(ssync(S(0)));
		CHECK(i ? woken == 0 && given() == 0 : woken == 1 && woken_ms == 1000);
	}
}

/* The program is silent after a synchronization that comes soon after a look. The device was busy
 * in that look, and is not any more: the watcher does not wait as long as for a busy one. */
static void decay_goes_silent(void)
{
	struct op tick = {.kind = OP_TICK, .n = 32000}, bit = {.kind = OP_TICK, .n = 10};
	struct op run = {.kind = OP_ADVANCE, .a = 1, .b = 255};
	struct ss_core *core = W->core;

	ss_decay_watch(core, count_woken, NULL);
	D(stream(0, NB), alloc(0, S(0), BIG), kernel(S(0)), stall(S(0)), free_(0, S(0)));
	for (int i = 0; i < 10; i++) {
		D(tick);
		CHECK(ss_decay_next(core, 0) < 32000 && given() == BIG);
	}
	D((struct op){.kind = OP_RELEASE}, run, bit);
	woken = 0;
	for (int i = 0; i < 3; i++)
		D(ssync(S(0)));
	CHECK(woken == 1 && woken_ms <= 251 && given() == BIG);
	D((struct op){.kind = OP_TICK, .n = 251});
	CHECK(ss_decay_next(core, 0) <= 1000 && given() == BIG);
	D((struct op){.kind = OP_TICK, .n = 1001});
	CHECK(ss_decay_next(core, 0) == UINT64_MAX && given() == 0);
}

/* A look in the middle of a stream's round leaves the round with the memory that it had: no segment
 * of the stream is cut where a completed one fits. */
static void looks_within_round(void)
{
	static const uint64_t size[] = {8 * MIB, 16 * MIB, 24 * MIB, 32 * MIB};
	uint64_t first;

	D(stream(0, NB));
	for (int i = 0; i < 4; i++)
		D(alloc(i, S(0), size[i]));
	first = at(0);
	D(free_(0, S(0)), free_(1, S(0)), free_(2, S(0)), ssync(S(0)));
	(void)ss_decay_next(W->core, 0);
	D(free_(3, S(0)), alloc(0, S(0), size[0]));
	CHECK(at(0) == first);
}

/* A fence that covers a kernel that came later is never waited for. */
static void late_fence(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D(stall(S(0)), alloc(1, S(1), BIG));
	CHECK(!W->blk[1].used);
	CHECK(d_stats().reuse_internal == 0);
}

/* A stream that has not reached an older fence is not asked again for a new one at once. */
static void busy_left_alone(void)
{
	uint64_t then;

	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), stall(S(0)));
	D(free_(0, S(0)), alloc(1, S(1), BIG));
	then = W->moments;
	CHECK(then > 0);
	D(alloc(2, S(0), BIG), kernel(S(0)), free_(2, S(0)), alloc(3, S(1), BIG));
	CHECK(given() == 3 * BIG && W->moments == then);
	D((struct op){.kind = OP_RELEASE});
}

/* When memory is short, frees record fences of their own, and X waits for them on the device. */
static void internal(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), stall(S(0)),
	  free_(0, S(0)));
	uint64_t p = 0;
	D(alloc(1, S(1), BIG)); /* fails, and tells the core that memory is short */
	CHECK(!W->blk[1].used);
	D((struct op){.kind = OP_RELEASE});
	D(alloc(0, S(0), BIG), kernel(S(0)));
	p = at(0);
	D(free_(0, S(0)), alloc(2, S(1), BIG));
	CHECK(W->blk[2].used && at(2) == p);
	CHECK(d_stats().reuse_internal == 1);
	D(kernel(S(1)));
}

static void internal_off(void)
{
	D(attr(3, 0), stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), stall(S(0)));
	D(free_(0, S(0)), alloc(1, S(1), BIG), alloc(0, S(0), BIG), free_(0, S(0)));
	D(alloc(2, S(1), BIG));
	CHECK(!W->blk[2].used && d_stats().reuse_internal == 0);
}

/* A device that lags: 4 MiB in one segment with 3 MiB completed, and 1 MiB that stream 0
 * frees beside them while it runs. */
static uint64_t lagging(void)
{
	uint64_t freed;

	D(stream(0, NB), stream(1, NB), alloc(0, S(1), MIB), alloc(1, S(0), 3 * MIB));
	D(stall(S(1)), free_(0, S(1)), alloc(2, S(0), MIB));
	CHECK(given() == 8 * MIB); /* stream 1 was asked, and is not at its end */
	freed = at(2);
	D(stall(S(0)), free_(2, S(0)));
	return freed;
}

/* A completed range stays completed when the range beside it is freed. */
static void lag_leaves_completed(void)
{
	lagging();
	D(alloc(3, S(1), 3 * MIB));
	CHECK(W->blk[3].used && given() == 8 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

/* What is left of a range of the stream's own is still its own. */
static void lag_keeps_marks(void)
{
	lagging();
	D(alloc(3, S(0), 2 * MIB), event(0), record(0, S(0)), free_(3, S(0)));
	/* 1 MiB and 2 MiB side by side, freed before and after the event. */
	D(alloc(4, S(0), 2 * MIB + MIB / 2), alloc(5, S(1), MIB));
	CHECK(given() == 8 * MIB);
	D(alloc(6, S(1), MIB), alloc(7, S(1), MIB / 2));
	CHECK(given() == 12 * MIB); /* the completed MiB, and then not what stream 0 freed */
	D((struct op){.kind = OP_RELEASE});
}

/* An allocation succeeds if it fits once idle memory of other pools has gone back. */
static void makes_room(void)
{
	D(calloc_(0, BIG), cfree(0, true), alloc(1, NUL, BIG));
	CHECK(W->blk[1].used);
}

/* Memory that was freed behind a kernel fits once the kernel ends: the allocation polls for
 * that. */
static void makes_room_later(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)),
	  alloc(1, S(1), BIG));
	CHECK(W->blk[1].used);
	D(kernel(S(1)));
}

static void failure_changes_nothing(void)
{
	D(alloc(0, NUL, 4096));
	uint64_t before = given();
	struct ss_pool_stats st = d_stats();
	D((struct op){.kind = OP_FAIL, .a = D_SEGMENT_ALLOC, .b = 0});
	W->inject[D_SEGMENT_ALLOC].always = true;
	D(alloc(1, NUL, BIG));
	CHECK(!W->blk[1].used && given() == before);
	CHECK(d_stats().used == st.used && d_stats().reserved == st.reserved);
	W->inject[D_SEGMENT_ALLOC].always = W->inject[D_SEGMENT_ALLOC].on = false;
	D(alloc(1, NUL, 8 * BIG));
	CHECK(!W->blk[1].used && given() == before && d_stats().out_of_memory >= 1);
}

/* A device that refuses once, with whatever error, is asked again. */
static void refused_once(void)
{
	D((struct op){.kind = OP_FAIL, .a = D_SEGMENT_ALLOC, .b = 0}, alloc(1, NUL, BIG));
	CHECK(W->blk[1].used && d_stats().out_of_memory == 0);
}

/* The ladder must not map chunks and give them back again without end. */
static void prefix_no_run(void)
{
	D(stream(0, NB), alloc(0, S(0), 4 * MIB), alloc(1, S(0), 4 * MIB), alloc(2, S(0), 4 * MIB),
	  alloc(3, S(0), 4 * MIB));
	D(free_(0, S(0)), free_(2, S(0)), ssync(S(0)), alloc(4, S(0), 8 * MIB));
	CHECK(!W->blk[4].used && d_stats().out_of_memory == 1);
}

/* A run needs the lowest gap and the last one, for which the device has too little. What filled the
 * lowest goes again, although what lies beside it is still in use. */
static void prefix_fails_whole(void)
{
	D(stream(0, NB), alloc(0, S(0), 4 * MIB), alloc(1, S(0), MIB), alloc(2, S(0), 3 * MIB));
	D(free_(0, S(0)), ssync(S(0)), trim(0));
	uint64_t before = given();
	CHECK(before == 4 * MIB);
	D(stall(S(0)), free_(1, S(0)), alloc(3, S(0), 12 * MIB));
	CHECK(!W->blk[3].used && given() == before);
}

static void pool_dies_with_last_block(void)
{
	D((struct op){.kind = OP_POOL_CREATE, .a = 0, .c = 7});
	struct op a = alloc(0, NUL, BIG);
	a.c = 0;
	D(a, (struct op){.kind = OP_POOL_DESTROY, .a = 0});
	CHECK(given() == BIG);
	D(kernel(NUL), ssync(NUL), free_(0, NUL), ssync(NUL));
	CHECK(given() == 0);
}

static void reset(void)
{
	D(stream(0, NB), alloc(0, S(0), BIG), kernel(S(0)), calloc_(1, BIG), free_(0, S(0)));
	D((struct op){.kind = OP_RESET});
	D((struct op){.kind = OP_FREE_BAD, .a = 0, .b = NUL, .c = 1}, alloc(2, NUL, BIG));
	CHECK(given() == BIG);
}

/* HIP forbids that another thread allocates during a reset. If one does it gets nothing that is
 * handed out again. */
static void reset_beside(void)
{
	D(alloc(0, NUL, BIG));
	BESIDE((struct op){.kind = OP_RESET}, calloc_(2, BIG), alloc(4, NUL, BIG / 2));
	D(calloc_(0, BIG), alloc(1, NUL, BIG / 2));
	CHECK(W->blk[0].used && W->blk[1].used && given() == BIG + BIG / 2);
}

static void high_marks(void)
{
	uint64_t v = 0;
	struct ss_pool *p = W->pool[POOLS].p;

	D(alloc(0, NUL, BIG), alloc(1, NUL, BIG), free_(0, NUL), free_(1, NUL));
	ss_pool_get_attr(p, SS_ATTR_USED_HIGH, &v);
	CHECK(v == 2 * BIG);
	D(attr(8, 0), alloc(0, NUL, BIG));
	ss_pool_get_attr(p, SS_ATTR_USED_HIGH, &v);
	CHECK(v == BIG);
	CHECK(ss_pool_set_attr(W->core, p, SS_ATTR_USED_HIGH, 1) == SS_ERR_INVALID);
	CHECK(ss_pool_set_attr(W->core, p, SS_ATTR_USED_CURRENT, 0) == SS_ERR_INVALID);
}

static void free_twice(void)
{
	D(alloc(0, NUL, 4096), calloc_(1, 4096));
	void *p = (void *)(uintptr_t)at(0), *q = (void *)(uintptr_t)at(1);
	struct ss_timeline *tl = ss_timeline_null(W->core, 0);
	int here = 0;

	CHECK(ss_free_async(W->core, q, tl) == SS_ERR_CLASSIC);
	D(free_(0, NUL), cfree(1, true));
	CHECK(ss_free_async(W->core, p, tl) == SS_ERR_INVALID);
	CHECK(ss_free_classic(W->core, q, NULL) == SS_ERR_INVALID);
	CHECK(ss_free_async(W->core, &here, tl) == SS_ERR_FOREIGN);
	CHECK(ss_free_classic(W->core, &here, NULL) == SS_ERR_FOREIGN);
}

const struct d_test directed_memory[] = {
	T(threshold_exact),
	T(threshold_other_stream),
	T(trim_keeps),
	T(trim_in_flight),
	T(exchanges_what_streams_have),
	{"exchanges_where_release_waits", exchanges_what_streams_have, .release_waits = true},
	T(merges_before_cutting),
	T(decay),
	T(decay_watched),
	{"decay_watched_where_release_waits", decay_watched, .release_waits = true},
	T(looks_within_round),
	{"decay_overdue", decay_overdue, .release_waits = true},
	{"decay_goes_silent", decay_goes_silent, .release_waits = true},
	{"late_fence", late_fence, .vram = 48},
	{"internal", internal, .vram = 48},
	T(busy_left_alone),
	T(lag_leaves_completed),
	T(lag_keeps_marks),
	{"internal_off", internal_off, .vram = 48},
	{"makes_room", makes_room, .vram = 48},
	{"makes_room_later", makes_room_later, .vram = 48},
	{"failure_changes_nothing", failure_changes_nothing, .vram = 128},
	{"refused_once", refused_once, .vram = 128},
	{"prefix_no_run", prefix_no_run, .vram = 16, .prefix = true},
	{"prefix_fails_whole", prefix_fails_whole, .vram = 16, .prefix = true},
	T(pool_dies_with_last_block),
	T(reset),
	T(reset_beside),
	T(high_marks),
	T(free_twice),
	{.name = NULL},
};
