/* SPDX-License-Identifier: MIT */
/*
 * Tests frees (core/pool/free.c): a free concerns an address, even if the descriptor that was found there
 * has been recycled meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "driver/fake/fake.h"

static struct ss_core *core;

/* A free finds the block's descriptor just before another free recycles it. When it looks again, the
 * descriptor is of another live block of the same stream. */
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

int main(void)
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){ .idle = true });
	struct ss_driver driver = ss_fake_driver(fake);
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_recycled) };
	struct ss_options options;
	int failed;

	ss_options_read(&options, (char *[]){ NULL }, NULL);
	core = ss_core_create(&driver, &options);
	if (!core)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ss_core_destroy(core);
	ss_fake_destroy(fake);
	return failed;
}
