/* SPDX-License-Identifier: MIT */
/* Tests the pure functions of placement (docs/placement.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/pool/placement.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* A pool of 1 GiB on a device of 64 GiB, in use but for one segment, that once had 1.2 GiB. */
static struct ss_view typical(void)
{
	return (struct ss_view){.used = 800 * MIB,
				.used_high = 1000 * MIB,
				.reserved = GIB,
				.reserved_high = 1200 * MIB,
				.idle = 100 * MIB,
				.device = 64 * GIB,
				.device_reserved = GIB};
}

static void small_blocks_share_a_segment_and_large_ones_get_what_they_need(void **state)
{
	(void)state;
	assert_int_equal(ss_place_segment(512), 4 * MIB);
	assert_int_equal(ss_place_segment(MIB), 4 * MIB);
	assert_int_equal(ss_place_segment(100 * MIB), 100 * MIB);
	assert_int_equal(ss_place_segment(100 * MIB + 1), 102 * MIB);
}

static void an_idle_segment_is_cut_where_that_does_no_harm(void **state)
{
	struct ss_view v = typical();

	(void)state;
	/* It would lock in 100 MiB beside a live block, with the peak near. */
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	/* It fits as well as a new segment. */
	assert_true(ss_place_cut(&v, 10 * MIB, 10 * MIB));
	/* The pool never had much more than was in use, so nothing would be gained. */
	v.reserved_high = v.used_high + v.used_high / 16;
	assert_true(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	v.reserved_high++;
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	/* So many segments were exchanged already that cutting is cheaper. More requests pay for
	 * more. */
	v = typical();
	v.exchanges = 256;
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	v.exchanges++;
	assert_true(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	v.requests = 32;
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	/* Segments in use stay far below the peak. */
	v = typical();
	v.idle = 700 * MIB;
	v.used = 300 * MIB;
	assert_true(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	/* Up to four fifths of it: 800 MiB. */
	v.idle = v.reserved - 700 * MIB;
	assert_true(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	v.idle -= 1;
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
	/* A small pool is not worth driver calls. */
	v = (struct ss_view){.used_high = 32 * MIB,
			     .reserved = 40 * MIB,
			     .reserved_high = 40 * MIB,
			     .idle = 5 * MIB,
			     .device = 64 * GIB};
	assert_true(ss_place_cut(&v, 20 * MIB, MIB));
	v.used_high = 64 * MIB;
	v.reserved_high = v.reserved = 80 * MIB;
	assert_false(ss_place_cut(&v, 20 * MIB, MIB));
}

static void a_cut_must_not_cramp_the_device(void **state)
{
	struct ss_view v = typical();

	(void)state;
	assert_false(ss_place_fragments(&v, 100 * MIB, 10 * MIB));
	/* On a device that the program nearly fills, what is locked in is missing elsewhere. */
	v.device = GIB + 60 * MIB;
	assert_true(ss_place_fragments(&v, 100 * MIB, 10 * MIB));
	v.reserved_high = v.used_high;
	assert_false(ss_place_cut(&v, 100 * MIB, 10 * MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_blocks_share_a_segment_and_large_ones_get_what_they_need),
		cmocka_unit_test(an_idle_segment_is_cut_where_that_does_no_harm),
		cmocka_unit_test(a_cut_must_not_cramp_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
