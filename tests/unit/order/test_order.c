/* SPDX-License-Identifier: MIT */
/*
 * Tests core/order alone: which use comes after which, by events, fences and synchronizations. A free is
 * only a position here: ss_timeline_now() of its stream at that time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/order/order.h"
#include "driver/fake/fake.h"

#define A ((void *)0x1000)
#define B ((void *)0x2000)
#define C ((void *)0x3000)
#define EVENT ((void *)0x10000)
#define OTHER ((void *)0x20000)

static struct ss_core core;
static struct ss_fake *fake;

/* The last report of a synchronization. */
static struct {
	unsigned count;
	int dev;
	struct ss_timeline *tl;
	uint64_t pos;
	bool idle;
} reported;

static void synchronized(struct ss_core *c, int dev, struct ss_timeline *tl, uint64_t pos, bool idle)
{
	reported.count++;
	reported.dev = dev;
	reported.tl = tl;
	reported.pos = pos;
	reported.idle = idle;
}

static int setup(void **state)
{
	struct ss_fake_config config = {.devices = 2};
	static uint64_t serials;

	fake = ss_fake_create(&config);
	memset(&core, 0, sizeof(core));
	memset(&reported, 0, sizeof(reported));
	core.drv = ss_fake_driver(fake);
	ss_options_default(&core.opt);
	core.devices = 2;
	core.serial = ++serials;
	return ss_order_init(&core, synchronized) ? 0 : -1;
}

static int teardown(void **state)
{
	ss_order_finish(&core);
	ss_fake_destroy(fake); /* aborts if a fence leaked */
	assert_int_equal(core.host_bytes, 0);
	return 0;
}

static struct ss_timeline *stream(void *native)
{
	struct ss_timeline *tl = ss_timeline_add(&core, 0, native, SS_TL_NONBLOCKING, true);

	assert_non_null(tl);
	return tl;
}

static struct ss_timeline *blocking(void *native)
{
	struct ss_timeline *tl = ss_timeline_add(&core, 0, native, SS_TL_BLOCKING, true);

	assert_non_null(tl);
	return tl;
}

static void record(void *event, struct ss_timeline *tl, bool ok)
{
	struct ss_token t = ss_record_begin(&core, event, tl);

	ss_record_end(&core, &t, ok);
}

static void wait_for(void *event, struct ss_timeline *tl, bool ok)
{
	struct ss_token t = ss_wait_begin(&core, event, tl);

	ss_wait_end(&core, &t, ok);
}

static void sync_with(struct ss_timeline *tl, bool ok, bool threshold)
{
	struct ss_token t = ss_stream_sync_begin(&core, tl);

	ss_sync_end(&core, &t, ok, threshold);
}

static void sync_device(int dev)
{
	struct ss_token t = ss_device_sync_begin(&core, dev);

	ss_sync_end(&core, &t, true, false);
}

/* Is everything that x does from now on ordered after position n of tl? */
static bool ordered(struct ss_timeline *x, struct ss_timeline *tl, uint64_t n)
{
	struct ss_row *row = ss_row_of(&core, x);
	bool yes = n <= ss_row_get(row, ss_timeline_slot(tl));

	ss_row_put(row);
	return yes;
}

static bool completed(struct ss_timeline *tl, uint64_t n)
{
	return ss_mark_reached(&core, ss_timeline_slot(tl), n, true);
}

static bool synced(struct ss_timeline *tl, uint64_t n)
{
	return ss_mark_reached(&core, ss_timeline_slot(tl), n, false);
}

static uint64_t recorded(void)
{
	return ss_fake_counts(fake).fence_record;
}

/* ---- events ---------------------------------------------------------------- */

static void test_event_orders(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B), *c = stream(C);
	uint64_t before = ss_timeline_now(a), after;

	record(EVENT, a, true);
	after = ss_timeline_now(a);
	wait_for(EVENT, b, true);
	assert_true(ordered(b, a, before));
	assert_false(ordered(b, a, after));
	assert_false(ordered(c, a, before));
	assert_false(ordered(a, b, 1));
	/* A record of b passes on what b is ordered after. */
	record(OTHER, b, true);
	wait_for(OTHER, c, true);
	assert_true(ordered(c, a, before));
	assert_false(ordered(c, a, after));
	assert_false(completed(a, before));
}

