/* SPDX-License-Identifier: MIT */
/*
 * What the tests of core/order share: a core of two devices that do only what they are told,
 * streams, and what is asked most. A free is only a position here: ss_timeline_now() of its stream
 * at that time.
 */
#ifndef SS_TEST_ORDER_FIXTURE_H
#define SS_TEST_ORDER_FIXTURE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/order/watched.h"
#include "driver/fake/fake.h"

#define A ((void *)0x1000)
#define B ((void *)0x2000)
#define C ((void *)0x3000)
#define EVENT ((void *)0x10000)
#define OTHER ((void *)0x20000)

static struct ss_core core;
static struct ss_fake *fake;

/* The last report of a synchronization. */
static struct {
	unsigned count;
	int dev;
	bool idle;
} reported;

static inline void synchronized(struct ss_core *c, int dev, bool idle)
{
	reported.count++;
	reported.dev = dev;
	reported.idle = idle;
}

static inline int setup(void **state)
{
	struct ss_fake_config config = {.devices = 2};
	static uint64_t serials;

	fake = ss_fake_create(&config);
	memset(&core, 0, sizeof(core));
	memset(&reported, 0, sizeof(reported));
	core.drv = ss_fake_driver(fake);
	ss_options_default(&core.opt);
	core.devices = 2;
	core.serial = ++serials;
	if (!ss_order_init(&core, synchronized))
		return -1;
	for (int dev = 0; dev < core.devices; dev++)
		ss_order_report(&core, dev, 1, true);
	return 0;
}

static inline int teardown(void **state)
{
	ss_order_finish(&core);
	ss_fake_destroy(fake); /* aborts if a fence leaked */
	assert_int_equal(core.host_bytes, 0);
	return 0;
}

static inline struct ss_timeline *stream(void *native)
{
	struct ss_timeline *tl = ss_timeline_add(&core, 0, native, SS_TL_NONBLOCKING, true);

	assert_non_null(tl);
	return tl;
}

static inline struct ss_timeline *blocking(void *native)
{
	struct ss_timeline *tl = ss_timeline_add(&core, 0, native, SS_TL_BLOCKING, true);

	assert_non_null(tl);
	return tl;
}

static inline void record(void *event, struct ss_timeline *tl, bool ok)
{
	struct ss_token t = ss_record_begin(&core, event, tl);

	ss_record_end(&core, &t, ok);
}

static inline void wait_for(void *event, struct ss_timeline *tl, bool ok)
{
	struct ss_token t = ss_wait_begin(&core, event, tl);

	ss_wait_end(&core, &t, ok);
}

static inline void sync_with(struct ss_timeline *tl, bool ok, bool threshold)
{
	struct ss_token t = ss_stream_sync_begin(&core, tl);

	ss_sync_end(&core, &t, ok, threshold);
}

static inline void sync_device(int dev)
{
	struct ss_token t = ss_device_sync_begin(&core, dev);

	ss_sync_end(&core, &t, true, false);
}

/* Is everything that x does from now on ordered after position n of tl? */
static inline bool ordered(struct ss_timeline *x, struct ss_timeline *tl, uint64_t n)
{
	struct ss_clock *clock = ss_clock_of(x);
	bool yes = n <= ss_clock_get(clock, ss_timeline_slot(tl));

	ss_clock_free(clock);
	return yes;
}

static inline bool completed(struct ss_timeline *tl, uint64_t n)
{
	return ss_mark_reached(&core, ss_timeline_slot(tl), n, true);
}

static inline bool synced(struct ss_timeline *tl, uint64_t n)
{
	return ss_mark_reached(&core, ss_timeline_slot(tl), n, false);
}

static inline uint64_t recorded(void)
{
	return ss_fake_counts(fake).fence_record;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
