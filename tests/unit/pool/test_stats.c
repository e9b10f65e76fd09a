/* SPDX-License-Identifier: MIT */
/*
 * Tests the statistics at exit (core/pool/stats.c). A signal handler may call exit() in a thread
 * that is inside the core, whose locks are then never released.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "core/statistics.h"
#include "driver/fake/fake.h"

static struct ss_core *core;

static void put(const struct ss_pool_stats *s, void *out)
{
	fprintf(out, "%s: allocations %d, frees %d, misses %d, reserved %d, used %d\n", s->kind,
		(int)s->allocations, (int)s->frees, (int)s->misses, (int)s->reserved, (int)s->used);
}

static void put_device(const struct ss_device_stats *d, void *out)
{
	fprintf(out, "device %d: %d ended, frees %d\n", d->device, (int)d->ended_count,
		(int)d->ended->frees);
}

/* What is seen at exit, as text. */
static void table(char *text, size_t size)
{
	static const struct ss_stats_visitor visitor = {put_device, put};
	FILE *out = fmemopen(text, size, "w");
	struct ss_pool_stats total;

	assert_non_null(out);
	alarm(60);
	ss_stats(core, &visitor, out);
	ss_stats_total(core, &total);
	alarm(0);
	total.kind = "total";
	put(&total, out);
	fclose(out);
}

static void test_locks_held(void **state)
{
	struct ss_timeline *tl = ss_timeline_null(core, 0);
	struct ss_pool *pool = ss_pool_default(core, 0);
	char before[4096], after[4096];
	struct ss_shelf *q;
	void *p;

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ss_alloc_current(core, tl, 4096, &p), SS_OK);
		assert_int_equal(ss_free_async(core, p, tl), SS_OK);
	}
	table(before, sizeof(before));
	assert_non_null(strstr(before, "allocations 1000, frees 1000"));
	ss_pool_lock(pool);
	for (q = pool->shelves.done; q; q = ss_shelf_after(&pool->shelves, q))
		ss_spin_lock(&q->lock.s);
	table(after, sizeof(after));
	assert_string_equal(after, before);
	pthread_mutex_lock(&core->pools->lock);
	table(after, sizeof(after));
	assert_string_equal(after, before);
	pthread_mutex_unlock(&core->pools->lock);
	for (q = pool->shelves.done; q; q = ss_shelf_after(&pool->shelves, q))
		ss_spin_unlock(&q->lock.s);
	ss_pool_unlock(pool);
}

/* The total includes destroyed pools, and each pool once. */
static void test_total(void **state)
{
	struct ss_timeline *tl = ss_timeline_null(core, 0);
	struct ss_pool_stats before, after;
	struct ss_pool *pool;
	void *p;

	ss_stats_total(core, &before);
	assert_int_equal(ss_pool_create(core, 0, 0, &pool), SS_OK);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(ss_alloc_async(core, pool, tl, 1 << 20, &p), SS_OK);
		assert_int_equal(ss_free_async(core, p, tl), SS_OK);
	}
	for (int i = 0; i < 2; i++) {
		ss_stats_total(core, &after);
		assert_int_equal(after.allocations, before.allocations + 10);
		assert_int_equal(after.frees, before.frees + 10);
		assert_int_equal(after.hits, after.allocations - after.misses);
		assert_true(after.used_high >= before.used_high + (1 << 20));
		assert_true(after.reserved_high >= after.used_high);
		assert_true(after.memory_calls > before.memory_calls);
		assert_true(after.driver_calls >= after.memory_calls);
		if (i == 0)
			assert_int_equal(ss_pool_destroy(core, pool), SS_OK);
	}
}

static void figures(const struct ss_pool_stats *s, void *arg)
{
	if (!strcmp(s->kind, "default"))
		*(struct ss_pool_stats *)arg = *s;
}

/* The null stream finds what a busy blocking stream freed. It has to enqueue a command first, and a
 * capture forbids that. So the block goes back, as if it had never been found. */
