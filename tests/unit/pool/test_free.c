/* SPDX-License-Identifier: MIT */
/*
 * Tests frees (core/pool/free.c): a free concerns an address, even if the descriptor that was found
 * there has been recycled meanwhile. What a hipFree without a wait costs the device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "driver/fake/fake.h"

static struct ss_core *core;
static struct ss_fake *fake;

/* A free finds the block's descriptor just before another free recycles it. When it looks again,
 * the descriptor is of another live block of the same stream. */
static void test_recycled(void **state)
{
	struct ss_timeline *tl = ss_timeline_null(core, 0);
	struct ss_pool *pool = ss_pool_default(core, 0);
	struct ss_segment *seg;
	struct ss_block *b;
	uint64_t addr;
	char *p;

	assert_int_equal(ss_alloc_async(core, pool, tl, 4096, (void **)&p), SS_OK);
	addr = (uintptr_t)p;
	seg = ss_map_segment(core, addr);
	b = ss_block_at(core, seg, addr);
	assert_non_null(b);
	b->addr = addr + 8192;
	assert_int_equal(ss_free_async(core, p, tl), SS_ERR_INVALID);
	assert_int_equal(ss_free_classic(core, p, NULL), SS_ERR_INVALID);
	assert_int_equal(b->state, SS_BLOCK_LIVE);
	assert_int_equal(ss_free_async(core, p + 300, tl), SS_ERR_INVALID);
	b->addr = addr;
	assert_int_equal(ss_free_async(core, p + 300, tl), SS_OK); /* HIP allows that, too */
	assert_int_equal(ss_free_async(core, p, tl), SS_ERR_INVALID);
}

/* A free that did not wait marks all streams of the device. The next hipMalloc asks the idle ones
 * with a query; only the null stream, of which a query says nothing, and the busy stream get a
 * fence. */
static void test_idle_streams_get_no_fence(void **state)
{
	struct ss_fake *device = ss_fake_create(&(struct ss_fake_config){.devices = 1});
	struct ss_driver driver = ss_fake_driver(device);
	struct ss_options options;
	struct ss_core *busy;
	void *p, *q;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	busy = ss_core_create(&driver, &options);
	assert_non_null(busy);
	for (uintptr_t i = 1; i <= 8; i++)
		assert_non_null(
			ss_timeline_add(busy, 0, (void *)(i * 16), SS_TL_NONBLOCKING, true));
	assert_int_equal(ss_alloc_classic(busy, 0, 1 << 28, &p), SS_OK);
	ss_fake_enqueue(device, 0, (void *)16);
	assert_int_equal(ss_free_classic(busy, p, NULL), SS_OK);
	assert_int_equal(ss_alloc_classic(busy, 0, 1 << 28, &q), SS_OK);
	assert_ptr_not_equal(p, q);
	assert_int_equal(ss_fake_counts(device).fence_record, 2);
	assert_int_equal(ss_order_fences(busy), 2);
	ss_core_destroy(busy);
	ss_fake_destroy(device);
}

/* Where giving back does not wait for the device, a segment whose last block was exported stays
 * until a kernel that may use it is over. */
static void test_exported_in_use(void **state)
{
	struct ss_fake *device = ss_fake_create(&(struct ss_fake_config){.devices = 1});
	struct ss_driver driver = ss_fake_driver(device);
	struct ss_ipc_place place;
	struct ss_options options;
	struct ss_core *exports;
	void *p, *q;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	exports = ss_core_create(&driver, &options);
	assert_non_null(exports);
	assert_non_null(ss_timeline_add(exports, 0, (void *)16, SS_TL_NONBLOCKING, true));
	assert_int_equal(ss_alloc_classic(exports, 0, 1 << 28, &p), SS_OK);
	assert_int_equal(ss_ipc_find(exports, p, &place), SS_OK);
	ss_ipc_export(exports, &place);
	ss_fake_enqueue(device, 0, (void *)16);
	assert_int_equal(ss_free_classic(exports, p, NULL), SS_OK);
	assert_int_equal(ss_pool_trim(exports, ss_pool_classic(exports, 0), 0), SS_OK);
	assert_int_equal(ss_fake_counts(device).segment_free, 0);
	ss_fake_drain(device, 0, (void *)16);
	assert_true(ss_device_record_and_ask(exports, 0, true));
	assert_int_equal(ss_alloc_classic(exports, 0, 1 << 28, &q), SS_OK);
	/* The bytes are never again anybody's: the segment goes, or it stays and another is
	 * taken. */
	assert_int_equal(ss_fake_counts(device).segment_alloc, 2);
	assert_int_equal(ss_pool_trim(exports, ss_pool_classic(exports, 0), 0), SS_OK);
	assert_int_equal(ss_fake_counts(device).segment_free, 1);
	ss_core_destroy(exports);
	ss_fake_destroy(device);
}

/* A query of a busy stream costs as much as a fence. So while a fence says that a stream is busy,
 * it is not asked by a query, however much it holds. */
static void test_busy_stream_is_asked_once(void **state)
{
	struct ss_fake *device = ss_fake_create(&(struct ss_fake_config){.devices = 1});
	struct ss_driver driver = ss_fake_driver(device);
	struct ss_timeline *producer, *consumer;
	struct ss_options options;
	struct ss_core *both;
	struct ss_pool *pool;
	void *p[4], *q;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	both = ss_core_create(&driver, &options);
	assert_non_null(both);
	pool = ss_pool_default(both, 0);
	producer = ss_timeline_add(both, 0, (void *)16, SS_TL_NONBLOCKING, true);
	consumer = ss_timeline_add(both, 0, (void *)32, SS_TL_NONBLOCKING, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ss_alloc_async(both, pool, producer, 1 << 26, &p[i]), SS_OK);
	ss_fake_enqueue(device, 0, (void *)16);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ss_free_async(both, p[i], producer), SS_OK);
		assert_int_equal(ss_alloc_async(both, pool, consumer, 1 << 26, &q), SS_OK);
		assert_int_equal(ss_order_busy_queries(both), 1);
	}
	ss_fake_drain(device, 0, (void *)16);
	assert_int_equal(ss_free_async(both, q, consumer), SS_OK);
	ss_core_destroy(both);
	ss_fake_destroy(device);
}

int main(void)
{
	fake = ss_fake_create(&(struct ss_fake_config){.idle = true});
	struct ss_driver driver = ss_fake_driver(fake);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_recycled),
					   cmocka_unit_test(test_idle_streams_get_no_fence),
					   cmocka_unit_test(test_exported_in_use),
					   cmocka_unit_test(test_busy_stream_is_asked_once)};
	struct ss_options options;
	int failed;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	core = ss_core_create(&driver, &options);
	if (!core)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ss_core_destroy(core);
	ss_fake_destroy(fake);
	return failed;
}
