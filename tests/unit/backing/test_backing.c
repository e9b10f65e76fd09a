/* SPDX-License-Identifier: MIT */
/* Tests the memory of a pool: what all backings have in common, and whole segments. */
#include "tests/unit/backing/fixture.h"

static const enum ss_backing backings[] = {SS_BACKING_HIP, SS_BACKING_HSA, SS_BACKING_VMM};
#define EACH_BACKING(i) for (unsigned i = 0; i < sizeof(backings) / sizeof(*backings); i++)

static void test_grow_and_release(void **state)
{
	EACH_BACKING(i) {
		struct ss_block *a, *b;

		open_memory(backings[i], 1024 * MIB);
		assert_int_equal(mem->backing, backings[i]);
		a = need(9 * MIB, false);
		assert_reserved(10 * MIB);
		assert_int_equal(mem->completed.bytes, MIB);
		b = need(4 * MIB, false);
		assert_true(a->addr + a->size <= b->addr || b->addr + b->size <= a->addr);
		/* Live memory stays. */
		give(b);
		ss_memory_release(mem, 0, UINT64_MAX);
		assert_true(gathered > 0);
		assert_reserved(10 * MIB);
		give(a);
		assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 10 * MIB);
		assert_reserved(0);
		assert_in_range(mem->reserved_high, 13 * MIB, 14 * MIB);
		assert_int_equal(mem->released_bytes, mem->reserved_high);
		close_memory();
	}
}

static unsigned ranges(const struct ss_free_index *x)
{
	unsigned count = 0;

	SS_INDEX_EACH(b, x)
		count++;
	return count;
}

/* Blocks that are cut out of the completed ranges coalesce again completely. */
static void test_completed_ranges(void **state)
{
	EACH_BACKING(i) {
		struct ss_block *b[3];

		open_memory(backings[i], 1024 * MIB);
		assert_int_equal(grow(8 * MIB, false), SS_OK);
		for (unsigned k = 0; k < 3; k++)
			b[k] = need(MIB, false);
		assert_int_equal(mem->completed.bytes, 5 * MIB);
		ss_set_home(b[1], 7);
		give(b[0]);
		give(b[2]);
		assert_int_equal(ranges(&mem->completed), 2);
		give(b[1]);
		assert_int_equal(ranges(&mem->completed), 1);
		assert_int_equal(mem->completed.bytes, 8 * MIB);
		assert_int_equal(ss_home(ss_index_best(&mem->completed, 8 * MIB, SS_GRAIN)), 0);
		assert_non_null(take(2 * MIB, 4 * MIB));
		close_memory();
	}
}

static void test_limit(void **state)
{
	EACH_BACKING(i) {
		open_memory(backings[i], 1024 * MIB);
		ss_device_memory(core, 0)->limit = 64 * MIB;
		need(48 * MIB, false);
		assert_int_equal(grow(48 * MIB, true), SS_ERR_NOMEM);
		assert_reserved(48 * MIB);
		need(16 * MIB, false);
		assert_int_equal(grow(2 * MIB, false), SS_ERR_NOMEM);
		assert_reserved(64 * MIB);
		close_memory();

		open_memory(backings[i], 1024 * MIB);
		mem->max_bytes = 33 * MIB;
		need(32 * MIB, false);
		assert_int_equal(grow(4 * MIB, false), SS_ERR_NOMEM);
		need(2 * MIB, false);
		assert_reserved(34 * MIB);
		close_memory();
	}
}

static void test_device_full(void **state)
{
	EACH_BACKING(i) {
		open_memory(backings[i], 64 * MIB);
		need(48 * MIB, false);
		assert_int_equal(grow(32 * MIB, true), SS_ERR_NOMEM);
		assert_reserved(48 * MIB);
		/* The device is nearly full: frees and the runtime's own calls must know. */
		need(16 * MIB, false);
		assert_true(ss_nearly_full(core, 0));
		assert_true(ss_device_low(core, 0));
		close_memory();
	}
}

