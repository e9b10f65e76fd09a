/* SPDX-License-Identifier: MIT */
/* Tests core/order: streams that end, marks of ALL, and threads. */
#include <dlfcn.h>

#include "core/order/timeline.h"
#include "tests/unit/order/fixture.h"

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
	assert_false(a->alive);
	assert_null(ss_timeline_find(&core, A));
	assert_true(ss_zombies_poll(&core, 0));
	assert_false(ss_zombies_poll(&core, 1));
	assert_int_equal(ss_order_streams(&core, 0), 1);
	/* Its marks are not completed, so a new stream gets another slot. */
	c = stream(A);
	assert_ptr_not_equal(c, a);
	assert_int_equal(ss_order_slots(&core), slots + 1);
	ss_timeline_retire(&core, c);
	ss_fake_drain(fake, 0, A);
	ss_fences_poll(&core, NULL, -1);
	assert_true(completed(a, n));
	assert_false(ss_zombies_poll(&core, 0));
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
	/* But one that may wait for the host is not over with its stream. */
	a = stream(A);
	ss_host_begin(&core);
	ss_fake_enqueue(fake, 0, A);
	ss_host_end(&core, a, true);
	ss_timeline_retire(&core, a);
	assert_true(ss_host_needed(&core));
	ss_fake_drain(fake, 0, A);
	assert_false(ss_host_ask(&core));
	/* And any stream may use memory of hipMalloc. */
	ss_order_classic(&core, 1);
	a = stream(A);
	ss_fake_enqueue(fake, 0, A);
	ss_timeline_retire(&core, a);
	assert_int_equal(recorded(), 2);
}

/* A handle that is created again was destroyed by a call that the shim did not see. */
static void test_handle_comes_back(void **state)
{
	struct ss_timeline *a = stream(A), *b;

	assert_ptr_equal(ss_timeline_add(&core, 0, A, SS_TL_NONBLOCKING, false), a);
	b = stream(A);
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(ss_timeline_find(&core, A), b);
	assert_false(a->alive);
	assert_true(ss_zombies_poll(&core, 0));
	sync_device(0);
	assert_false(ss_zombies_poll(&core, 0));
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
	assert_true(old->alive);
	assert_false(null->alive);
	assert_true(completed(null, n));
	assert_int_equal(ss_order_streams(&core, 0), 1);
	assert_int_equal(ss_order_streams(&core, 1), 0);
	assert_true(ss_timeline_null(&core, 1)->alive);
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
	assert_false(other->alive);
	assert_true(mine->alive);
	n = ss_timeline_now(other) - 1;
	assert_false(completed(other, n)); /* it may still run, and has no fence */
	assert_true(ss_zombies_poll(&core, 0));
	assert_int_equal(recorded(), 0);
	sync_device(0);
	assert_true(completed(other, n));
	ss_thread_exit(&core, false, 0);
	assert_false(mine->alive);
}

/* A null stream that relies on joining a thread's stream ends with that thread. Another thread may
 * still allocate on it, so its slot is never another stream's, but only a later null stream's of
 * its device. */
static void test_null_slot(void **state)
{
	struct ss_timeline *null[3];

	for (int i = 0; i < 3; i++) {
		null[i] = ss_timeline_null(&core, 0);
		ss_timeline_thread(&core, 0);
		ss_fake_enqueue(fake, 0, SS_NATIVE_PER_THREAD);
		ss_uncover(null[i]);
		ss_thread_exit(&core, false, 0);
		assert_false(null[i]->alive);
		sync_device(0); /* begins the next one */
	}
	assert_ptr_equal(null[2], null[0]);
	assert_ptr_not_equal(stream(A), null[0]);
	assert_ptr_not_equal(stream(B), null[0]);
	assert_ptr_not_equal(ss_timeline_null(&core, 1), null[0]);
}

/* ---- ALL -------------------------------------------------------------------------------- */

/* Does the newest snapshot wait for tl? */
static bool waits_for(int dev, struct ss_timeline *tl)
{
	struct ss_timeline *open;
	uint32_t i = 0;
	uint64_t n;

	while ((open = ss_all_open(&core, dev, &i, &n)))
		if (open == tl)
			return true;
	return false;
}

static bool all_reached(uint64_t n)
{
	return ss_all_reached(&core, 0, n, true);
}

