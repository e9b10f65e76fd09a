/* SPDX-License-Identifier: MIT */
/*
 * Tests the address map (core/range/address_map.c): the block that contains an address is found
 * whatever was split and merged before, though the bitmaps remember starts that are gone.
 * Neighbours know each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/lock.h"
#include "core/range/divide.h"

#define BASE (1ull << 40)
#define SIZE (1ull << 34)
#define MOST 2000
#define STEPS 200000

static struct ss_core core;
static struct ss_spares spares;
static struct ss_block *block[MOST];
static unsigned count;
static uint64_t seed = 1;

static uint64_t roll(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 20) % n;
}

static void look(struct ss_segment *seg, const struct ss_block *b)
{
	const uint64_t off[] = {0, 1, b->size - 1, roll(b->size)};
	const struct ss_block *next = ss_block_next(b), *prev = ss_block_prev(b);

	for (int i = 0; i < 4; i++)
		assert_ptr_equal(ss_block_last_start(&core, seg, b->addr + off[i]), b);
	assert_ptr_equal(next, ss_block_at(&core, seg, b->addr + b->size));
	assert_true(!next || ss_block_prev(next) == b);
	assert_true(prev ? ss_block_next(prev) == b && prev->addr + prev->size == b->addr :
			   b->addr == BASE);
}

/* A block is split in two, or swallows its right neighbour. Sizes are of all orders. */
static void step(struct ss_segment *seg, bool split)
{
	unsigned i = (unsigned)roll(count);
	struct ss_block *b = block[i], *next = ss_block_next(b);

	if (split && b->size > SS_GRAIN) {
		uint64_t most = b->size / SS_GRAIN - 1, part = 1 + roll(most) % (1ull << roll(25));

		block[count] = ss_block_split(&core, &spares, b, part * SS_GRAIN);
		assert_non_null(block[count]);
		look(seg, block[count++]);
	} else if (next) {
		for (i = 0; block[i] != next; i++)
			;
		block[i] = block[--count];
		ss_block_merge(&core, &spares, b, next);
	}
	look(seg, b);
}

static void test_last_start(void **state)
{
	struct ss_segment *seg = ss_segment_new(&core, (struct ss_pool *)&core, BASE, SIZE);

	assert_non_null(seg);
	block[count++] = ss_segment_first(&core, seg);
	for (int i = 0; i < STEPS; i++) /* many and few in turn */
		step(seg, count < MOST && (count < 3 || roll(100) < (i / 10000 % 2 ? 10 : 90)));
	while (count > 1)
		step(seg, false);
	look(seg, block[0]);
	assert_int_equal(block[0]->size, SIZE);
	ss_segment_forget(&core, seg);
}

static int begin(void **state)
{
	return ss_map_init(&core) ? 0 : -1;
}

static int end(void **state)
{
	ss_map_finish(&core);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_last_start)};

	return cmocka_run_group_tests(tests, begin, end);
}
