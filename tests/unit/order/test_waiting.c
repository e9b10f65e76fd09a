/* SPDX-License-Identifier: MIT */
/* Tests core/order: nobody asks a stream for which another thread waits. */
#include "tests/unit/order/fixture.h"

static uint64_t queries;
static enum ss_status (*real_idle)(void *ctx, int dev, void *native);

static enum ss_status counted_idle(void *ctx, int dev, void *native)
{
	queries++;
	return real_idle(ctx, dev, native);
}

static int setup_counted(void **state)
{
	int err = setup(state);

	real_idle = core.drv.stream_idle;
	core.drv.stream_idle = counted_idle;
	queries = 0;
	return err;
}

/* Would the runtime be entered for tl? Neither query nor record, and nothing changes, if not. */
static bool entered(struct ss_timeline *tl)
{
	uint64_t before = queries + recorded();
	struct ss_timeline *busy = tl;

	(void)ss_stream_ask(&core, tl);
	(void)ss_stream_record_and_ask(&core, tl);
	(void)ss_fence_request(&core, tl, UINT64_MAX, SS_FENCE_JOINING);
	(void)ss_fence_request(&core, tl, ss_position_alone(tl), SS_FENCE_EXACT);
	(void)ss_device_ask(&core, 0, &busy);
	return queries + recorded() > before;
}

static void test_kinds(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0), *a = stream(A), *b = blocking(B);
	struct ss_timeline *far = ss_timeline_add(&core, 1, C, SS_TL_NONBLOCKING, true);
	struct ss_waiting w;

	assert_false(ss_waited(&core, a));
	w = ss_waiting_begin(&core, a);
	assert_true(ss_waited(&core, a));
	assert_false(ss_waited(&core, b) || ss_waited(&core, null) || ss_waited(&core, far));
	ss_waiting_end(&core, &w);
	/* A command on the null stream looks at all that join it, */
	w = ss_waiting_begin(&core, b);
	assert_true(ss_waited(&core, b) && ss_waited(&core, null));
	assert_false(ss_waited(&core, a) || ss_waited(&core, far));
	ss_waiting_end(&core, &w);
	/* and the other way round. */
	w = ss_waiting_begin(&core, null);
	assert_true(ss_waited(&core, b) && ss_waited(&core, null));
	assert_false(ss_waited(&core, a) || ss_waited(&core, far));
	ss_waiting_end(&core, &w);
	w = ss_waiting_begin_device(&core, 0);
	assert_true(ss_waited(&core, a) && ss_waited(&core, b) && ss_waited(&core, null));
	assert_false(ss_waited(&core, far));
	ss_waiting_end(&core, &w);
	ss_waiting_end(&core, &w); /* no more than once */
	w = ss_waiting_begin(&core, NULL);
	ss_waiting_end(&core, &w);
	w = ss_waiting_begin_device(&core, -1);
	ss_waiting_end(&core, &w);
	assert_false(ss_waited(&core, a) || ss_waited(&core, b) || ss_waited(&core, null));
}

/* Each of the calls that wait, by what the application calls. */
static void test_asks_nothing(void **state)
{
	struct ss_timeline *a = stream(A);
	struct ss_token t;

	assert_true(entered(a));
	ss_fences_poll(&core, a, -1);
	t = ss_stream_sync_begin(&core, a);
	assert_false(entered(a));
	ss_sync_end(&core, &t, true, false);
	assert_true(entered(a));
	t = ss_device_sync_begin(&core, 0);
	assert_false(entered(a));
	ss_sync_end(&core, &t, false, false);
	assert_true(entered(a));
	record(EVENT, a, true);
	t = ss_event_wait_begin(&core, EVENT);
	assert_false(entered(a));
	ss_sync_end(&core, &t, true, false);
	assert_true(entered(a));
	t = ss_event_sync_begin(&core, EVENT); /* a query waits for nobody */
	assert_true(entered(a));
	ss_sync_end(&core, &t, true, false);
	ss_fences_poll(&core, a, -1);
}

/* The end of the wait tells; what it cannot tell, a fence does that is recorded then. */
static void test_end_tells(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_timeline_now(a), later;
	bool waits = false;
	struct ss_waiting w;
	struct ss_token t;

	ss_fake_enqueue(fake, 0, A);
	t = ss_stream_sync_begin(&core, a);
	assert_false(ss_fence_request(&core, a, n, SS_FENCE_LATE));
	assert_true(ss_position_expected(&core, a, n));
	assert_true(ss_fence_expected(&core, a, &waits) && waits);
	ss_fake_drain(fake, 0, A);
	ss_sync_end(&core, &t, true, false);
	assert_true(completed(a, n));
	assert_false(ss_position_expected(&core, a, ss_timeline_now(a)));
	assert_int_equal(recorded(), 0); /* nobody wants one any more */
	ss_fence_serve(&core, a, SS_FENCE_LATE);
	assert_int_equal(recorded(), 0);

	ss_fake_enqueue(fake, 0, A);
	t = ss_stream_sync_begin(&core, a);
	later = ss_timeline_now(a);
	assert_false(ss_fence_request(&core, a, later, SS_FENCE_LATE));
	assert_true(ss_position_expected(&core, a, later));
	ss_sync_end(&core, &t, true, false);
	assert_int_equal(recorded(), 1);
	ss_fake_drain(fake, 0, A);
	ss_fences_poll(&core, a, -1);
	assert_true(completed(a, later));

	/* A copy proves nothing. */
	w = ss_waiting_begin(&core, a);
	later = ss_timeline_now(a);
	assert_false(ss_fence_request(&core, a, later, SS_FENCE_LATE));
	assert_true(ss_position_expected(&core, a, later));
	ss_waiting_end(&core, &w);
	assert_int_equal(recorded(), 2);
	ss_fake_drain(fake, 0, A);
	ss_fences_poll(&core, a, -1);
	assert_true(completed(a, later));
}

/* The application's own call enqueues what it relies on, whoever waits. */
static void test_own_call(void **state)
{
	struct ss_timeline *b = blocking(B);
	struct ss_token first = ss_stream_sync_begin(&core, b), t;

	ss_uncover(b);
	t = ss_stream_query_begin(&core, b);
	assert_int_equal(recorded(), 1);
	ss_sync_end(&core, &t, false, false);
	ss_uncover(b);
	t = ss_stream_sync_begin(&core, b);
	assert_int_equal(recorded(), 2);
	ss_sync_end(&core, &t, true, false);
	assert_true(ss_waited(&core, b));
	ss_sync_end(&core, &first, true, false);
	assert_false(ss_waited(&core, b));
	ss_fake_drain(fake, 0, B);
	ss_fences_poll(&core, b, -1);
}

/* The slot of a stream that is destroyed during a wait is not another's before that has ended. */
static void test_slot_stays(void **state)
{
	struct ss_timeline *a = stream(A), *b;
	struct ss_token t = ss_stream_sync_begin(&core, a);

	ss_timeline_retire(&core, a);
	b = stream(B);
	assert_ptr_not_equal(a, b);
	assert_false(ss_waited(&core, b));
	ss_sync_end(&core, &t, true, false);
	assert_ptr_equal(stream(C), a);
	assert_false(ss_waited(&core, a));
}

#define WAITING(f) cmocka_unit_test_setup_teardown(f, setup_counted, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAITING(test_kinds),    WAITING(test_asks_nothing), WAITING(test_end_tells),
		WAITING(test_own_call), WAITING(test_slot_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
