/* SPDX-License-Identifier: MIT */
/*
 * Tests when an allocation waits for frees in flight, and when it does not. While the core waits
 * the device makes progress, as far as its kernels end.
 */
#include "core/order/order.h"
#include "directed.h"

#define MIB (1ull << 20)
#define BIG (32ull << 20)
#define CHECK(cond) d_check((cond), #cond, __LINE__)
#define W d_world()

static struct op release(void)
{
	return (struct op){.kind = OP_RELEASE};
}

/* ---- hipMalloc ------------------------------------------------------------------------------ */

/* hipMalloc, kernel, hipFree without a wait, on a device that lags: beyond eight blocks the host
 * waits for the oldest. */
static void malloc_waits(void)
{
	for (int i = 0; i < 40; i++)
		D(calloc_(0, BIG), kernel(NUL), cfree(0, false));
	CHECK(given() <= 8 * BIG);
}

/* On a device that stands still the pool grows, after waits that become ever shorter. There is no
 * wait beside one for a value. */
static void malloc_not_long(void)
{
	uint64_t then;

	D(stall(NUL));
	for (int i = 0; i < 40; i++)
		D(calloc_(0, BIG), kernel(NUL), cfree(0, false));
	CHECK(given() == 40 * BIG && W->now_ms > 0 && W->now_ms < 500);
	then = W->now_ms;
	D(host(NUL));
	for (int i = 0; i < 40; i++)
		D(calloc_(0, BIG), kernel(NUL), cfree(0, false));
	CHECK(given() == 80 * BIG && W->now_ms == then);
	D((struct op){.kind = OP_RELEASE});
}

/* There is nothing to wait for where the question whether a command needs the host has already
 * shown that the oldest has completed. */
static void malloc_seen_before(void)
{
	const struct op others[] = {advance()};

	for (int i = 0; i < 3; i++)
		D(calloc_(i, BIG));
	D(stall(NUL), host(NUL));
	for (int i = 0; i < 3; i++)
		D(cfree(i, false));
	D(calloc_(3, BIG)); /* it records the fence */
	D(release());
	d_beside(others, 1, calloc_(4, BIG));
	CHECK(given() == 4 * BIG && W->now_ms == 0);
}

/* The same where everything took long before. */
static void malloc_not_always(void)
{
	uint64_t then;

	for (int round = 0; round < 2; round++) {
		then = W->now_ms;
		D(stall(NUL));
		for (int i = 0; i < 30; i++)
			D(calloc_(0, BIG << round), kernel(NUL), cfree(0, false));
		if (!round)
			D((struct op){.kind = OP_TICK, .n = 5000}, release(), advance(),
			  calloc_(0, BIG), cfree(0, false));
	}
	CHECK(W->now_ms - then > 500 && W->now_ms - then < 6000);
	D(release());
}

/* There is no wait while a stream captures. */
static void malloc_not_in_capture(void)
{
	const struct op capture = {.kind = OP_CAPTURE, .a = S(1)};

	D(stream(0, NB), stream(1, NB), stall(S(0)));
	for (int i = 0; i < 6; i++)
		D(calloc_(0, BIG), kernel(S(0)), cfree(0, false));
	D(capture, calloc_(1, BIG));
	CHECK(given() == 7 * BIG && W->now_ms == 0);
	D(capture, calloc_(2, BIG));
	CHECK(given() == 8 * BIG && W->now_ms > 0);
	D((struct op){.kind = OP_RELEASE});
}

/* ---- streams -------------------------------------------------------------------------------- */

static struct op capture(int s)
{
	return (struct op){.kind = OP_CAPTURE, .a = (uint8_t)s};
}

/* One stream frees what another needs: that waits for the oldest of it, and the pool does not
 * grow. */
static void stream_waits(void)
{
	D(stream(0, NB), stream(1, NB));
	for (int i = 0; i < 20; i++)
		D(alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)), alloc(1, S(1), BIG),
		  kernel(S(1)), free_(1, S(1)));
	CHECK(given() == BIG && d_stats().waits > 0);
}