/* A wait or a query grants the clock that the event had when the call began, if it still has it. */
static void test_event_recorded_again(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t first = ss_timeline_now(a);
	struct ss_token w, q, r, s;

	record(EVENT, a, true);
	w = ss_wait_begin(&core, EVENT, b);
	q = ss_event_sync_begin(&core, EVENT);
	record(EVENT, a, true);
	ss_wait_end(&core, &w, true);
	ss_sync_end(&core, &q, true, false);
	assert_false(ordered(b, a, first));
	assert_false(completed(a, first));
	/* Two records at once leave no clock, one after the other does. */
	r = ss_record_begin(&core, EVENT, a);
	s = ss_record_begin(&core, EVENT, a);
	ss_record_end(&core, &r, true);
	ss_record_end(&core, &s, true);
	wait_for(EVENT, b, true);
	assert_false(ordered(b, a, first));
	/* Nor is there one while a record is in progress. */
	r = ss_record_begin(&core, EVENT, a);
	wait_for(EVENT, b, true);
	assert_false(ordered(b, a, first));
	ss_record_end(&core, &r, true);
	wait_for(EVENT, b, true);
	assert_true(ordered(b, a, first));
}

static void test_event_without_clock(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t n = ss_timeline_now(a);

	record(EVENT, a, true);
	ss_event_add(&core, EVENT); /* a new event at the old address */
	wait_for(EVENT, b, true);
	record(EVENT, a, true);
	ss_event_forget(&core, EVENT);
	wait_for(EVENT, b, true);
	record(EVENT, a, true);
	ss_event_taint(&core, EVENT, false);
	wait_for(EVENT, b, true);
	assert_false(ordered(b, a, n));
	ss_event_taint(&core, OTHER, true);
	record(OTHER, a, true);
	wait_for(OTHER, b, true);
	assert_false(ordered(b, a, n));
	record(EVENT, a, true);
	ss_distrust(&core, "test");
	wait_for(EVENT, b, true);
	assert_false(ordered(b, a, n));
}

static void test_failed_calls(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t n = ss_timeline_now(a);
	struct ss_token t;

	record(EVENT, a, false);
	wait_for(EVENT, b, true);
	assert_false(ordered(b, a, n));
	record(EVENT, a, true);
	wait_for(EVENT, b, false);
	assert_false(ordered(b, a, n));
	t = ss_event_sync_begin(&core, EVENT);
	ss_sync_end(&core, &t, false, true);
	sync_with(a, false, true);
	t = ss_device_sync_begin(&core, 0);
	ss_sync_end(&core, &t, false, true);
	assert_false(completed(a, n));
	assert_int_equal(reported.count, 0);
	wait_for(EVENT, b, true);
	assert_true(ordered(b, a, n));
}

static void test_event_synced(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t before = ss_timeline_now(a), after, on_b = ss_timeline_now(b);
	struct ss_token t;

	record(OTHER, b, true);
	wait_for(OTHER, a, true);
	record(EVENT, a, true);
	after = ss_timeline_now(a);
	t = ss_event_sync_begin(&core, EVENT);
	ss_sync_end(&core, &t, true, true);
	assert_true(synced(a, before));
	assert_true(synced(b, on_b));
	assert_false(completed(a, after));
	assert_int_equal(reported.count, 1);
	assert_ptr_equal(reported.tl, a);
	assert_int_equal(reported.dev, 0);
}

/* A record covers what came before its call, and what its stream was ordered after then. */
static void test_event_covers_no_more(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B), *c = stream(C);
	struct ss_timeline *s = blocking((void *)0x4000), *null = ss_timeline_null(&core, 0);
	uint64_t meanwhile, on_c = ss_timeline_now(c), on_null = ss_timeline_now(null);
	struct ss_token t = ss_record_begin(&core, EVENT, a);

	meanwhile = ss_timeline_now(a);
	ss_record_end(&core, &t, true);
	record(OTHER, c, true);
	wait_for(OTHER, a, true);
	wait_for(EVENT, b, true);
	assert_true(ordered(a, c, on_c));
	assert_true(ordered(b, a, meanwhile - 1));
	assert_false(ordered(b, a, meanwhile));
	assert_false(ordered(b, c, on_c));
	record(EVENT, s, true);
	wait_for(EVENT, b, true);
	assert_false(ordered(b, null, on_null));
}

/* ---- the common case in one call --------------------------------------------- */

static int depth, long_ways, result;
static void *seen_inside;

static int real_record(void *event, void *native)
{
	assert_int_equal(depth, 1);
	seen_inside = native;
	return result;
}

static int long_record(void *event, void *native)
{
	long_ways++;
	return 0;
}

static int real_wait(void *native, void *event, unsigned flags)
{
	assert_int_equal(depth, 1);
	return result;
}

static int long_wait(void *native, void *event, unsigned flags)
{
	long_ways++;
	return 0;
}

static int real_sync(void *handle)
{
	assert_int_equal(depth, 1);
	return result;
}

static int long_sync(void *handle)
{
	long_ways++;
	return 0;
}

