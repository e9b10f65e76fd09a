/* SPDX-License-Identifier: MIT */
/*
 * What a wait for frees in flight costs. A thread that waits looks again and again, so a look must
 * cost what has changed since, not all that is in flight. Looks are counted, not timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "driver/fake/fake.h"

#define BLOCK (1 << 20)
#define BLOCKS 500
#define STREAMS 500
#define STREAM ((void *)16)
#define PEERS_STREAM ((void *)32)

bool __real_ss_all_reached(struct ss_core *c, int dev, uint64_t n, bool any);
bool __wrap_ss_all_reached(struct ss_core *c, int dev, uint64_t n, bool any);

static struct ss_core *core;
static struct ss_fake *fake;
static struct ss_driver driver;
static uint64_t naps, looks;

bool __wrap_ss_all_reached(struct ss_core *c, int dev, uint64_t n, bool any)
{
	looks++;
	return __real_ss_all_reached(c, dev, n, any);
}

/* The device does a command while the host waits. */
static uint64_t nap(void *ctx, unsigned us)
{
	(void)ctx;
	naps++;
	ss_fake_progress(fake, 0, STREAM, 1);
	ss_fake_progress(fake, 0, NULL, 1);
	return us;
}

static void begin(const struct ss_fake_config *config)
{
	struct ss_options options;

	fake = ss_fake_create(config);
	driver = ss_fake_driver(fake);
	driver.nap = nap;
	ss_options_read(&options, (char *[]){NULL}, NULL);
	core = ss_core_create(&driver, &options);
	assert_non_null(core);
	naps = looks = 0;
}

static void end(void)
{
	ss_core_destroy(core);
	ss_fake_destroy(fake);
}

/* A stream that moves on, so that the next hipFree has a mark of its own. */
static void use(struct ss_timeline *tl)
{
	ss_fake_enqueue(fake, 0, STREAM);
	assert_true(ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_LATE));
}

/* Marks of ALL are reached in their order, so a look goes to the oldest only. */
static void test_marks(void **state)
{
	struct ss_timeline *tl;
	static void *p[BLOCKS];

	begin(&(struct ss_fake_config){.devices = 1});
	tl = ss_timeline_add(core, 0, STREAM, SS_TL_NONBLOCKING, true);
	for (int i = 0; i < BLOCKS; i++)
		assert_int_equal(ss_alloc_classic(core, 0, BLOCK, &p[i]), SS_OK);
	for (int i = 0; i < BLOCKS; i++) {
		use(tl);
		assert_int_equal(ss_free_classic(core, p[i], NULL), SS_OK);
	}
	looks = 0;
	for (int i = 0; i < BLOCKS; i++) {
		assert_int_equal(ss_alloc_classic(core, 0, BLOCK, &p[i]), SS_OK);
		use(tl);
		assert_int_equal(ss_free_classic(core, p[i], NULL), SS_OK);
	}
	assert_in_range(naps, BLOCKS / 4, UINT64_MAX); /* it did wait */
	/* A few looks for each allocation and each nap, and one for each mark that is reached. */
	assert_in_range(looks, naps, 2 * naps + 4 * BLOCKS);
	ss_fake_drain(fake, 0, STREAM);
	end();
}

/* A mark of ALL waits for all that older ones wait for, also for a device that has lost its access
 * meanwhile. When none is left, the next one does not. */
static void test_access(void **state)
{
	struct ss_pool *pool;
	void *p[3], *q, *r;

	begin(&(struct ss_fake_config){.devices = 2});
	assert_non_null(ss_timeline_add(core, 0, STREAM, SS_TL_NONBLOCKING, true));
	assert_non_null(ss_timeline_add(core, 1, PEERS_STREAM, SS_TL_NONBLOCKING, true));
	pool = ss_pool_default(core, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			ss_alloc_async(core, pool, ss_timeline_null(core, 0), 64 << 20, &p[i]),
			SS_OK);
	for (int i = 0; i < 3; i++) {
		ss_fake_enqueue(fake, 0, STREAM);
		ss_fake_enqueue(fake, 1, PEERS_STREAM);
		assert_int_equal(ss_pool_set_access(pool, i == 1 ? 0 : 2, i == 1 ? 2 : 0), SS_OK);
		assert_int_equal(ss_free_classic(core, p[i], NULL), SS_OK);
	}
	ss_fake_drain(fake, 0, STREAM);
	assert_int_equal(ss_alloc_async(core, pool, ss_timeline_null(core, 0), 64 << 20, &q),
			 SS_OK);
	for (int i = 0; i < 3; i++)
		assert_ptr_not_equal(q, p[i]);
	ss_fake_drain(fake, 1, PEERS_STREAM);
	assert_int_equal(ss_alloc_async(core, pool, ss_timeline_null(core, 0), 192 << 20, &r),
			 SS_OK);
	assert_ptr_equal(r, p[0]); /* all three */
	assert_int_equal(ss_pool_set_access(pool, 0, 2), SS_OK);
	ss_fake_enqueue(fake, 1, PEERS_STREAM);
	assert_int_equal(ss_free_classic(core, q, NULL), SS_OK);
	assert_int_equal(ss_alloc_async(core, pool, ss_timeline_null(core, 0), 64 << 20, &r),
			 SS_OK);
	assert_ptr_equal(r, q);
	end();
}