static void test_taken_and_put_back(void **state)
{
	struct ss_fake *busy = ss_fake_create(&(struct ss_fake_config){0});
	struct ss_driver driver = ss_fake_driver(busy);
	struct ss_pool_stats before = {0}, after = {0};
	struct ss_timeline *null, *a;
	struct ss_options options;
	struct ss_core *own;
	void *p, *q;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	own = ss_core_create(&driver, &options);
	assert_non_null(own);
	null = ss_timeline_null(own, 0);
	a = ss_timeline_add(own, 0, (void *)0x1000, SS_TL_BLOCKING, true);
	assert_int_equal(ss_alloc_current(own, a, 16 << 20, &p), SS_OK);
	ss_fake_enqueue(busy, 0, (void *)0x1000);
	assert_int_equal(ss_free_async(own, p, a), SS_OK);
	ss_stats(own, &(struct ss_stats_visitor){.pool = figures}, &before);
	ss_fake_fail(busy, "fence_record", 0, SS_ERR_CAPTURE);
	assert_int_equal(ss_alloc_current(own, null, 16 << 20, &q), SS_OK);
	assert_ptr_not_equal(p, q);
	ss_stats(own, &(struct ss_stats_visitor){.pool = figures}, &after);
	assert_int_equal(after.allocations, before.allocations + 1);
	assert_int_equal(after.misses, before.misses + 1);
	assert_int_equal(after.reuse_implicit, before.reuse_implicit);
	assert_int_equal(after.reuse_same_stream, before.reuse_same_stream);
	ss_fake_fail_clear(busy);
	ss_fake_drain(busy, 0, (void *)0x1000);
	ss_core_destroy(own);
	ss_fake_destroy(busy);
}

static void classic_figures(const struct ss_pool_stats *s, void *arg)
{
	if (!strcmp(s->kind, "classic"))
		*(struct ss_pool_stats *)arg = *s;
}

/* A block that gets a segment of its own is a miss where the segment is new, and reuse where it is
 * not. */
static void test_whole_segments(void **state)
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){.idle = true});
	struct ss_driver driver = ss_fake_driver(fake);
	struct ss_pool_stats s = {0};
	struct ss_options options;
	struct ss_core *own;
	void *p[20];

	ss_options_read(&options,
			(char *[]){"SOMASHIM_IPC_WHOLE=64K", "SOMASHIM_BACKING=hip", NULL}, NULL);
	own = ss_core_create(&driver, &options);
	assert_non_null(own);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 20; i++)
			assert_int_equal(ss_alloc_classic(own, 0, 1 << 20, &p[i]), SS_OK);
		ss_stats(own, &(struct ss_stats_visitor){.pool = classic_figures}, &s);
		assert_int_equal(s.allocations, 20 * (round + 1));
		assert_int_equal(s.grown, 20);
		assert_int_equal(s.misses, 20);
		assert_int_equal(s.hits, 20 * round);
		assert_int_equal(s.reuse_completed, 20 * round);
		for (int i = 0; i < 20; i++)
			assert_int_equal(ss_free_classic(own, p[i], NULL), SS_OK);
	}
	ss_core_destroy(own);
	ss_fake_destroy(fake);
}

#define SMALL_STREAM 12288

/* A stream costs little, and its frees cost nothing. */
static void test_small_streams(void **state)
{
	static char native[100];
	struct ss_timeline *tl[100];
	static void *p[300];
	uint64_t before, now;

	assert_in_range(sizeof(struct ss_shelf), 1, SMALL_STREAM);
	for (int i = 0; i < 100; i++) {
		tl[i] = ss_timeline_add(core, 0, &native[i], SS_TL_NONBLOCKING, true);
		assert_non_null(tl[i]);
	}
	before = ss_host_bytes(core);
	for (int i = 0; i < 100; i++)
		for (int k = 0; k < 3; k++)
			assert_int_equal(ss_alloc_current(core, tl[i], 4096, &p[3 * i + k]), SS_OK);
	now = ss_host_bytes(core);
	assert_in_range(now - before, 1, 100 * SMALL_STREAM);
	for (int i = 0; i < 300; i++)
		assert_int_equal(ss_free_async(core, p[i], tl[i / 3]), SS_OK);
	assert_int_equal(ss_host_bytes(core), now);
}

int main(void)
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){.idle = true});
	struct ss_driver driver = ss_fake_driver(fake);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks_held),         cmocka_unit_test(test_total),
		cmocka_unit_test(test_taken_and_put_back), cmocka_unit_test(test_whole_segments),
		cmocka_unit_test(test_small_streams),
	};
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