static int failed(int err)
{
	return err + 1;
}

static const struct ss_record_call record_call = {real_record, long_record};
static const struct ss_wait_call wait_call = {real_wait, long_wait};
static const struct ss_sync_call sync_call = {real_sync, long_sync, failed};

static void test_usual_case(void **state)
{
	struct ss_timeline *a, *b;
	uint64_t n;

	depth = long_ways = result = 0;
	ss_record(&core, EVENT, A, &record_call, &depth);
	a = stream(A);
	b = stream(B);
	ss_record(&core, EVENT, A, &record_call, &depth); /* the event is not known yet */
	ss_wait(&core, B, EVENT, 0, &wait_call, &depth);
	ss_event_sync(&core, EVENT, true, &sync_call, &depth);
	ss_stream_sync(&core, C, &sync_call, &depth);
	assert_int_equal(long_ways, 5);
	record(EVENT, a, true);

	n = ss_timeline_now(a);
	result = 7;
	assert_int_equal(ss_record(&core, EVENT, A, &record_call, &depth), 7);
	ss_wait(&core, B, EVENT, 0, &wait_call, &depth);
	assert_int_equal(ss_stream_sync(&core, A, &sync_call, &depth), 8);
	result = 0;
	assert_false(ordered(b, a, n));
	assert_false(completed(a, n));
	record(EVENT, a, true); /* a failed record leaves no clock, and the long way */

	n = ss_timeline_now(a);
	assert_int_equal(ss_record(&core, EVENT, A, &record_call, &depth), 0);
	assert_ptr_equal(seen_inside, A);
	assert_int_equal(ss_wait(&core, B, EVENT, 0, &wait_call, &depth), 0);
	assert_true(ordered(b, a, n));
	assert_false(ordered(b, a, ss_timeline_now(a)));
	assert_int_equal(ss_event_sync(&core, EVENT, true, &sync_call, &depth), 0);
	assert_true(synced(a, n));
	n = ss_timeline_now(a);
	assert_int_equal(ss_stream_sync(&core, A, &sync_call, &depth), 0);
	assert_true(synced(a, n));
	assert_false(completed(a, ss_timeline_now(a)));
	assert_int_equal(long_ways, 5);
	assert_int_equal(depth, 0);
}

/* ---- fences ------------------------------------------------------------------ */

static void test_fence_completes(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t on_b = ss_timeline_now(b), n, after;

	record(EVENT, b, true);
	wait_for(EVENT, a, true);
	n = ss_timeline_now(a);
	ss_fake_enqueue(fake, 0, A);
	assert_false(ss_fence_asked(&core, a, n));
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	after = ss_timeline_now(a);
	assert_true(ss_fence_asked(&core, a, n));
	assert_false(ss_fence_asked(&core, a, after));
	assert_int_equal(ss_fence_pending(a), 1);
	/* No second fence is recorded while one is on its way. */
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	assert_int_equal(recorded(), 1);
	assert_false(ss_fence_poll(&core, a, -1));
	assert_false(completed(a, n));
	ss_fake_drain(fake, 0, A);
	assert_false(ss_fence_poll(&core, NULL, 1)); /* another device */
	assert_true(ss_fence_poll(&core, NULL, 0));
	assert_true(completed(a, n));
	assert_true(completed(b, on_b)); /* a came after it */
	assert_false(completed(a, after));
	assert_false(synced(a, n)); /* the application does not know that */
	assert_int_equal(ss_fence_pending(a), 0);
	assert_int_equal(ss_order_fences(&core), 1);
}

/* Only a fence that covers nothing but one free may make another stream wait. */
static void test_fence_late_and_exact(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t late = ss_timeline_now(a), exact;

	ss_fake_enqueue(fake, 0, A);
	assert_true(ss_fence_request(&core, a, late, SS_FENCE_LATE));
	assert_false(ss_fence_gate(&core, b, a, late));
	exact = ss_position_alone(a);
	assert_true(ss_timeline_now(a) > exact);
	assert_true(ss_fence_request(&core, a, exact, SS_FENCE_EXACT));
	assert_false(ss_fence_gate(&core, b, a, late));
	assert_true(ss_fence_gate(&core, b, a, exact));
	assert_true(ordered(b, a, exact));
	assert_false(ordered(b, a, ss_timeline_now(a)));
	assert_int_equal(ss_fake_counts(fake).fence_wait, 1);
	ss_fake_drain(fake, 0, A);
	ss_fence_poll(&core, a, -1);
}

