/* SPDX-License-Identifier: MIT */
/*
 * Tests descriptors (core/range/address_map.c): two owners never share a cache line of descriptors,
 * wherever the descriptors were before, and none is lost or given out twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/lock.h"
#include "core/range/address_map.h"

#define OWNERS 4
#define MOST 3000 /* live at once; less than a slab */
#define STEPS 400000

static struct ss_core core;
static struct ss_spares spares[OWNERS];
static struct {
	struct ss_block *b;
	int owner;
} live[MOST];
static int owner_of[2 * SS_SLAB]; /* by index: 0 nobody, else owner + 1 */

static unsigned roll(unsigned n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static struct ss_block *at(uint32_t index)
{
	return ss_block_by_index(core.map, index);
}

static bool one_line(const struct ss_block *a, const struct ss_block *b)
{
	uintptr_t a_last = (uintptr_t)(a + 1) - 1, b_first = (uintptr_t)b;

	return a_last / SS_LINES == b_first / SS_LINES;
}

static void test_lines(void **state)
{
	unsigned count = 0;
	uint32_t made;

	for (int i = 0; i < STEPS; i++) {
		/* The number goes up and down slowly. */
		bool more = count == 0 || (count < MOST && roll(100) < (i / 20000 % 2 ? 35 : 65));
		int who = (int)roll(OWNERS);
		unsigned k = more ? count : roll(count);

		if (more) {
			struct ss_block *b = ss_block_new(&core, &spares[who]);

			assert_non_null(b);
			assert_int_equal(owner_of[b->index], 0);
			owner_of[b->index] = who + 1;
			live[count].b = b;
			live[count++].owner = who;
			for (uint32_t near = b->index ? b->index - 1 : 0; near <= b->index + 1;
			     near++) {
				struct ss_block *x = near < core.map->slab_count * SS_SLAB ?
							     at(near) :
							     b;

				if ((one_line(x, b) || one_line(b, x)) && owner_of[near])
					assert_int_equal(owner_of[near], who + 1);
			}
			continue;
		}
		/* A merge leaves one descriptor over, mostly one of the owner's own. */
		owner_of[live[k].b->index] = 0;
		ss_block_recycle(&core, &spares[roll(3) ? live[k].owner : who], live[k].b);
		live[k] = live[--count];
	}
	/* All are returned, so the next owner finds every one of them. */
	memset(owner_of, 0, sizeof(owner_of));
	while (count--)
		ss_block_recycle(&core, &spares[roll(OWNERS)], live[count].b);
	for (int i = 0; i < OWNERS; i++)
		ss_spares_return(&core, &spares[i], 0);
	for (int i = 0; i < OWNERS; i++)
		assert_null(spares[i].head);
	made = core.map->made;
	assert_in_range(made, MOST / 2, 2 * SS_SLAB);
	assert_in_range(core.map->slab_count, 1, 2);
	for (uint32_t i = 0; i < made; i++) {
		struct ss_block *b = ss_block_new(&core, &spares[0]);

		assert_non_null(b);
		assert_int_equal(owner_of[b->index], 0);
		owner_of[b->index] = 1;
	}
	assert_in_range(core.map->made, made, made + SS_BATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
	int failed;

	if (!ss_map_init(&core))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ss_map_finish(&core);
	return failed;
}
