/* SPDX-License-Identifier: MIT */
/* Slots of timelines: one that is free may be anybody's, and they may run out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/grow.h"
#include "driver/fake/fake.h"

#define OLD ((void *)0x1000)
#define FRESH ((void *)0x2000)

static struct ss_core *core;
static void (*release)(void *, struct ss_fence *);
static bool armed;

/* Another thread, as it were, while the reset is at work. */
static void released(void *ctx, struct ss_fence *fence)
{
	release(ctx, fence);
	if (armed)
		ss_timeline_add(core, 0, FRESH, SS_TL_NONBLOCKING, true);
	armed = false;
}

static struct ss_fake *create(int devices)
{
	struct ss_fake_config config = {.devices = devices};
	struct ss_fake *fake = ss_fake_create(&config);
	struct ss_driver driver = ss_fake_driver(fake);
	struct ss_options options;

	release = driver.fence_release;
	driver.fence_release = released;
	ss_options_default(&options);
	core = ss_core_create(&driver, &options);
	assert_non_null(core);
	return fake;
}

static void destroy(struct ss_fake *fake)
{
	ss_core_destroy(core);
	ss_fake_destroy(fake);
}

/* A stream of device 0 begins in the slot of a stream of device 1, which is reset. */
static void test_reset(void **state)
{
	struct ss_fake *fake = create(2);
	struct ss_timeline *old;
	void *p;

	assert_non_null(ss_pool_default(core, 0));
	assert_non_null(ss_pool_default(core, 1));
	old = ss_timeline_add(core, 1, OLD, SS_TL_NONBLOCKING, true);
	assert_int_equal(ss_alloc_current(core, old, 4096, &p), SS_OK);
	assert_int_equal(ss_free_async(core, p, old), SS_OK);
	assert_true(ss_fence_request(core, old, UINT64_MAX, SS_FENCE_LATE));
	ss_fake_enqueue(fake, 1, OLD);
	ss_timeline_retire(core, old);
	ss_complete(core, old, old->last, NULL, true);
	assert_true(ss_release(ss_pool_default(core, 1), 0, UINT64_MAX) > 0);
	armed = true;
	ss_device_reset(core, 1, true);
	assert_false(armed);
	assert_non_null(ss_timeline_find(core, FRESH));
	assert_int_equal(ss_timeline_device(ss_timeline_find(core, FRESH)), 0);
	destroy(fake);
}

/* The null stream has no slot: what hipFree leaves without a wait is not reused. */
static void test_none_left(void **state)
{
	struct ss_fake *fake = create(1);
	uint64_t *p, *q;

	for (uintptr_t i = 1; i <= 65536; i++)
		ss_timeline_add(core, 0, (void *)(i * 64), SS_TL_NONBLOCKING, true);
	assert_null(ss_timeline_null(core, 0));
	assert_int_equal(ss_alloc_classic(core, 0, 4096, (void **)&p), SS_OK);
	assert_int_equal(ss_free_classic(core, p, NULL), SS_OK);
	assert_int_equal(ss_alloc_classic(core, 0, 4096, (void **)&q), SS_OK);
	assert_ptr_not_equal(p, q);
	destroy(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_none_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