static void test_fence_fails(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_timeline_now(a);

	ss_fake_fail(fake, "fence_record", 1, SS_ERR_FAILED);
	assert_false(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	assert_int_equal(ss_fence_pending(a), 0);
	assert_false(ss_fence_asked(&core, a, n));
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	ss_timeline_set_capturing(&core, a, true);
	assert_int_equal(ss_order_capturing(&core), 1);
	assert_false(ss_fence_request(&core, a, UINT64_MAX, SS_FENCE_LATE));
	assert_false(ss_stream_at_end(&core, a));
	ss_timeline_set_capturing(&core, a, false);
	assert_int_equal(ss_order_capturing(&core), 0);
	ss_fence_serve(&core, a, SS_FENCE_LATE); /* it was asked for */
	assert_int_equal(ss_fence_pending(a), 2);
	ss_fence_serve(&core, a, SS_FENCE_LATE);
	assert_int_equal(ss_fence_pending(a), 2);
}

/* A stream has a bounded number of fences for single frees, and reached ones are found in time. */
static void test_fence_room(void **state)
{
	struct ss_timeline *a = stream(A);
	unsigned room = 0;

	ss_fake_enqueue(fake, 0, A);
	for (; room < 1000 && ss_fence_room(&core, a); room++)
		ss_fence_request(&core, a, ss_position_alone(a), SS_FENCE_EXACT);
	assert_in_range(room, 1, 999);
	ss_fake_drain(fake, 0, A);
	for (room = 0; room < 1000 && !ss_fence_room(&core, a); room++)
		;
	assert_in_range(room, 0, 999);
}

static bool spoils_asked;
static enum ss_status (*query)(void *, const struct ss_fence *);

static enum ss_status counted_query(void *ctx, const struct ss_fence *f)
{
	spoils_asked = true;
	return query(ctx, f);
}

/* If a query would end a capture, no fence of the captured stream is queried. */
static void test_fence_off_limits(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);

	query = core.drv.fence_query;
	core.drv.fence_query = counted_query;
	core.info[0].query_spoils = true;
	ss_fence_request(&core, a, UINT64_MAX, SS_FENCE_LATE);
	ss_timeline_set_capturing(&core, a, true);
	assert_true(ss_fence_off_limits(&core, a));
	assert_false(ss_fence_off_limits(&core, b));
	spoils_asked = false;
	assert_false(ss_fence_poll(&core, a, -1));
	assert_false(spoils_asked);
	ss_timeline_set_capturing(&core, a, false);
	assert_true(ss_fence_poll(&core, a, -1));
}

/* ---- streams that end ---------------------------------------------------------- */

static void test_slot_reuse(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B), *c;
	uint64_t n = ss_timeline_now(a);
	uint32_t slots = ss_order_slots(&core);

	record(EVENT, b, true);
	wait_for(EVENT, a, true);
	ss_timeline_marked(a);
	ss_fake_enqueue(fake, 0, A);
	assert_false(ss_timeline_retire(&core, a));
	assert_false(ss_timeline_alive(a));
	assert_null(ss_timeline_find(&core, A));
	assert_true(ss_zombies(&core, 0));
	assert_false(ss_zombies(&core, 1));
	assert_int_equal(ss_order_streams(&core, 0), 1);
	/* Its marks are not completed, so a new stream gets another slot. */
	c = stream(A);
	assert_ptr_not_equal(c, a);
	assert_int_equal(ss_order_slots(&core), slots + 1);
	ss_timeline_retire(&core, c);
	ss_fake_drain(fake, 0, A);
	ss_fence_poll(&core, NULL, -1);
	assert_true(completed(a, n));
	assert_false(ss_zombies(&core, 0));
	c = ss_timeline_add(&core, 1, A, SS_TL_NONBLOCKING, true);
	assert_ptr_equal(c, a);
	assert_int_equal(ss_timeline_device(c), 1);
	assert_ptr_equal(ss_timeline_find(&core, A), c);
	assert_int_equal(ss_order_slots(&core), slots + 1);
	assert_true(ss_timeline_now(c) > n);
	assert_false(ordered(c, b, 1)); /* it inherits nothing */
	assert_false(completed(c, ss_timeline_now(c)));
}

/* A stream on which no memory depends ends without a fence. */
static void test_end_unmarked(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_timeline_now(a);

	ss_fake_enqueue(fake, 0, A);
	ss_timeline_retire(&core, a);
	assert_true(completed(a, n));
	assert_int_equal(recorded(), 0);
	/* But any stream may use memory of hipMalloc. */
	ss_order_classic(&core, 1);
	a = stream(A);
	ss_timeline_retire(&core, a);
	assert_int_equal(recorded(), 1);
}