/* Consumers of what a producer makes: each of many streams holds a little, and the device is
 * behind. A thread that waits for them asks a few of them between two naps. */
static void test_many_streams(void **state)
{
	static struct ss_timeline *tl[STREAMS];
	struct ss_pool *pool;
	static void *p[STREAMS];
	uint64_t before;
	void *q;

	begin(&(struct ss_fake_config){.devices = 1});
	pool = ss_pool_default(core, 0);
	for (uintptr_t i = 0; i < STREAMS; i++) {
		tl[i] = ss_timeline_add(core, 0, (void *)((i + 1) * 16), SS_TL_NONBLOCKING, true);
		assert_int_equal(ss_alloc_async(core, pool, tl[i], BLOCK, &p[i]), SS_OK);
	}
	for (uintptr_t i = 0; i < STREAMS; i++) {
		/* Only the first one moves on. */
		for (int k = 0; k < 100; k++)
			ss_fake_enqueue(fake, 0, (void *)((i + 1) * 16));
		assert_int_equal(ss_free_async(core, p[i], tl[i]), SS_OK);
		assert_true(ss_fence_request(core, tl[i], UINT64_MAX, SS_FENCE_LATE));
	}
	before = ss_fake_counts(fake).fence_query;
	assert_int_equal(
		ss_alloc_async(core, pool,
			       ss_timeline_add(core, 0, (void *)8, SS_TL_NONBLOCKING, true), BLOCK,
			       &q),
		SS_OK);
	assert_ptr_equal(q, p[0]);
	assert_in_range(naps, 100, UINT64_MAX);
	/* A few at the start, and a few for each nap. */
	assert_in_range(ss_fake_counts(fake).fence_query - before, naps, 16 * naps + STREAMS / 2);
	for (uintptr_t i = 0; i < STREAMS; i++)
		ss_fake_drain(fake, 0, (void *)((i + 1) * 16));
	end();
}

/* A device that is not behind, and streams of which only a fence tells that: what one freed another
 * one gets, as often as it asks, with no wait and no call for memory. */
static void test_idle_streams(void **state)
{
	struct ss_timeline *tl[2];
	struct ss_pool *pool;
	void *p;

	begin(&(struct ss_fake_config){.idle = true});
	pool = ss_pool_default(core, 0);
	for (uintptr_t i = 0; i < 2; i++)
		tl[i] = ss_timeline_add(core, 0, (void *)((i + 1) * 16), SS_TL_BLOCKING, true);
	for (int i = 0; i < 200; i++) {
		ss_fake_enqueue(fake, 0, (void *)(uintptr_t)((i % 2 + 1) * 16));
		assert_int_equal(ss_alloc_async(core, pool, tl[i % 2], 4 * BLOCK, &p), SS_OK);
		assert_int_equal(ss_free_async(core, p, tl[i % 2]), SS_OK);
	}
	assert_int_equal(naps, 0);
	assert_int_equal(ss_fake_counts(fake).segment_alloc, 1);
	end();
}

/* How long a fence was seen to take counts at once, but not how long nobody looked. */
static void test_slow_fences(void **state)
{
	struct ss_timeline *tl;

	begin(&(struct ss_fake_config){.devices = 1});
	assert_non_null(ss_pool_default(core, 0));
	tl = ss_timeline_add(core, 0, STREAM, SS_TL_NONBLOCKING, true);
	for (int looked = 0; looked < 2; looked++) {
		ss_fake_enqueue(fake, 0, STREAM);
		assert_true(ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_LATE));
		ss_fake_advance_ms(fake, 60);
		if (looked)
			assert_false(ss_fences_poll(core, tl, -1));
		ss_fake_advance_ms(fake, 60);
		ss_fake_drain(fake, 0, STREAM);
		assert_true(ss_fences_poll(core, tl, -1));
		assert_int_equal(ss_fence_ms(core, 0), looked ? 60 : 1);
	}
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),        cmocka_unit_test(test_access),
		cmocka_unit_test(test_many_streams), cmocka_unit_test(test_idle_streams),
		cmocka_unit_test(test_slow_fences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