static void test_all(void **state)
{
	struct ss_timeline *a = stream(A), *b = stream(B);
	struct ss_timeline *far = ss_timeline_add(&core, 1, C, SS_TL_NONBLOCKING, true);
	uint64_t n, later, fences;

	ss_timeline_marked(b);
	ss_fake_enqueue(fake, 0, B);
	ss_timeline_retire(&core, b);
	n = ss_all_mark(&core, 0, 1);
	/* a, the null stream, and b, which may still run */
	assert_true(waits_for(0, a) && waits_for(0, b) && !waits_for(0, far));
	assert_true(waits_for(0, ss_timeline_null(&core, 0)));
	assert_int_equal(ss_all_mark(&core, 0, 1), n); /* no stream has moved on */
	/* a is marked now, so its end needs a fence. */
	ss_fake_enqueue(fake, 0, A);
	fences = recorded();
	ss_timeline_retire(&core, a);
	assert_int_equal(recorded(), fences + 1);
	/* A device with access counts, also for a mark of another pool, until all are reached. */
	later = ss_all_mark(&core, 0, 2);
	assert_true(later > n && waits_for(0, far));
	assert_true(waits_for(0, ss_timeline_null(&core, 1)));
	assert_int_equal(ss_all_mark(&core, 0, 1), later);
	assert_false(all_reached(n) || all_reached(later));
	sync_device(0);
	assert_true(all_reached(n) && !all_reached(later));
	sync_device(1);
	assert_true(all_reached(later));
	/* After a device-wide wait the destroyed ones are out, and so is the other device. */
	ss_all_mark(&core, 0, 1);
	assert_false(waits_for(0, a) || waits_for(0, b) || waits_for(0, far));
	/* So is not a stream that was seen to visit. */
	assert_int_equal(ss_order_visited(&core), 0);
	ss_order_visit(&core, far, 3);
	assert_int_equal(ss_order_visited(&core), 1);
	ss_all_mark(&core, 0, 1);
	assert_true(waits_for(0, far));
}

/* Where fences tell of the streams, they tell of ALL. */
static void test_all_told(void **state)
{
	struct ss_timeline *a = stream(A);
	uint64_t n = ss_all_mark(&core, 0, 1), later;

	ss_fake_enqueue(fake, 0, A);
	assert_true(ss_all_expected(&core, 0) < n);
	assert_true(ss_fence_request(&core, a, ss_timeline_now(a), SS_FENCE_LATE));
	assert_true(ss_all_expected(&core, 0) < n);
	assert_true(ss_fence_request(&core, ss_timeline_null(&core, 0), UINT64_MAX, SS_FENCE_LATE));
	assert_true(ss_all_expected(&core, 0) >= n);
	later = ss_all_mark(&core, 0, 1);
	assert_true(later > n && ss_all_expected(&core, 0) < later);
	ss_fake_drain(fake, 0, A);
	ss_fake_drain(fake, 0, NULL);
	ss_fences_poll(&core, NULL, -1);
	assert_true(all_reached(n) && !all_reached(later));
	/* The application knows of it when it has waited for the device since. */
	assert_false(ss_all_reached(&core, 0, n, false));
	sync_device(0);
	assert_true(ss_all_reached(&core, 0, later, false));
}

/* All slots are taken, and the null stream has none: nothing is ever reached. */
static void test_all_slots(void **state)
{
	uint64_t n;

	for (uintptr_t i = 1; i <= 65536; i++)
		ss_timeline_add(&core, 0, (void *)(i * 64), SS_TL_NONBLOCKING, true);
	assert_null(ss_timeline_null(&core, 0));
	n = ss_all_mark(&core, 0, 1);
	assert_false(all_reached(n));
	assert_int_equal(ss_order_streams(&core, 0), 65536);
}

/* After a bypass only a device-wide wait that began later stands for streams nobody knows. */
static void test_all_wide(void **state)
{
	struct ss_token t;
	uint64_t n;

	ss_distrust(&core);
	t = ss_device_sync_begin(&core, 0);
	assert_true(ss_token_device_wide(&t));
	n = ss_all_mark(&core, 0, 1);
	ss_sync_end(&core, &t, true, false); /* it began before */
	assert_false(all_reached(n));
	sync_device(1);
	assert_false(all_reached(n));
	t = ss_streams_sync_begin(&core, 0);
	assert_false(ss_token_device_wide(&t));
	ss_sync_end(&core, &t, true, false);
	assert_false(all_reached(n));
	sync_device(0);
	assert_true(all_reached(n));
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
		ss_fences_poll(&core, NULL, -1);
		ss_timeline_retire(&core, tl);
	}
	ss_thread_exit(&core, false, 0);
	return NULL;
}

static void ignore(struct ss_core *c, int dev, bool idle)
{
}

static void test_threads(void **state)
{
	pthread_t thread[3];

	ss_order_finish(&core);
	assert_true(ss_order_init(&core, ignore));
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 200; i++) {
		struct ss_timeline *busy = NULL;

		ss_all_reached(&core, 0, ss_all_mark(&core, 0, 3), true);
		ss_zombies_poll(&core, 0);
		ss_device_ask(&core, 1, &busy);
		ss_order_report(&core, 0, 1, i & 1);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	sync_device(0);
	sync_device(1);
	assert_false(ss_zombies_poll(&core, 0));
	assert_false(ss_zombies_poll(&core, 1));
	assert_int_equal(ss_order_streams(&core, 0) + ss_order_streams(&core, 1), 0);
}

/* ---- what waits for another thread's call
 * ----------------------------------------------------- */

static enum ss_status (*record_fence)(void *, int, void *, struct ss_fence *);
static enum ss_status (*query_fence)(void *, const struct ss_fence *);
static atomic_bool within, begun, over, waited;

