/* SPDX-License-Identifier: MIT */
/* Tests core/order: fences, and the null stream. */
#include "tests/unit/order/fixture.h"

/* ---- fences ------------------------------------------------------------------ */

static void test_fence_completes(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	uint64_t on_b = ss_timeline_now(b), n, after;

	record(EVENT, b, true);
	wait_for(EVENT, a, true);
	n = ss_timeline_now(a);
	ss_fake_enqueue(fake, 0, A);
	assert_false(ss_position_expected(&core, a, n));
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	after = ss_timeline_now(a);
	assert_true(ss_position_expected(&core, a, n));
	assert_false(ss_position_expected(&core, a, after));
	assert_int_equal(ss_fence_pending(a), 1);
	/* No second fence is recorded while one is on its way. */
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	assert_int_equal(recorded(), 1);
	assert_false(ss_fences_poll(&core, a, -1));
	assert_false(completed(a, n));
	ss_fake_drain(fake, 0, A);
	assert_false(ss_fences_poll(&core, NULL, 1)); /* another device */
	assert_true(ss_fences_poll(&core, NULL, 0));
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
	ss_fences_poll(&core, a, -1);
}

static void test_fence_fails(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_timeline_now(a);

	ss_fake_fail(fake, "fence_record", 1, SS_ERR_FAILED);
	assert_false(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	assert_int_equal(ss_fence_pending(a), 0);
	assert_false(ss_position_expected(&core, a, n));
	assert_true(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	ss_timeline_set_capturing(&core, a, true);
	assert_int_equal(ss_order_capturing(&core), 1);
	assert_false(ss_fence_request(&core, a, UINT64_MAX, SS_FENCE_LATE));
	assert_false(ss_stream_record_and_ask(&core, a));
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
	assert_false(ss_fences_poll(&core, a, -1));
	assert_false(spoils_asked);
	ss_timeline_set_capturing(&core, a, false);
	assert_true(ss_fences_poll(&core, a, -1));
}

/* ---- the null stream -------------------------------------------------------------- */

static void test_null_uncovered(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0), *s = blocking(A);
	uint64_t n = ss_timeline_now(null);

	assert_ptr_equal(ss_timeline_null(&core, 0), null);
	assert_true(ss_order_joiners(&core, 0));
	assert_false(ss_needs_cover(null));
	ss_uncover(null);
	assert_true(ss_needs_cover(null));
	assert_true(ss_timeline_commanded(null) < n);
	/* A fence would join the blocking streams, so it waits for a call that does. */
	assert_false(ss_fence_request(&core, null, n, SS_FENCE_LATE));
	assert_int_equal(recorded(), 0);
	record(EVENT, null, false);
	assert_true(ss_needs_cover(null));
	assert_int_equal(recorded(), 0);
	record(EVENT, null, true);
	assert_false(ss_needs_cover(null));
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
	assert_false(ss_needs_cover(s));
	later = ss_timeline_now(s);
	sync_with(s, true, false); /* nothing was hit or freed, so there is no command */
	assert_int_equal(recorded(), 1);
	assert_false(synced(s, later));
	/* A hit while a command is being enqueued stays uncovered. */
	ss_uncover(s);
	struct ss_token t = ss_record_begin(&core, EVENT, s);
	ss_uncover(s);
	ss_record_end(&core, &t, true);
	assert_true(ss_needs_cover(s));
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
	ss_distrust(&core);
	t = ss_streams_sync_begin(&core, 0);
	ss_sync_end(&core, &t, true, true);
	assert_int_equal(reported.count, 1);
	assert_false(reported.idle);
	ss_uncover(s);
	t = ss_stream_query_begin(&core, s);
	assert_false(ss_needs_cover(s));
	on_s = ss_timeline_commanded(s);
	ss_sync_end(&core, &t, true, false);
	assert_false(synced(s, on_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fence_completes),
		TEST(test_fence_late_and_exact),
		TEST(test_fence_fails),
		TEST(test_fence_room),
		TEST(test_fence_off_limits),
		TEST(test_null_uncovered),
		TEST(test_blocking_commanded),
		TEST(test_null_joins),
		TEST(test_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