/* A handle that is created again was destroyed by a call that the shim did not see. */
static void test_handle_comes_back(void **state)
{
	struct ss_timeline *a = stream(A), *b;

	assert_ptr_equal(ss_timeline_add(&core, 0, A, SS_TL_NONBLOCKING, false), a);
	b = stream(A);
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(ss_timeline_find(&core, A), b);
	assert_false(ss_timeline_alive(a));
	assert_true(ss_zombies(&core, 0));
	sync_device(0);
	assert_false(ss_zombies(&core, 0));
}

static void (*release)(void *, struct ss_fence *);
static bool armed;

/* Stands for another thread that acts during the reset. */
static void released(void *ctx, struct ss_fence *fence)
{
	release(ctx, fence);
	if (armed)
		ss_timeline_add(&core, 0, B, SS_TL_NONBLOCKING, true);
	armed = false;
}

/* A stream of device 0 begins in the slot of a stream of device 1, which is reset. */
static void test_reset(void **state)
{
	struct ss_timeline *old = ss_timeline_add(&core, 1, A, SS_TL_NONBLOCKING, true);
	struct ss_timeline *null = ss_timeline_null(&core, 1);
	uint64_t n = ss_timeline_now(null);

	release = core.drv.fence_release;
	core.drv.fence_release = released;
	ss_timeline_marked(old);
	ss_fake_enqueue(fake, 1, A);
	ss_timeline_retire(&core, old);
	sync_device(1); /* all marks completed, but the fence is still there */
	armed = true;
	ss_order_reset(&core, 1);
	assert_false(armed);
	assert_ptr_equal(ss_timeline_find(&core, B), old);
	assert_int_equal(ss_timeline_device(old), 0);
	assert_true(ss_timeline_alive(old));
	assert_false(ss_timeline_alive(null));
	assert_true(completed(null, n));
	assert_int_equal(ss_order_streams(&core, 0), 1);
	assert_int_equal(ss_order_streams(&core, 1), 0);
	assert_true(ss_timeline_alive(ss_timeline_null(&core, 1)));
}

static void *thread_main(void *arg)
{
	struct ss_timeline **out = arg, *tl = ss_timeline_thread(&core, 0);

	assert_ptr_equal(ss_timeline_thread(&core, 0), tl);
	ss_timeline_marked(tl);
	ss_fake_enqueue(fake, 0, SS_NATIVE_PER_THREAD);
	/* Here the handle of the other thread's stream means this thread's. */
	assert_false(ss_fence_request(&core, *out, UINT64_MAX, SS_FENCE_LATE));
	*out = tl;
	ss_thread_exit(&core, false, 0);
	return NULL;
}

static void test_thread_stream(void **state)
{
	struct ss_timeline *mine = ss_timeline_thread(&core, 0), *other = mine;
	pthread_t thread;
	uint64_t n;

	pthread_create(&thread, NULL, thread_main, &other);
	pthread_join(thread, NULL);
	assert_ptr_not_equal(mine, other);
	assert_false(ss_timeline_alive(other));
	assert_true(ss_timeline_alive(mine));
	n = ss_timeline_now(other) - 1;
	assert_false(completed(other, n)); /* it may still run, and has no fence */
	assert_true(ss_zombies(&core, 0));
	assert_int_equal(recorded(), 0);
	sync_device(0);
	assert_true(completed(other, n));
	ss_thread_exit(&core, false, 0);
	assert_false(ss_timeline_alive(mine));
}

/* ---- the null stream -------------------------------------------------------------- */

static void test_null_uncovered(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0), *s = blocking(A);
	uint64_t n = ss_timeline_now(null);

	assert_ptr_equal(ss_timeline_null(&core, 0), null);
	assert_true(ss_order_joiners(&core, 0));
	assert_false(ss_stream_uncovered(null));
	ss_uncover(null);
	assert_true(ss_stream_uncovered(null));
	assert_true(ss_timeline_commanded(null) < n);
	/* A fence would join the blocking streams, so it waits for a call that does. */
	assert_false(ss_fence_request(&core, null, n, SS_FENCE_LATE));
	assert_int_equal(recorded(), 0);
	record(EVENT, null, false);
	assert_true(ss_stream_uncovered(null));
	assert_int_equal(recorded(), 0);
	record(EVENT, null, true);
	assert_false(ss_stream_uncovered(null));
	assert_int_equal(recorded(), 1); /* the fence */
	assert_true(ss_timeline_commanded(null) >= n);
	/* Without a stream that joins it may be recorded at any time. */
	ss_timeline_retire(&core, s);
	assert_false(ss_order_joiners(&core, 0));
	assert_true(ss_fence_request(&core, null, UINT64_MAX, SS_FENCE_LATE));
}