/* How much is left of the device is asked seldom while that is much, and at every growth later. */
static void test_device_asked(void **state)
{
	EACH_BACKING(i) {
		uint64_t asked;

		open_memory(backings[i], 1024 * MIB);
		for (unsigned n = 0; n < 16; n++)
			need(32 * MIB, false);
		assert_int_equal(ss_fake_counts(fake).mem_info, 1);
		/* Another process may have taken some meanwhile. */
		ss_fake_advance_ms(fake, 10);
		need(32 * MIB, false);
		assert_int_equal(ss_fake_counts(fake).mem_info, 2);
		/* So may the program, past the pools. */
		ss_device_room_changed(core);
		need(32 * MIB, false);
		assert_int_equal(ss_fake_counts(fake).mem_info, 3);
		need(224 * MIB, false);
		asked = ss_fake_counts(fake).mem_info;
		need(16 * MIB, false);
		need(16 * MIB, false);
		assert_int_equal(ss_fake_counts(fake).mem_info, asked + 2);
		assert_false(ss_nearly_full(core, 0));
		need(160 * MIB, false);
		assert_true(ss_nearly_full(core, 0));
		close_memory();
	}
}

static void test_growth_segment(void **state)
{
	struct ss_growth g = {
		.size = 3 * MIB, .align = SS_GRAIN, .segment = 20 * MIB, .slot = SS_SLOT_COMPLETED};

	open_memory(SS_BACKING_HIP, 64 * MIB);
	assert_int_equal(ss_memory_grow(mem, &g), SS_OK);
	assert_reserved(20 * MIB);
	need(20 * MIB, false);
	/* If there is no room for the whole segment, it is as large as the block needs. */
	g.segment = 60 * MIB;
	assert_int_equal(ss_memory_grow(mem, &g), SS_OK);
	assert_reserved(24 * MIB);
	close_memory();
}

/* Idle segments that are too short go back before the reserved peak rises. */
static void test_exchange(void **state)
{
	struct ss_block *a, *b;

	open_memory(SS_BACKING_HIP, 1024 * MIB);
	a = need(32 * MIB, false);
	b = need(16 * MIB, false);
	give(a);
	give(b);
	assert_int_equal(mem->idle_bytes, 48 * MIB);
	assert_int_equal(ss_memory_releasable(mem, 40 * MIB), 48 * MIB);
	a = need(40 * MIB, true);
	assert_true(mem->reserved <= 48 * MIB);
	assert_int_equal(mem->reserved_high, 48 * MIB);
	/* But not if somebody would have to wait for that. */
	give(a);
	need(48 * MIB, false);
	assert_true(mem->reserved_high >= 88 * MIB);
	close_memory();
}

static void test_threshold_keep(void **state)
{
	struct ss_block *a, *b;

	open_memory(SS_BACKING_HIP, 1024 * MIB);
	a = need(32 * MIB, false);
	b = need(32 * MIB, false);
	give(a);
	give(b);
	/* 64 MiB are kept. 40 of them may go in exchange for 40 new ones: one segment of the
	 * two. */
	mem->keep = 64 * MIB;
	pthread_mutex_lock(&mem->lock);
	assert_int_equal(ss_memory_releasable(mem, 40 * MIB), 64 * MIB);
	assert_int_equal(ss_memory_releasable(mem, 8 * MIB), 0);
	pthread_mutex_unlock(&mem->lock);
	a = need(40 * MIB, true);
	assert_reserved(72 * MIB);
	give(a);
	mem->keep = 0;
	need(72 * MIB, true);
	assert_reserved(72 * MIB);
	close_memory();
}

/* Memory goes back by age, which starts again at each use. */
static void test_age(void **state)
{
	EACH_BACKING(i) {
		struct ss_block *a, *b;

		open_memory(backings[i], 1024 * MIB);
		ss_fake_advance_ms(fake, 1000);
		a = need(8 * MIB, false);
		b = need(8 * MIB, false);
		give(a);
		ss_memory_release(mem, 0, 0); /* notes that it is idle */
		ss_fake_advance_ms(fake, 1000);
		give(b);
		ss_fake_advance_ms(fake, 1000);
		ss_memory_release(mem, 0, ss_now_ms(core) - 1500);
		assert_reserved(8 * MIB);
		/* It was used in between. */
		b = need(8 * MIB, false);
		give(b);
		ss_memory_release(mem, 0, ss_now_ms(core) - 500);
		assert_reserved(8 * MIB);
		ss_memory_release(mem, 0, ss_now_ms(core));
		assert_reserved(0);
		close_memory();
	}
}