/* The option 0 and an empty wish to wait are the same. */
static void stream_never_waits(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)),
	  alloc(1, S(1), BIG));
	CHECK(given() == 2 * BIG && d_stats().waits == 0 && W->now_ms == 0);
}

/* On a stream that stands still the pools grow, after some milliseconds in all. */
static void stream_not_long(void)
{
	D(stream(0, NB), stream(1, NB), stall(S(0)));
	for (int i = 0; i < 30; i++)
		D(alloc(0, S(0), BIG), free_(0, S(0)), alloc(1 + i, S(1), BIG));
	CHECK(given() == 31 * BIG && W->now_ms > 0 && W->now_ms < 120);
	D(release());
}

/* The same where waits that help come in between: each of those takes one failure back, but all
 * failures together cost no more than the budget. */
static void stream_not_often(void)
{
	unsigned long helped = 0;
	uint64_t then, stood = 0;

	D(stream(0, NB), stream(1, NB));
	for (int i = 0; i < 12; i++) {
		D(stall(S(0)), alloc(0, S(0), BIG), free_(0, S(0)));
		then = W->now_ms;
		D(alloc(2 + i, S(1), BIG));
		stood += W->now_ms - then;
		D(release(), advance(), ssync(S(0)), ssync(S(1)),
		  (struct op){.kind = OP_TICK, .n = 100});
		for (int k = 0; k < 3; k++) {
			uint64_t more = (uint64_t)(i + 2 + k) * BIG;
			unsigned long before = d_stats().waits;

			D(alloc(0, S(0), more), kernel(S(0)), free_(0, S(0)), alloc(1, S(1), more),
			  kernel(S(1)), free_(1, S(1)));
			helped += d_stats().waits - before;
		}
		D(dsync(), trim(0), attr(SS_ATTR_RESERVED_HIGH, 0));
	}
	CHECK(helped >= 24 && stood > 50 && stood <= 100 + W->now_ms / 20 + 12);
	D(release());
}

/* A pool that has been larger grows to that again without a wait. */
static void stream_within_peak(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), alloc(1, S(0), BIG), free_(0, S(0)),
	  free_(1, S(0)), ssync(S(0)), trim(0));
	CHECK(given() == 0);
	D(alloc(0, S(0), BIG), stall(S(0)), free_(0, S(0)), alloc(1, S(1), BIG));
	CHECK(given() == 2 * BIG && d_stats().waits == 0 && W->now_ms == 0);
	D(release());
}

/* There is no wait for less than is asked for. */
static void stream_not_for_little(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), stall(S(0)), free_(0, S(0)),
	  alloc(1, S(1), 2 * BIG));
	CHECK(given() == 3 * BIG && d_stats().waits == 0 && W->now_ms == 0);
	D(release());
}

static void stream_not_in_capture(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), alloc(0, S(0), BIG), kernel(S(0)),
	  free_(0, S(0)), capture(S(2)), alloc(1, S(1), BIG));
	CHECK(given() == 2 * BIG && W->now_ms == 0);
	D(capture(S(2)));
}

/* ---- what may need the host
 * -------------------------------------------------------------------- */

/* Stream 0 frees what stream 1 needs. How many times was that waited for? */
static unsigned long waits_of_two(void)
{
	unsigned long before = d_stats().waits;

	D(alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)), alloc(1, S(1), BIG), kernel(S(1)),
	  free_(1, S(1)));
	return d_stats().waits - before;
}

/* There is no wait while a host function runs. */
static void not_beside_host_functions(void)
{
	D(stream(0, NB), stream(1, NB), function());
	CHECK(waits_of_two() == 0 && given() == 2 * BIG && W->now_ms == 0);
	D(function(), dsync(), trim(0), attr(SS_ATTR_RESERVED_HIGH, 0));
	CHECK(given() == 0 && waits_of_two() == 1 && given() == BIG);
}