/* What a wait for a blocking stream proves ends at a command on it. */
static void test_blocking_commanded(void **state)
{
	struct ss_timeline *s = blocking(A);
	uint64_t n = ss_timeline_now(s), later;

	ss_uncover(s);
	sync_with(s, true, false);
	assert_int_equal(recorded(), 1);
	assert_true(synced(s, n));
	assert_false(ss_stream_uncovered(s));
	later = ss_timeline_now(s);
	sync_with(s, true, false); /* nothing was hit or freed, so there is no command */
	assert_int_equal(recorded(), 1);
	assert_false(synced(s, later));
	/* A hit while a command is being enqueued stays uncovered. */
	ss_uncover(s);
	struct ss_token t = ss_record_begin(&core, EVENT, s);
	ss_uncover(s);
	ss_record_end(&core, &t, true);
	assert_true(ss_stream_uncovered(s));
}

static void test_null_joins(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0);
	struct ss_timeline *s = blocking(A), *t = blocking(B), *free_running = stream(C);

	ss_timeline_marked(s);
	ss_timeline_marked(t);
	ss_fake_enqueue(fake, 0, A);
	ss_fake_enqueue(fake, 0, B);
	assert_false(ss_null_joins(&core, s, t));
	assert_false(ss_null_joins(&core, null, free_running));
	assert_false(ss_null_joins(&core, ss_timeline_null(&core, 1), s));
	ss_timeline_set_capturing(&core, s, true);
	assert_false(ss_null_joins(&core, null, s));
	ss_timeline_set_capturing(&core, s, false);
	assert_true(ss_null_joins(&core, null, s));
	/* The null stream relies on s, so s must be drained before it is destroyed. */
	assert_false(ss_timeline_retire(&core, t));
	assert_true(ss_timeline_retire(&core, s));
	assert_false(ss_null_joins(&core, null, s));
}

/* What a wait for several streams covers. */
static void test_scope(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0), *s = blocking(A), *a = stream(B);
	struct ss_timeline *far = ss_timeline_add(&core, 1, C, SS_TL_NONBLOCKING, true);
	uint64_t on_null = ss_timeline_now(null), on_s = ss_timeline_now(s);
	uint64_t on_a = ss_timeline_now(a), on_far = ss_timeline_now(far);
	struct ss_token t;

	sync_with(null, true, false);
	assert_true(synced(null, on_null) && synced(s, on_s));
	assert_false(synced(a, on_a));
	/* A wait stream by stream may have missed one that is destroyed meanwhile. */
	ss_timeline_marked(a);
	ss_fake_enqueue(fake, 0, B);
	t = ss_streams_sync_begin(&core, 0);
	ss_timeline_retire(&core, a);
	ss_sync_end(&core, &t, true, false);
	assert_false(synced(a, on_a));
	sync_device(0);
	assert_true(synced(a, on_a));
	assert_false(synced(far, on_far));
	/* After a bypass it may have missed any, and a query proves nothing, but it still
	 * enqueues the command that the application relies on. */
	ss_distrust(&core, "test");
	t = ss_streams_sync_begin(&core, 0);
	ss_sync_end(&core, &t, true, true);
	assert_int_equal(reported.count, 1);
	assert_false(reported.idle);
	ss_uncover(s);
	t = ss_stream_query_begin(&core, s);
	assert_false(ss_stream_uncovered(s));
	on_s = ss_timeline_commanded(s);
	ss_sync_end(&core, &t, true, false);
	assert_false(synced(s, on_s));
}

/* ---- marks of many timelines --------------------------------------------------------- */

static bool has(const struct ss_mark *marks, size_t count, struct ss_timeline *tl)
{
	for (size_t i = 0; i < count; i++)
		if (marks[i].slot == ss_timeline_slot(tl))
			return true;
	return false;
}

static void test_marks(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	struct ss_timeline *far = ss_timeline_add(&core, 1, C, SS_TL_NONBLOCKING, true);
	struct ss_mark marks[8];
	size_t count;

	ss_timeline_marked(b);
	ss_fake_enqueue(fake, 0, B);
	ss_timeline_retire(&core, b);
	count = ss_marks_take(&core, 0, 1, marks, 8);
	assert_int_equal(count, 3); /* a, the null stream, and b, which may still run */
	assert_true(has(marks, count, a) && has(marks, count, b));
	assert_true(has(marks, count, ss_timeline_null(&core, 0)));
	assert_int_equal(ss_marks_take(&core, 0, 1, marks, 1), 3);
	/* a is marked now, so its end needs a fence. */
	ss_fake_enqueue(fake, 0, A);
	count = recorded();
	ss_timeline_retire(&core, a);
	assert_int_equal(recorded(), count + 1);
	/* A device with access, and a stream that was seen to visit. */
	count = ss_marks_take(&core, 0, 3, marks, 8);
	assert_true(has(marks, count, far));
	assert_true(has(marks, count, ss_timeline_null(&core, 1)));
	count = ss_marks_take(&core, 0, 1, marks, 8);
	assert_false(has(marks, count, far));
	assert_int_equal(ss_order_visited(&core), 0);
	ss_order_visit(&core, far, 3);
	assert_int_equal(ss_order_visited(&core), 1);
	count = ss_marks_take(&core, 0, 1, marks, 8);
	assert_true(has(marks, count, far));
	/* After a device-wide wait the destroyed ones are out. */
	sync_device(0);
	count = ss_marks_take(&core, 0, 1, marks, 8);
	assert_false(has(marks, count, a) || has(marks, count, b));
}

