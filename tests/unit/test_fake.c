/* SPDX-License-Identifier: MIT */
/* Tests the fake device, on which other tests rely. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/fake/fake.h"

#define MIB (1ull << 20)
#define S1 ((void *)0x1000)
#define S2 ((void *)0x2000)

static struct ss_fake *create(bool vmm, bool idle)
{
	struct ss_fake_config config = {.devices = 2, .vram = 64 * MIB, .vmm = vmm, .idle = idle};
	struct ss_fake *fake = ss_fake_create(&config);
	assert_non_null(fake);
	return fake;
}

static void test_segments(void **state)
{
	struct ss_fake *fake = create(false, false);
	struct ss_driver drv = ss_fake_driver(fake);
	void *a, *b, *c;
	uint64_t left, total;

	assert_int_equal(drv.device_count(drv.ctx), 2);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 32 * MIB, 0, &a), SS_OK);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HSA, 32 * MIB, 0, &b), SS_OK);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 2 * MIB, 0, &c),
			 SS_ERR_NOMEM);
	assert_int_equal(drv.segment_alloc(drv.ctx, 2, SS_BACKING_HIP, 2 * MIB, 0, &c),
			 SS_ERR_DEVICE);
	assert_int_equal(drv.mem_info(drv.ctx, 0, &left, &total), SS_OK);
	assert_int_equal(left, 0);
	assert_int_equal(total, 64 * MIB);
	assert_int_equal((uintptr_t)a % (2 * MIB), 0);
	assert_true(ss_fake_usable(fake, 0, a, 32 * MIB));
	assert_false(ss_fake_usable(fake, 0, (char *)a + 1, 32 * MIB));
	assert_false(ss_fake_usable(fake, 1, a, 1));

	/* The same address comes back. */
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, a, 32 * MIB), SS_OK);
	assert_int_equal(drv.segment_alloc(drv.ctx, 1, SS_BACKING_HIP, 2 * MIB, 0, &c), SS_OK);
	assert_ptr_equal(a, c);
	assert_int_equal(drv.segment_free(drv.ctx, 1, SS_BACKING_HIP, c, 2 * MIB), SS_OK);
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HSA, b, 32 * MIB), SS_OK);
	assert_int_equal(ss_fake_reserved(fake, 0), 0);
	assert_int_equal(ss_fake_reserved_high(fake, 0), 64 * MIB);
	assert_int_equal(ss_fake_counts(fake).segment_alloc, 4);
	ss_fake_destroy(fake);
}

static void test_vmm(void **state)
{
	struct ss_fake *fake = create(true, false);
	struct ss_driver drv = ss_fake_driver(fake);
	void *va, *c1, *c2;

	assert_int_equal(drv.vmm_reserve(drv.ctx, 0, 1ull << 40, &va), SS_OK);
	assert_int_equal(ss_fake_reserved(fake, 0), 0);
	assert_int_equal(drv.chunk_create(drv.ctx, 0, 4 * MIB, &c1), SS_OK);
	assert_int_equal(drv.chunk_create(drv.ctx, 0, 2 * MIB, &c2), SS_OK);
	assert_int_equal(drv.chunk_create(drv.ctx, 0, 64 * MIB, &va), SS_ERR_NOMEM);
	assert_int_equal(drv.map(drv.ctx, 0, va, 4 * MIB, c1), SS_OK);
	assert_int_equal(drv.map(drv.ctx, 0, (char *)va + 4 * MIB, 2 * MIB, c2), SS_OK);
	assert_false(ss_fake_usable(fake, 0, va, 1));
	assert_int_equal(drv.set_access(drv.ctx, 0, va, 6 * MIB, 1), SS_OK);
	assert_true(ss_fake_usable(fake, 0, va, 6 * MIB));
	assert_false(ss_fake_usable(fake, 0, va, 6 * MIB + 1));
	assert_int_equal(drv.unmap(drv.ctx, 0, va, 4 * MIB), SS_OK);
	assert_int_equal(drv.map(drv.ctx, 0, (char *)va + 32 * MIB, 4 * MIB, c1), SS_OK);
	assert_false(ss_fake_usable(fake, 0, (char *)va + 32 * MIB, 1));
	assert_int_equal(drv.unmap(drv.ctx, 0, (char *)va + 32 * MIB, 4 * MIB), SS_OK);
	assert_int_equal(drv.unmap(drv.ctx, 0, (char *)va + 4 * MIB, 2 * MIB), SS_OK);
	assert_int_equal(drv.chunk_release(drv.ctx, 0, c1, 4 * MIB), SS_OK);
	assert_int_equal(drv.chunk_release(drv.ctx, 0, c2, 2 * MIB), SS_OK);
	assert_int_equal(drv.vmm_unreserve(drv.ctx, 0, va, 1ull << 40), SS_OK);
	assert_int_equal(ss_fake_reserved(fake, 0), 0);
	ss_fake_destroy(fake);

	fake = create(false, false);
	drv = ss_fake_driver(fake);
	assert_int_equal(drv.vmm_reserve(drv.ctx, 0, 2 * MIB, &va), SS_ERR_UNSUPPORTED);
	ss_fake_destroy(fake);
}