/* One that begins ends the wait. */
static void function_while_waiting(void)
{
	D(stream(0, NB), stream(1, NB), stall(S(0)), alloc(0, S(0), BIG), free_(0, S(0)));
	d_in_nap(function(), alloc(1, S(1), BIG));
	CHECK(given() == 2 * BIG && d_stats().waits == 1 && W->now_ms == 0);
	D(function(), release());
}

/* There is no wait beside a wait for a value, on whatever stream. */
static void not_beside_values(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), host(S(2)));
	CHECK(waits_of_two() == 0 && given() == 2 * BIG && W->now_ms == 0);
}

/* Once the stream is known to have come past it, there are waits again: by the fence that the
 * first allocation asked for, */
static void value_known_by_fence(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), host(S(2)));
	CHECK(waits_of_two() == 0 && given() == 2 * BIG);
	D(advance(), alloc(2, S(0), 2 * BIG), kernel(S(0)), free_(2, S(0)));
	CHECK(!ss_host_needed(W->core));
	/* by the one that then stands behind the next of them, */
	D(host(S(2)), advance());
	ss_fences_poll(W->core, NULL, -1);
	CHECK(!ss_host_needed(W->core));
	D(dsync(), trim(0), attr(SS_ATTR_RESERVED_HIGH, 0));
	CHECK(given() == 0 && waits_of_two() == 1 && given() == BIG);
}

/* by a synchronization of the application: with the stream, */
static void value_known_by_stream(void)
{
	for (int kind = NB; kind <= BL; kind++) {
		D(stream(2 + kind, kind), host(S(2 + kind)), ssync(S(2 + kind)));
		CHECK(!ss_host_needed(W->core));
	}
	D(stream(0, NB), stream(1, NB));
	CHECK(waits_of_two() == 1 && given() == BIG);
}

/* with the null stream, whose fences could tell nothing beside blocking streams, */
static void value_known_by_null(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, BL), host(NUL), host(S(2)), advance());
	CHECK(ss_host_needed(W->core));
	D(ssync(NUL));
	CHECK(waits_of_two() == 1 && given() == BIG);
}

/* with the device, also where the stream is gone, */
static void value_known_by_device(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), host_stall(S(2)), sdestroy(2));
	CHECK(ss_host_ask(W->core));
	D(stream(2, NB));
	CHECK(waits_of_two() == 0 && given() == 2 * BIG);
	D(release(), dsync());
	CHECK(!ss_host_needed(W->core));
}

/* or because its stream ended behind it. */
static void value_known_by_end(void)
{
	D(stream(2, NB), host(S(2)), advance(), sdestroy(2));
	CHECK(!ss_host_needed(W->core));
}

/* What was synchronized with says nothing of what came later. */
static void value_after_synchronization(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, BL), host(S(2)));
	D((struct op){.kind = OP_BEGIN, .b = S(2), .c = 3}, (struct op){.kind = OP_REAL},
	  host_stall(S(2)), (struct op){.kind = OP_END});
	CHECK(ss_host_needed(W->core) && waits_of_two() == 0 && given() == 2 * BIG);
	D(release());
}

/* One that another thread enqueues ends the wait. */
static void value_while_waiting(void)
{
	D(stream(0, NB), stream(1, NB), stall(S(0)), alloc(0, S(0), BIG), free_(0, S(0)));
	d_in_nap(host_stall(S(1)), alloc(1, S(1), BIG));
	CHECK(given() == 2 * BIG && d_stats().waits == 1 && W->now_ms == 0);
	D(release());
}

/* A call that enqueues one counts from its begin, one that failed only until its end. */
static void value_while_called(void)
{
	D(stream(0, NB), stream(1, NB));
	ss_host_begin(W->core);
	CHECK(waits_of_two() == 0 && given() == 2 * BIG);
	ss_host_end(W->core, W->s[W->slot[S(0)]].tl, false);
	CHECK(!ss_host_needed(W->core));
}

/* Nobody knows of one on a stream that has no timeline. */
static void value_nowhere(void)
{
	ss_host_begin(W->core);
	ss_host_end(W->core, NULL, true);
	D(stream(0, NB), stream(1, NB), dsync());
	CHECK(waits_of_two() == 0 && given() == 2 * BIG);
}