/* All slots are taken, and the null stream has none: there are no marks, and so no reuse. */
static void test_marks_none(void **state)
{
	struct ss_mark mark;

	for (uintptr_t i = 1; i <= 65536; i++)
		ss_timeline_add(&core, 0, (void *)(i * 64), SS_TL_NONBLOCKING, true);
	assert_null(ss_timeline_null(&core, 0));
	assert_int_equal(ss_marks_take(&core, 0, 1, &mark, 1), 0);
	assert_int_equal(ss_order_streams(&core, 0), 65536);
}

static void test_wide(void **state)
{
	uint64_t wide;
	struct ss_token t;

	assert_int_equal(ss_wide_needed(&core, 0), 0);
	ss_distrust(&core, "test");
	t = ss_device_sync_begin(&core, 0);
	assert_true(ss_token_device_wide(&t));
	wide = ss_wide_needed(&core, 0);
	assert_int_not_equal(wide, 0);
	assert_true(ss_wide_reached(&core, 0, 0));
	ss_sync_end(&core, &t, true, false); /* it began before */
	assert_false(ss_wide_reached(&core, 0, wide));
	sync_device(1);
	assert_false(ss_wide_reached(&core, 0, wide));
	t = ss_streams_sync_begin(&core, 0);
	assert_false(ss_token_device_wide(&t));
	ss_sync_end(&core, &t, true, false);
	assert_false(ss_wide_reached(&core, 0, wide));
	sync_device(0);
	assert_true(ss_wide_reached(&core, 0, wide));
}

/* ---- streams at their end, and reports ------------------------------------------------- */

static void test_at_end(void **state)
{
	struct ss_timeline *a = stream(A), *s = blocking(B), *busy = NULL;
	uint64_t n = ss_timeline_now(a);
	bool null_busy;

	assert_true(ss_stream_can_ask(&core, a));
	assert_false(ss_stream_can_ask(&core, s));
	ss_fake_enqueue(fake, 0, A);
	assert_false(ss_stream_at_end(&core, a));
	assert_true(ss_device_busy(&core, 0));
	assert_false(ss_device_at_end(&core, 0, &busy));
	assert_ptr_equal(busy, a);
	assert_false(ss_device_idle(&core, 0, true));
	assert_true(ss_null_idle(&core, 0, &null_busy)); /* a does not join it */
	ss_fake_drain(fake, 0, A);
	assert_true(ss_device_at_end(&core, 0, &busy));
	assert_null(busy);
	assert_true(completed(a, n));
	assert_false(synced(a, n));
	assert_false(ss_device_busy(&core, 0));
	assert_false(ss_device_idle(&core, 0, false)); /* that would join the null stream */
	assert_true(ss_device_idle(&core, 0, true));
	ss_distrust(&core, "test");
	assert_false(ss_stream_at_end(&core, a));
	assert_false(ss_device_at_end(&core, 0, &busy));
	assert_false(ss_device_idle(&core, 0, true));
}

/* With a virtual clock, as here, every synchronization is reported. */
static void test_report(void **state)
{
	struct ss_timeline *a = stream(A);
	struct ss_token t;
	uint64_t n;

	sync_with(a, true, false); /* no threshold: not one of HIP's synchronization points */
	assert_int_equal(reported.count, 0);
	n = ss_timeline_now(a);
	for (unsigned i = 1; i <= 10; i++) {
		sync_with(a, true, true);
		assert_int_equal(reported.count, i);
	}
	assert_ptr_equal(reported.tl, a);
	assert_true(reported.pos > n);
	assert_false(reported.idle);
	t = ss_device_sync_begin(&core, 1);
	ss_sync_end(&core, &t, true, true);
	assert_int_equal(reported.count, 11);
	assert_null(reported.tl);
	assert_int_equal(reported.dev, 1);
	assert_true(reported.idle);
	/* What was freed carries a mark below the next synchronization. */
	ss_fake_advance_ms(fake, 50);
	n = ss_timeline_now(a);
	sync_with(a, true, true);
	ss_fake_advance_ms(fake, 50);
	assert_int_equal(ss_freed_by(a, n, 100), 50);
	assert_int_equal(ss_freed_by(a, ss_timeline_now(a), 100), 100);
	assert_int_equal(ss_freed_by(a, ss_timeline_now(a), 0), 1);
}