/* Each of these must end the process. */
static void misuse(int n)
{
	struct ss_fake *fake = create(true, false);
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_fence fence;
	void *va, *chunk, *seg;

	drv.vmm_reserve(drv.ctx, 0, 32 * MIB, &va);
	drv.chunk_create(drv.ctx, 0, 4 * MIB, &chunk);
	drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 4 * MIB, 0, &seg);
	drv.fence_record(drv.ctx, 0, S1, &fence);
	if (n > 1)
		drv.map(drv.ctx, 0, va, 4 * MIB, chunk);
	switch (n) {
	case 0: drv.map(drv.ctx, 0, seg, 4 * MIB, chunk); break;
	case 1: drv.map(drv.ctx, 0, (char *)va + 30 * MIB, 4 * MIB, chunk); break;
	case 2: drv.map(drv.ctx, 0, (char *)va + 8 * MIB, 4 * MIB, chunk); break;
	case 3: drv.unmap(drv.ctx, 0, va, 2 * MIB); break;
	case 4: drv.unmap(drv.ctx, 0, (char *)va + 2 * MIB, 2 * MIB); break;
	case 5: drv.chunk_release(drv.ctx, 0, chunk, 4 * MIB); break;
	case 6: drv.vmm_unreserve(drv.ctx, 0, va, 32 * MIB); break;
	case 7: drv.set_access(drv.ctx, 0, va, 6 * MIB, 1); break;
	case 8: drv.segment_free(drv.ctx, 0, SS_BACKING_HSA, seg, 4 * MIB); break;
	case 9: drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, seg, 2 * MIB); break;
	case 10: drv.segment_free(drv.ctx, 1, SS_BACKING_HIP, seg, 4 * MIB); break;
	case 11: drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 4097, 0, &seg); break;
	case 12: ss_fake_destroy(fake); break;
	}
}

