/* SPDX-License-Identifier: MIT */
/* Tests core/order: what events order and synchronizations prove. */
#include "tests/unit/order/fixture.h"

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
	ss_distrust(&core);
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

/* A query of an event that is synced already has nothing left to do; a synchronization still
 * reports. */
static void test_synced_again(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_timeline_now(a);
	struct ss_token t;

	record(EVENT, a, true);
	for (int again = 0; again < 2; again++) {
		t = ss_event_sync_begin(&core, EVENT);
		ss_sync_end(&core, &t, true, false);
		assert_true(synced(a, n));
		assert_false(completed(a, ss_timeline_now(a)));
	}
	for (int again = 0; again < 2; again++) {
		t = ss_event_sync_begin(&core, EVENT);
		ss_sync_end(&core, &t, true, true);
		assert_int_equal(reported.count, 1 + again);
	}
	record(EVENT, a, true); /* a new clock proves more */
	n = ss_timeline_now(a) - 1;
	t = ss_event_sync_begin(&core, EVENT);
	ss_sync_end(&core, &t, true, false);
	assert_true(synced(a, n));
	assert_false(completed(a, n + 1));
	n = ss_timeline_now(a);
	sync_with(a, true, false);
	assert_true(synced(a, n));
	assert_false(completed(a, ss_timeline_now(a)));
}

/* ---- streams at their end, and reports ------------------------------------------------- */

static void test_at_end(void **state)
{
	struct ss_timeline *a = stream(A), *s = blocking(B), *busy = NULL;
	uint64_t n = ss_timeline_now(a);
	bool null_busy;

	assert_true(ss_stream_can_ask(a));
	assert_false(ss_stream_can_ask(s));
	ss_fake_enqueue(fake, 0, A);
	assert_false(ss_stream_record_and_ask(&core, a));
	assert_true(ss_device_ask_busy(&core, 0));
	assert_false(ss_device_ask(&core, 0, &busy));
	assert_ptr_equal(busy, a);
	assert_false(ss_device_record_and_ask(&core, 0, true));
	assert_true(ss_null_record_and_ask(&core, 0, &null_busy)); /* a does not join it */
	ss_fake_drain(fake, 0, A);
	assert_true(ss_device_ask(&core, 0, &busy));
	assert_null(busy);
	assert_true(completed(a, n));
	assert_false(synced(a, n));
	assert_false(ss_device_ask_busy(&core, 0));
	/* That would join the null stream */
	assert_false(ss_device_record_and_ask(&core, 0, false));
	assert_true(ss_device_record_and_ask(&core, 0, true));
	ss_distrust(&core);
	assert_false(ss_stream_record_and_ask(&core, a));
	assert_false(ss_device_ask(&core, 0, &busy));
	assert_false(ss_device_record_and_ask(&core, 0, true));
}

/* Synchronizations are reported while there is a reason, which each device has for itself. */
static void test_report(void **state)
{
	struct ss_timeline *a = stream(A);
	struct ss_token t;

	sync_with(a, true, false); /* no threshold: not one of HIP's synchronization points */
	assert_int_equal(reported.count, 0);
	for (unsigned i = 1; i <= 10; i++) {
		sync_with(a, true, true);
		assert_int_equal(reported.count, i);
	}
	assert_false(reported.idle);
	t = ss_device_sync_begin(&core, 1);
	ss_sync_end(&core, &t, true, true);
	assert_int_equal(reported.count, 11);
	assert_int_equal(reported.dev, 1);
	assert_true(reported.idle);
	ss_order_report(&core, 0, 2, true);
	ss_order_report(&core, 0, 1, false);
	sync_with(a, true, true);
	assert_int_equal(reported.count, 12);
	assert_int_equal(ss_order_reported(&core, 0), 2);
	ss_order_report(&core, 0, 2, false);
	sync_with(a, true, true);
	assert_int_equal(reported.count, 12);
	t = ss_device_sync_begin(&core, 1);
	ss_sync_end(&core, &t, true, true);
	assert_int_equal(reported.count, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_event_orders),
		TEST(test_event_recorded_again),
		TEST(test_event_without_clock),
		TEST(test_failed_calls),
		TEST(test_event_synced),
		TEST(test_event_covers_no_more),
		TEST(test_synced_again),
		TEST(test_at_end),
		TEST(test_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