#define MANY 100000

static unsigned reports_of(struct ss_timeline *tl)
{
	reported.count = 0;
	for (unsigned i = 0; i < MANY; i++)
		sync_with(tl, true, true);
	return reported.count;
}

/* With the processor's clock only some are, unless they are asked for. */
static void test_report_gate(void **state)
{
	struct ss_timeline *a, *b;

	ss_order_finish(&core);
	core.drv.real_time = true;
	assert_true(ss_order_init(&core, synchronized));
	a = stream(A);
	b = stream(B);
#if defined(__x86_64__)
	assert_in_range(reports_of(a), 1, MANY - 1);
#endif
	ss_order_watch(&core, 0, a);
	assert_int_equal(reports_of(a), MANY);
#if defined(__x86_64__)
	assert_in_range(reports_of(b), 1, MANY - 1);
	ss_order_watch(&core, 0, NULL);
	assert_in_range(reports_of(a), 1, MANY - 1);
#endif
	ss_order_strict(&core, 0);
	assert_int_equal(reports_of(a), MANY);
	assert_int_equal(reports_of(b), MANY);
}

/* ---- threads ------------------------------------------------------------------------------ */

#define ROUNDS 3000

/* Each thread has streams of its own; events, fences and the table of handles are shared. */
static void *work(void *arg)
{
	uintptr_t id = (uintptr_t)arg;
	void *own = (void *)(0x100000 * id), *event;

	for (uintptr_t i = 0; i < ROUNDS; i++) {
		struct ss_timeline *tl = ss_timeline_add(&core, (int)(id & 1), own,
							 SS_TL_NONBLOCKING, true);

		event = (void *)(0x10000 * (1 + i % 3));
		ss_timeline_marked(tl);
		ss_fake_enqueue(fake, (int)(id & 1), own);
		record(event, tl, true);
		wait_for((void *)(0x10000 * (1 + (i + id) % 3)), tl, true);
		ss_fence_request(&core, tl, UINT64_MAX, SS_FENCE_LATE);
		if (i % 7 == 0)
			ss_event_forget(&core, event);
		if (i % 5 == 0)
			sync_with(tl, true, true);
		if (i % 3 == 0)
			ss_fake_drain(fake, (int)(id & 1), own);
		ss_fence_poll(&core, NULL, -1);
		ss_timeline_retire(&core, tl);
	}
	ss_thread_exit(&core, false, 0);
	return NULL;
}

static void ignore(struct ss_core *c, int dev, struct ss_timeline *tl, uint64_t pos, bool idle)
{
}

static void test_threads(void **state)
{
	pthread_t thread[3];
	struct ss_mark mark;

	ss_order_finish(&core);
	assert_true(ss_order_init(&core, ignore));
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 200; i++) {
		struct ss_timeline *busy = NULL;

		ss_marks_take(&core, 0, 3, &mark, 1);
		ss_zombies(&core, 0);
		ss_device_at_end(&core, 1, &busy);
		ss_order_strict(&core, 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	sync_device(0);
	sync_device(1);
	assert_false(ss_zombies(&core, 0));
	assert_false(ss_zombies(&core, 1));
	assert_int_equal(ss_order_streams(&core, 0) + ss_order_streams(&core, 1), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_event_orders),
		TEST(test_event_recorded_again),
		TEST(test_event_without_clock),
		TEST(test_failed_calls),
		TEST(test_event_synced),
		TEST(test_event_covers_no_more),
		TEST(test_usual_case),
		TEST(test_fence_completes),
		TEST(test_fence_late_and_exact),
		TEST(test_fence_fails),
		TEST(test_fence_room),
		TEST(test_fence_off_limits),
		TEST(test_slot_reuse),
		TEST(test_end_unmarked),
		TEST(test_handle_comes_back),
		TEST(test_reset),
		TEST(test_thread_stream),
		TEST(test_null_uncovered),
		TEST(test_blocking_commanded),
		TEST(test_null_joins),
		TEST(test_scope),
		TEST(test_marks),
		TEST(test_marks_none),
		TEST(test_wide),
		TEST(test_at_end),
		TEST(test_report),
		TEST(test_report_gate),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