static void test_misuse(void **state)
{
	for (int n = 0; n <= 12; n++) {
		pid_t pid = fork();
		int status;
		if (pid == 0) {
			struct rlimit none = {0, 0};
			setrlimit(RLIMIT_CORE, &none);
			signal(SIGABRT, SIG_DFL);
			if (!freopen("/dev/null", "w", stderr))
				_exit(1);
			misuse(n);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
			fail_msg("misuse %d passed", n);
	}
}

static void test_fences(void **state)
{
	struct ss_fake *fake = create(false, false);
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_fence f0, f1, f2;

	assert_int_equal(drv.fence_record(drv.ctx, 0, S1, &f0), SS_OK);
	ss_fake_enqueue(fake, 0, S1);
	ss_fake_enqueue(fake, 0, S1);
	assert_int_equal(drv.fence_record(drv.ctx, 0, S1, &f1), SS_OK);
	ss_fake_enqueue(fake, 0, S1);
	assert_int_equal(drv.fence_query(drv.ctx, &f0), SS_OK);
	assert_int_equal(drv.fence_query(drv.ctx, &f1), SS_ERR_NOT_READY);
	ss_fake_progress(fake, 0, S1, 1);
	assert_int_equal(drv.fence_query(drv.ctx, &f1), SS_ERR_NOT_READY);

	/* The same handle on another device is another stream. */
	ss_fake_enqueue(fake, 1, S1);
	ss_fake_drain(fake, 1, S1);
	assert_int_equal(drv.fence_query(drv.ctx, &f1), SS_ERR_NOT_READY);

	/* A stream stops in front of a wait until the fence is reached. */
	assert_int_equal(drv.fence_wait(drv.ctx, 0, S2, &f1), SS_OK);
	ss_fake_enqueue(fake, 0, S2);
	assert_int_equal(drv.fence_record(drv.ctx, 0, S2, &f2), SS_OK);
	ss_fake_progress(fake, 0, S2, 100);
	assert_int_equal(ss_fake_done(fake, 0, S2), 0);
	ss_fake_progress(fake, 0, S1, 1);
	assert_int_equal(drv.fence_query(drv.ctx, &f1), SS_OK);
	assert_int_equal(drv.fence_query(drv.ctx, &f2), SS_ERR_NOT_READY);
	ss_fake_progress(fake, 0, S2, UINT64_MAX);
	assert_int_equal(drv.fence_query(drv.ctx, &f2), SS_OK);
	drv.fence_release(drv.ctx, &f1);
	drv.fence_release(drv.ctx, &f2);

	/* Draining a stream runs what it waits for, and no more. */
	ss_fake_drain(fake, 0, S1);
	ss_fake_enqueue(fake, 0, S1);
	drv.fence_record(drv.ctx, 0, S1, &f1);
	ss_fake_enqueue(fake, 0, S1);
	drv.fence_wait(drv.ctx, 0, S2, &f1);
	ss_fake_drain(fake, 0, S2);
	assert_int_equal(ss_fake_done(fake, 0, S2), ss_fake_enqueued(fake, 0, S2));
	assert_int_equal(ss_fake_done(fake, 0, S1), ss_fake_enqueued(fake, 0, S1) - 1);
	drv.fence_release(drv.ctx, &f0);
	drv.fence_release(drv.ctx, &f1);
	assert_int_equal(ss_fake_counts(fake).fence_record, 4);

	/* S2 waits for a command of S1 behind which S1 has waited for an earlier one of S2: no
	 * circle. */
	ss_fake_enqueue(fake, 0, S2);
	drv.fence_record(drv.ctx, 0, S2, &f0);
	drv.fence_wait(drv.ctx, 0, S1, &f0);
	drv.fence_record(drv.ctx, 0, S1, &f1);
	drv.fence_wait(drv.ctx, 0, S2, &f1);
	ss_fake_drain(fake, 0, S2);
	assert_int_equal(ss_fake_done(fake, 0, S2), ss_fake_enqueued(fake, 0, S2));
	drv.fence_release(drv.ctx, &f0);
	drv.fence_release(drv.ctx, &f1);
	ss_fake_destroy(fake);

	fake = create(false, true);
	drv = ss_fake_driver(fake);
	ss_fake_enqueue(fake, 0, NULL);
	drv.fence_record(drv.ctx, 0, NULL, &f0);
	assert_int_equal(drv.fence_query(drv.ctx, &f0), SS_OK);
	drv.fence_release(drv.ctx, &f0);
	ss_fake_destroy(fake);
}

static void *per_thread(void *arg)
{
	ss_fake_enqueue(arg, 0, SS_NATIVE_PER_THREAD);
	return NULL;
}

static void test_per_thread(void **state)
{
	struct ss_fake *fake = create(false, false);
	pthread_t thread;

	pthread_create(&thread, NULL, per_thread, fake);
	pthread_join(thread, NULL);
	assert_int_equal(ss_fake_enqueued(fake, 0, SS_NATIVE_PER_THREAD), 0);
	ss_fake_destroy(fake);
}

static void test_failures(void **state)
{
	struct ss_fake *fake = create(true, false);
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_fence fence;
	void *p, *q;

	ss_fake_fail(fake, "segment_alloc", 2, SS_ERR_NOMEM);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 2 * MIB, 0, &p), SS_OK);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 2 * MIB, 0, &q),
			 SS_ERR_NOMEM);
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 2 * MIB, 0, &q), SS_OK);
	ss_fake_fail(fake, "segment_free", 1, SS_ERR_FAILED);
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, p, 2 * MIB), SS_ERR_FAILED);
	assert_true(ss_fake_usable(fake, 0, p, 2 * MIB));
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, p, 2 * MIB), SS_OK);
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, q, 2 * MIB), SS_OK);

	ss_fake_fail(fake, "fence_record", 0, SS_ERR_CAPTURE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(drv.fence_record(drv.ctx, 0, S1, &fence), SS_ERR_CAPTURE);
	ss_fake_fail_clear(fake);
	assert_int_equal(drv.fence_record(drv.ctx, 0, S1, &fence), SS_OK);
	drv.fence_release(drv.ctx, &fence);
	ss_fake_destroy(fake);
}