/* A call of the driver that goes on for a while, unless the other thread does not wait for it. */
static void take_long(void)
{
	struct timespec tick = {.tv_nsec = 1000000};

	within = true;
	for (int i = 0; i < 50 && !begun; i++)
		nanosleep(&tick, NULL);
	over = true;
}

static enum ss_status record_slowly(void *ctx, int dev, void *native, struct ss_fence *out)
{
	take_long();
	return record_fence(ctx, dev, native, out);
}

static enum ss_status query_slowly(void *ctx, const struct ss_fence *fence)
{
	take_long();
	return query_fence(ctx, fence);
}

static void wait_for_call(void)
{
	while (!within)
		sched_yield();
}

static void *begin_blocking(void *native)
{
	wait_for_call();
	if (native)
		ss_timeline_add(&core, 0, native, SS_TL_BLOCKING, true);
	else
		ss_timeline_thread(&core, 0);
	waited = over;
	begun = true;
	ss_thread_exit(&core, false, 0);
	return NULL;
}

static void *begin_capture(void *tl)
{
	wait_for_call();
	ss_timeline_set_capturing(&core, tl, true);
	waited = over;
	begun = true;
	ss_timeline_set_capturing(&core, tl, false);
	return NULL;
}

static pthread_t other_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	within = begun = over = waited = false;
	record_fence = core.drv.fence_record;
	query_fence = core.drv.fence_query;
	core.drv.fence_record = record_slowly;
	core.drv.fence_query = query_slowly;
	pthread_create(&thread, NULL, fn, arg);
	return thread;
}

static void other_thread_waited(pthread_t thread)
{
	pthread_join(thread, NULL);
	core.drv.fence_record = record_fence;
	core.drv.fence_query = query_fence;
	assert_true(waited);
}

/* A fence on the null stream would join what the new stream enqueues, in a call that joins
 * nothing. */
static void test_begin_beside_fence(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0);
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		thread = other_thread(begin_blocking, i ? A : NULL);
		assert_true(ss_fence_request(&core, null, UINT64_MAX, SS_FENCE_LATE));
		other_thread_waited(thread);
		sync_device(0);
	}
	assert_false(ss_fence_request(&core, null, UINT64_MAX, SS_FENCE_LATE));
}

/* The query would end the capture. */
static void test_capture_beside_query(void **state)
{
	struct ss_timeline *a = stream(A);
	pthread_t thread;

	core.info[0].query_spoils = true;
	ss_fence_request(&core, a, UINT64_MAX, SS_FENCE_LATE);
	thread = other_thread(begin_capture, a);
	assert_true(ss_fences_poll(&core, a, -1));
	other_thread_waited(thread);
}

/* A call that must not be captured. The null stream is never captured. */
static void test_capture_held(void **state)
{
	struct ss_timeline *null = ss_timeline_null(&core, 0), *a = stream(A);
	pthread_t thread;

	assert_true(ss_capture_hold(&core, null));
	ss_fence_quiesce(null);
	ss_capture_release(null);
	assert_true(ss_capture_hold(&core, a));
	thread = other_thread(begin_capture, a);
	within = true;
	take_long();
	ss_capture_release(a);
	other_thread_waited(thread);
	ss_timeline_set_capturing(&core, a, true);
	assert_false(ss_capture_hold(&core, a));
	ss_timeline_set_capturing(&core, a, false);
}

/* ---- a slot that changes hands while it is asked about ---------------------------- */

static bool changes;

/* Stands for another thread that acts just before this one has the lock. */
int pthread_mutex_lock(pthread_mutex_t *lock)
{
	static int (*real)(pthread_mutex_t *);

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (changes && lock == &core.order->lock) {
		changes = false;
		ss_timeline_retire(&core, ss_timeline_find(&core, A));
		blocking(B);
	}
	return real(lock);
}

/* That a stream is at its end proves less of a blocking one: the null stream's work may come before
 * what was freed there. So what was read of the stream before it in the slot, which did not block,
 * must not be held against it. */
static void test_slot_asked(void **state)
{
	struct ss_timeline *a = stream(A);

	assert_int_equal(ss_stream_ask(&core, a), SS_OK);
	assert_true(ss_stream_record_and_ask(&core, a));
	changes = true;
	assert_int_equal(ss_stream_ask(&core, a), SS_ERR_NOT_READY);
	assert_false(changes);
	assert_ptr_equal(ss_timeline_find(&core, B), a);
	ss_timeline_retire(&core, a);
	a = stream(A);
	changes = true;
	assert_false(ss_stream_record_and_ask(&core, a));
	assert_ptr_equal(ss_timeline_find(&core, B), a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slot_reuse),
		TEST(test_null_slot),
		TEST(test_end_unmarked),
		TEST(test_handle_comes_back),
		TEST(test_reset),
		TEST(test_thread_stream),
		TEST(test_all),
		TEST(test_all_told),
		TEST(test_all_slots),
		TEST(test_all_wide),
		TEST(test_threads),
		TEST(test_begin_beside_fence),
		TEST(test_capture_beside_query),
		TEST(test_capture_held),
		TEST(test_slot_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
