/* SPDX-License-Identifier: MIT */
/*
 * Tests the address map (core/range/address_map.c): the block that contains an address is found whatever
 * was split and merged before, though the bitmaps remember starts that are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/lock.h"
#include "core/range/address_map.h"

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

	for (int i = 0; i < 4; i++)
		assert_ptr_equal(ss_block_last_start(&core, seg, b->addr + off[i]), b);
}

/* A block is split in two, or swallows its right neighbour. Sizes are of all orders. */
static void step(struct ss_segment *seg, bool split)
{
	unsigned i = (unsigned)roll(count);
	struct ss_block *b = block[i], *next = ss_block_next(&core, b);

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

/* A block whose left neighbour another thread may hold keeps its descriptor: that thread writes the link to the left in
 * it, and a descriptor that has become another block would be harmed. */
static void test_rehome(void **state)
{
	struct ss_segment *seg = ss_segment_new(&core, NULL, BASE + 2 * SIZE, SS_FRAME);
	struct ss_spares own = {0}, other = {0};
	struct ss_block *left, *b, *fresh;

	assert_non_null(seg);
	left = ss_segment_first(&core, seg);
	b = ss_block_split(&core, &other, left, 4 * SS_GRAIN);
	assert_non_null(b);
	ss_set_slot(left, 7);
	ss_set_home(left, 8);
	for (int state_of = SS_BLOCK_LIVE; state_of <= SS_BLOCK_FREE; state_of++) {
		ss_set_state(left, (enum ss_block_state)state_of);
		assert_ptr_equal(ss_block_rehome(&core, &own, &other, b, 3), b);
	}
	/* A free one of the arena of slot 7 is in the hands of whoever cuts there, a completed one of whoever has the lock. */
	fresh = ss_block_rehome(&core, &own, &other, b, 7);
	assert_ptr_not_equal(fresh, b);
	assert_ptr_equal(ss_block_prev(fresh), left);
	assert_ptr_equal(ss_block_next(&core, left), fresh);
	ss_set_slot(left, SS_SLOT_COMPLETED);
	b = ss_block_rehome(&core, &other, &own, fresh, 3);
	assert_ptr_not_equal(fresh, b);
	assert_ptr_equal(ss_block_next(&core, left), b);
	ss_segment_forget(&core, seg);
	ss_spares_return(&core, &own, 0);
	ss_spares_return(&core, &other, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_start), cmocka_unit_test(test_rehome) };

	return cmocka_run_group_tests(tests, begin, end);
}
