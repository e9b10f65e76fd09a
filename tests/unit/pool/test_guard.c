/* SPDX-License-Identifier: MIT */
/*
 * Tests guarded blocks, and bytes in front of blocks (core/pool/front.c, core/backing/guard.c), on
 * every backing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "core/statistics.h"
#include "driver/fake/fake.h"

#define STREAM ((void *)16)

static struct ss_fake *fake;
static struct ss_core *core;
static struct ss_timeline *tl;

static void begin(char **env, bool vmm)
{
	struct ss_driver driver;
	struct ss_options options;

	fake = ss_fake_create(&(struct ss_fake_config){
		.devices = 1, .vram = 64 << 20, .vmm = vmm, .vmm_release_waits = true});
	driver = ss_fake_driver(fake);
	ss_options_read(&options, env, NULL);
	core = ss_core_create(&driver, &options);
	assert_non_null(core);
	tl = ss_timeline_add(core, 0, STREAM, SS_TL_NONBLOCKING, true);
	assert_non_null(tl);
}

static void end(void)
{
	assert_null(ss_check(core));
	ss_core_destroy(core);
	ss_fake_destroy(fake);
}

static void synchronize(void)
{
	struct ss_token t;

	t = ss_device_sync_begin(core, 0);
	ss_fake_drain(fake, 0, STREAM);
	ss_sync_end(core, &t, true, true);
}

/* The block is what the program sees, and it ends where nothing is. */
static char *guarded(bool classic, size_t size)
{
	struct ss_pool *pool = classic ? ss_pool_classic(core, 0) : ss_pool_default(core, 0);
	struct ss_block_info info;
	struct ss_found f;
	char *p;

	assert_int_equal(ss_alloc_guarded(core, pool, classic ? NULL : tl, size, (void **)&p),
			 SS_OK);
	assert_true(ss_lookup(core, p + size - 1, &info));
	assert_ptr_equal(info.base, p);
	assert_int_equal(info.size, size);
	assert_true(info.guarded && info.live && info.classic == classic);
	assert_ptr_equal(p + info.room, (char *)info.segment + info.segment_size);
	assert_int_equal(info.room, ss_round(size, classic ? SS_CLASSIC_ALIGN : SS_GRAIN));
	assert_ptr_equal(p - info.front, info.segment);
	assert_true(ss_fake_usable(fake, 0, p, info.room));
	assert_false(ss_fake_usable(fake, 0, p + info.room, 1));
	if (info.front)
		assert_int_equal(ss_find(core, p - 1, &f), SS_ERR_INVALID);
	assert_null(ss_check(core));
	return p;
}

static void in_stream_order(char **env)
{
	char *p, *q;

	begin(env, true);
	p = guarded(false, (3 << 20) - 100);
	ss_fake_enqueue(fake, 0, STREAM);
	assert_int_equal(ss_free_async(core, p, tl), SS_OK);
	assert_int_equal(ss_free_async(core, p, tl), SS_ERR_INVALID);
	ss_decay_run(core, 0, false);
	assert_true(ss_fake_usable(fake, 0, p, 3 << 20)); /* the stream has not come there */
	q = guarded(false, 4 << 20);                      /* a whole segment: there is no front */
	assert_int_equal(ss_free_async(core, q, tl), SS_OK);
	synchronize();
	assert_false(ss_fake_usable(fake, 0, p, 1));
	assert_true(ss_unmapped(core, p) && ss_unmapped(core, p + (4 << 20)));
	assert_int_equal(ss_find(core, p, &(struct ss_found){0}), SS_ERR_FOREIGN);
	for (int i = 0; i < 100; i++) { /* the addresses come to nobody */
		q = guarded(false, 3 << 20);
		assert_true(q >= p + (3 << 20) || q + (3 << 20) <= p);
		assert_int_equal(ss_free_async(core, q, tl), SS_OK);
		synchronize();
	}
	end();
}

static void test_in_stream_order(void **state)
{
	in_stream_order((char *[]){NULL});
	in_stream_order((char *[]){"SOMASHIM_BACKING=hsa", NULL});
	in_stream_order((char *[]){"SOMASHIM_BACKING=vmm", NULL});
}