/* ---- whose memory ---------------------------------------------------------------------------- */

/* Where moving waits for the device, a stream's own chunks move once that is idle. */
static void own_chunks_move(void)
{
	D(stream(0, NB), alloc(0, S(0), BIG), alloc(1, S(0), BIG), alloc(2, S(0), BIG),
	  kernel(S(0)));
	D(free_(0, S(0)), free_(2, S(0)), alloc(3, S(0), 2 * BIG));
	CHECK(given() == 3 * BIG && d_stats().waits == 1);
}

/* If its own memory will do, it does not wait for a stream that stands still. */
static void own_chunks_alone(void)
{
	D(stream(0, NB), stream(1, NB), alloc(4, S(1), BIG), stall(S(1)), free_(4, S(1)));
	D(alloc(0, S(0), BIG), alloc(1, S(0), BIG), alloc(2, S(0), BIG), kernel(S(0)));
	uint64_t then = W->now_ms;
	D(free_(0, S(0)), free_(2, S(0)), alloc(3, S(0), 2 * BIG));
	CHECK(given() == 4 * BIG && d_stats().waits >= 1 && W->now_ms <= then + 5);
	D(release());
}

/* There is no wait for the device if no chunk would be free from end to end. */
static void parts_of_chunks_do_not_move(void)
{
	D(stream(0, NB), stream(1, NB));
	for (int i = 0; i < 8; i++)
		D(alloc(i, S(0), MIB));
	D(kernel(S(0)), kernel(S(1)));
	for (int i = 0; i < 8; i += 2)
		D(free_(i, S(0)));
	D(alloc(8, S(0), 4 * MIB));
	CHECK(given() == 12 * MIB && d_stats().waits == 0 && W->now_ms == 0);
}

/* What has completed cannot move: never, or not while the device has work. So a stream waits for
 * what another one freed, although there would be enough of the rest. */
static void waits_where_nothing_moves(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB));
	for (int i = 0; i < 5; i++)
		D(alloc(i, S(0), i == 4 ? 2 * BIG : BIG));
	D(free_(0, S(0)), free_(2, S(0)), ssync(S(0)), kernel(S(0)), kernel(S(2)), free_(4, S(0)));
	D(alloc(5, S(1), 2 * BIG));
	CHECK(given() == 6 * BIG && d_stats().waits == 1 && d_stats().remaps == 0);
}

#define WAITS(f) { .name = #f, .fn = f, .waits = true }
const struct d_test directed_waits[] = {
	WAITS(malloc_waits),
	WAITS(malloc_not_long),
	WAITS(malloc_seen_before),
	WAITS(malloc_not_always),
	WAITS(malloc_not_in_capture),
	WAITS(stream_waits),
	T(stream_never_waits),
	WAITS(stream_not_long),
	WAITS(stream_not_often),
	WAITS(stream_within_peak),
	WAITS(stream_not_for_little),
	WAITS(stream_not_in_capture),
	WAITS(not_beside_host_functions),
	WAITS(function_while_waiting),
	WAITS(not_beside_values),
	WAITS(value_known_by_fence),
	WAITS(value_known_by_stream),
	WAITS(value_known_by_null),
	WAITS(value_known_by_device),
	WAITS(value_known_by_end),
	WAITS(value_after_synchronization),
	WAITS(value_while_waiting),
	WAITS(value_while_called),
	WAITS(value_nowhere),
	{"own_chunks_move_on_an_idle_device", own_chunks_move, .vmm = true, .release_waits = true,
	 .waits = true},
	{"parts_of_chunks_do_not_move", parts_of_chunks_do_not_move, .vmm = true,
	 .release_waits = true, .waits = true},
	{"waits_where_nothing_may_move", waits_where_nothing_moves, .vmm = true,
	 .release_waits = true, .waits = true},
	{"waits_where_nothing_moves", waits_where_nothing_moves, .prefix = true, .waits = true},
	{"own_chunks_alone", own_chunks_alone, .vmm = true, .waits = true},
	{.name = NULL},
};