/* A segment that the driver neither opens to peers nor takes back counts as reserved, and is the
 * next segment. */
static enum ss_status (*segment_alloc)(void *, int, enum ss_backing, size_t, uint64_t, void **);

static enum ss_status alloc_closed(void *ctx, int dev, enum ss_backing backing, size_t size,
				   uint64_t peers, void **ptr)
{
	enum ss_status s = segment_alloc(ctx, dev, backing, size, peers, ptr);

	return s == SS_OK ? SS_ERR_CAPTURE : s;
}

static void test_unreturned(void **state)
{
	open_memory(SS_BACKING_HIP, 1024 * MIB);
	segment_alloc = core->drv.segment_alloc;
	core->drv.segment_alloc = alloc_closed;
	ss_fake_fail(fake, "segment_free", 0, SS_ERR_CAPTURE);
	assert_int_equal(grow(8 * MIB, false), SS_ERR_CAPTURE);
	assert_reserved(8 * MIB);
	assert_int_equal(mem->completed.bytes, 0);
	ss_fake_fail_clear(fake);
	core->drv.segment_alloc = segment_alloc;
	need(8 * MIB, false);
	assert_reserved(8 * MIB);

	core->drv.segment_alloc = alloc_closed;
	ss_fake_fail(fake, "segment_free", 0, SS_ERR_CAPTURE);
	assert_int_equal(grow(4 * MIB, false), SS_ERR_CAPTURE);
	assert_reserved(12 * MIB);
	ss_fake_fail_clear(fake);
	assert_int_equal(ss_memory_retry(mem), 4 * MIB);
	assert_reserved(8 * MIB);
	close_memory();
}

/* A segment that the device keeps at release stays with the pool. */
static void test_release_refused(void **state)
{
	open_memory(SS_BACKING_HSA, 1024 * MIB);
	give(need(8 * MIB, false));
	ss_fake_fail(fake, "segment_free", 1, SS_ERR_FAILED);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 0);
	assert_reserved(8 * MIB);
	assert_int_equal(mem->completed.bytes, 8 * MIB);
	need(8 * MIB, false);
	assert_reserved(8 * MIB);
	close_memory();
}

static void test_whole(void **state)
{
	open_memory(SS_BACKING_HIP, 64 * MIB);
	give(need(40 * MIB, false));
	assert_int_equal(ss_memory_add_whole(mem, 40 * MIB, false), SS_ERR_NOMEM);
	assert_reserved(40 * MIB);
	assert_int_equal(ss_memory_add_whole(mem, 48 * MIB, true), SS_OK);
	assert_reserved(48 * MIB);
	assert_int_equal(mem->idle_bytes, 48 * MIB);
	close_memory();
}

static void test_access(void **state)
{
	open_memory(SS_BACKING_HIP, 1024 * MIB);
	need(8 * MIB, false);
	ss_fake_fail(fake, "segment_access", 1, SS_ERR_FAILED);
	assert_int_equal(ss_memory_set_access(mem, 2, 0), SS_ERR_FAILED);
	assert_int_equal(mem->peers, 1);
	assert_int_equal(ss_memory_set_access(mem, 2, 0), SS_OK);
	assert_int_equal(mem->peers, 3);
	assert_int_equal(ss_memory_set_access(mem, 0, 3), SS_OK);
	assert_int_equal(mem->peers, 1);
	close_memory();
}

/* The memory of a pool may begin again after a reset. */
static void test_again(void **state)
{
	EACH_BACKING(i) {
		open_memory(backings[i], 1024 * MIB);
		need(8 * MIB, false);
		ss_memory_drop(mem, SS_DROP_ALL);
		assert_reserved(0);
		ss_memory_init(mem, core, NULL, 0, SS_BACKING_HIP);
		assert_int_equal(mem->reserved_high, 0);
		need(2 * MIB, false);
		assert_reserved(2 * MIB);
		close_memory();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow_and_release),
		cmocka_unit_test(test_completed_ranges),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_device_full),
		cmocka_unit_test(test_device_asked),
		cmocka_unit_test(test_growth_segment),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_threshold_keep),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_unreturned),
		cmocka_unit_test(test_release_refused),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_access),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