/* hipFree that waited gives it back at once; one that did not, when all streams have come past. */
static void test_classic(void **state)
{
	struct ss_token t;
	char *p, *q;

	begin((char *[]){NULL}, true);
	p = guarded(true, 100000);
	q = guarded(true, 100000);
	t = ss_streams_sync_begin(core, 0);
	assert_int_equal(ss_free_classic(core, p, &t), SS_OK);
	assert_true(ss_unmapped(core, p));
	ss_fake_enqueue(fake, 0, STREAM);
	assert_int_equal(ss_free_classic(core, q, NULL), SS_OK);
	ss_decay_run(core, 0, false);
	assert_true(ss_fake_usable(fake, 0, q, 100000));
	synchronize();
	ss_decay_run(core, 0, true);
	assert_true(ss_unmapped(core, q));
	end();
}

/* Whatever fails, nothing is lost, and what the device does not take back stays what it was. */
static void test_failures(void **state)
{
	static const char *const calls[] = {"vmm_reserve", "chunk_create", "map", "set_access"};
	char *p;

	begin((char *[]){NULL}, true);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		ss_fake_fail(fake, calls[i], 1, SS_ERR_FAILED);
		assert_int_equal(
			ss_alloc_guarded(core, ss_pool_default(core, 0), tl, 1 << 20, (void **)&p),
			SS_ERR_FAILED);
		assert_int_equal(ss_fake_counts(fake).chunk_create,
				 ss_fake_counts(fake).chunk_release + (i >= 1));
	}
	assert_int_equal(
		ss_alloc_guarded(core, ss_pool_default(core, 0), tl, 65 << 20, (void **)&p),
		SS_ERR_NOMEM);
	p = guarded(false, 40 << 20);
	assert_int_equal(ss_free_async(core, p, tl), SS_OK);
	ss_fake_fail(fake, "unmap", 0, SS_ERR_CAPTURE);
	synchronize();
	assert_false(ss_unmapped(core, p));
	ss_fake_fail_clear(fake);
	synchronize();
	assert_true(ss_unmapped(core, p));
	p = guarded(false, 40 << 20);
	ss_device_reset_begin(core, 0, true);
	ss_device_reset_end(core, 0);
	assert_true(ss_unmapped(core, p));
	end();

	begin((char *[]){NULL}, false);
	assert_int_equal(ss_alloc_guarded(core, ss_pool_default(core, 0), tl, 1 << 20, (void **)&p),
			 SS_ERR_UNSUPPORTED);
	end();
}

/* Bytes in front of each block: alignment, reuse, and no byte of it in use. */
static void fronts(char **env)
{
	struct ss_block_info info;
	unsigned seed = 1;
	char *p[16] = {0};
	uint64_t used = 0, got;

	begin(env, true);
	for (int i = 0; i < 2000; i++) {
		int at = rand_r(&seed) % 16;
		size_t size = (size_t)(rand_r(&seed) % 200000) + 1;
		bool classic = at % 2;

		if (p[at]) {
			assert_true(ss_lookup(core, p[at], &info));
			used -= info.room;
			assert_int_equal(classic ? ss_free_classic(core, p[at], NULL) :
						   ss_free_async(core, p[at], tl),
					 SS_OK);
			p[at] = NULL;
		} else {
			assert_int_equal(classic ?
						 ss_alloc_classic(core, 0, size, (void **)&p[at]) :
						 ss_alloc_async(core, ss_pool_default(core, 0), tl,
								size, (void **)&p[at]),
					 SS_OK);
			assert_true(ss_lookup(core, p[at], &info));
			assert_ptr_equal(info.base, p[at]);
			assert_true(info.front >= 300 && info.room >= size);
			if (classic && size >= SS_CLASSIC_LARGE)
				assert_int_equal((uintptr_t)p[at] % SS_CLASSIC_ALIGN, 0);
			assert_int_equal(ss_find(core, p[at] - 1, &(struct ss_found){0}),
					 SS_ERR_INVALID);
			used += info.room;
		}
		if (i % 50 == 0)
			assert_null(ss_check(core));
		if (i % 100 == 0)
			synchronize();
	}
	assert_int_equal(ss_pool_get_attr(ss_pool_default(core, 0), SS_ATTR_USED_CURRENT, &got),
			 SS_OK);
	for (int at = 0; at < 16; at += 2)
		if (p[at] && ss_lookup(core, p[at], &info))
			got -= info.room;
	assert_int_equal(got, 0);
	end();
}

static void test_fronts(void **state)
{
	fronts((char *[]){"SOMASHIM_CHECK=bounds", "SOMASHIM_CHECK_FRONT=300", NULL});
	fronts((char *[]){"SOMASHIM_CHECK=all", "SOMASHIM_CHECK_FRONT=300", "SOMASHIM_BACKING=vmm",
			  NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_stream_order), cmocka_unit_test(test_classic),
		cmocka_unit_test(test_failures), cmocka_unit_test(test_fronts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