static void slept(void *arg, unsigned ms)
{
	*(unsigned *)arg += ms;
}

static void test_clock(void **state)
{
	struct ss_fake *fake = create(false, false);
	struct ss_driver drv = ss_fake_driver(fake);
	unsigned total = 0;

	ss_fake_on_sleep(fake, slept, &total);
	ss_fake_advance_ms(fake, 5);
	drv.sleep_ms(drv.ctx, 7);
	assert_int_equal(drv.now_ms(drv.ctx), 12);
	assert_int_equal(total, 7);
	ss_fake_destroy(fake);
}

/* A call takes 10 us, its command 12, and the queue takes two commands. */
static struct ss_fake *create_clocked(void)
{
	struct ss_fake_config config = {
		.hip_release_waits = true, .host_ns = 10000, .device_ns = 12000, .queue = 2};
	struct ss_fake *fake = ss_fake_create(&config);

	assert_non_null(fake);
	return fake;
}

/* The host runs ahead until the queue is full, and the device works all the time. */
static void test_host_ahead(void **state)
{
	struct ss_fake *fake = create_clocked();
	struct ss_fake_times t;

	for (int i = 0; i < 100; i++)
		ss_fake_call(fake, 0, i % 2 ? S1 : S2);
	t = ss_fake_times(fake);
	assert_int_equal(t.end, 10000 + 100 * 12000);
	/* The last command starts when the second to last is done, and was enqueued when the one
	 * before that was: so the host has made 100 calls after 10 + 98 * 12 us. */
	assert_int_equal(t.full, 10000 + 98 * 12000 - 100 * 10000);
	assert_int_equal(t.waits + t.waited + t.idle, 0);
	assert_int_equal(ss_fake_done(fake, 0, S1) + ss_fake_done(fake, 0, S2), 98);
	ss_fake_advance_ms(fake, 1);
	assert_int_equal(ss_fake_done(fake, 0, S1) + ss_fake_done(fake, 0, S2), 100);
	ss_fake_destroy(fake);
}

/* An unmap waits for the device, and access is given from the start of a reservation only, where
 * the configuration says so. */
static void test_clock_vmm(void **state)
{
	struct ss_fake_config config = {.vmm = true,
					.vmm_release_waits = true,
					.access_prefix = true,
					.host_ns = 10000,
					.device_ns = 12000,
					.queue = 2};
	struct ss_fake *fake = ss_fake_create(&config);
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_device_info info;
	void *chunk[2];
	char *va;

	assert_int_equal(drv.device_info(drv.ctx, 0, &info), SS_OK);
	assert_true(info.access_prefix && info.release_waits[SS_BACKING_VMM]);
	assert_int_equal(drv.vmm_reserve(drv.ctx, 0, 2 * MIB, (void **)&va), SS_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(drv.chunk_create(drv.ctx, 0, MIB, &chunk[i]), SS_OK);
		assert_int_equal(drv.map(drv.ctx, 0, va + i * MIB, MIB, chunk[i]), SS_OK);
	}
	assert_int_not_equal(drv.set_access(drv.ctx, 0, va + MIB, MIB, 1), SS_OK);
	assert_false(ss_fake_usable(fake, 0, va + MIB, MIB));
	assert_int_equal(drv.set_access(drv.ctx, 0, va, 2 * MIB, 1), SS_OK);
	assert_true(ss_fake_usable(fake, 0, va + MIB, MIB));
	ss_fake_call(fake, 0, S1); /* at 10 us, done at 22 */
	for (int i = 0; i < 2; i++)
		assert_int_equal(drv.unmap(drv.ctx, 0, va + i * MIB, MIB), SS_OK);
	assert_int_equal(ss_fake_times(fake).waited, 12000);
	assert_int_equal(ss_fake_done(fake, 0, S1), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(drv.chunk_release(drv.ctx, 0, chunk[i], MIB), SS_OK);
	assert_int_equal(drv.vmm_unreserve(drv.ctx, 0, va, 2 * MIB), SS_OK);
	ss_fake_destroy(fake);
}

/* Commands of all streams are done in the order in which they came. */
static void test_clock_order(void **state)
{
	struct ss_fake *fake = create_clocked();
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_fence f;

	ss_fake_call(fake, 0, S1); /* at 10 us, done at 22 */
	assert_int_equal(drv.fence_record(drv.ctx, 0, S1, &f), SS_OK);
	assert_int_equal(drv.fence_wait(drv.ctx, 0, S2, &f), SS_OK);
	assert_int_equal(drv.stream_idle(drv.ctx, 0, S2), SS_ERR_NOT_READY); /* 11 us */
	ss_fake_call(fake, 0, S2); /* the queue is full until 22 us; done at 34 */
	assert_int_equal(drv.fence_query(drv.ctx, &f), SS_OK);
	assert_int_equal(ss_fake_done(fake, 0, S2), 1);
	assert_int_equal(ss_fake_times(fake).full, 1000);
	assert_int_equal(drv.nap(drv.ctx, 11), 11);
	assert_int_equal(drv.stream_idle(drv.ctx, 0, S2), SS_ERR_NOT_READY); /* 34 us */
	assert_int_equal(drv.stream_idle(drv.ctx, 0, S2), SS_OK);
	drv.fence_release(drv.ctx, &f);
	ss_fake_destroy(fake);
}

/* The device is idle because of a wait from the end of its work to the next command, but not for
 * longer than the wait was. */
static void test_idle_by_waits(void **state)
{
	struct ss_fake *fake = create_clocked();
	struct ss_driver drv = ss_fake_driver(fake);
	struct ss_fake_times t;
	void *ptr;

	ss_fake_call(fake, 0, S1); /* at 10 us, done at 22 */
	drv.nap(drv.ctx, 5);
	drv.nap(drv.ctx, 17);      /* until 32 us */
	ss_fake_call(fake, 0, S1); /* at 42 us, done at 54 */
	t = ss_fake_times(fake);
	assert_int_equal(t.waits, 1);
	assert_int_equal(t.waited, 22000);
	assert_int_equal(t.idle, 20000);

	drv.sleep_ms(drv.ctx, 1);  /* until 1042 us */
	ss_fake_call(fake, 0, S1); /* at 1052 us */
	t = ss_fake_times(fake);
	assert_int_equal(t.waits, 2);
	assert_int_equal(t.idle, 20000 + 998000);

	/* Giving back waits for the device, and wakes up in time. */
	assert_int_equal(drv.segment_alloc(drv.ctx, 0, SS_BACKING_HIP, 2 * MIB, 0, &ptr), SS_OK);
	assert_int_equal(drv.segment_free(drv.ctx, 0, SS_BACKING_HIP, ptr, 2 * MIB), SS_OK);
	t = ss_fake_times(fake);
	assert_int_equal(t.waits, 3);
	assert_int_equal(t.waited, 22000 + 1000000 + 12000);
	assert_int_equal(t.end, 1064000);
	ss_fake_call(fake, 0, S1);
	assert_int_equal(ss_fake_times(fake).idle, 20000 + 998000 + 10000);
	ss_fake_destroy(fake);
}

/* A slow host leaves the device idle, but not because of waits. */
static void test_slow_host(void **state)
{
	struct ss_fake_config config = {.host_ns = 20000, .device_ns = 12000, .queue = 2};
	struct ss_fake *fake = ss_fake_create(&config);
	struct ss_driver drv = ss_fake_driver(fake);

	for (int i = 0; i < 10; i++)
		ss_fake_call(fake, 0, S1);
	assert_int_equal(ss_fake_times(fake).end, 10 * 20000 + 12000);
	assert_int_equal(ss_fake_times(fake).idle, 0);
	drv.nap(drv.ctx, 3);
	ss_fake_call(fake, 0, S1);
	assert_int_equal(ss_fake_times(fake).idle, 3000); /* of the 11 us that it was idle */
	ss_fake_destroy(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments),      cmocka_unit_test(test_vmm),
		cmocka_unit_test(test_misuse),        cmocka_unit_test(test_fences),
		cmocka_unit_test(test_per_thread),    cmocka_unit_test(test_failures),
		cmocka_unit_test(test_clock),         cmocka_unit_test(test_host_ahead),
		cmocka_unit_test(test_clock_vmm),     cmocka_unit_test(test_clock_order),
		cmocka_unit_test(test_idle_by_waits), cmocka_unit_test(test_slow_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
