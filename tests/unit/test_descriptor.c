/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of blocks (core/descriptor.c): whoever gets one shares its cache lines with
 * nobody else, wherever descriptors went before, and none is lost or given twice. And a
 * free is about an address, whatever became of the descriptor that was found there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/hit.h"
#include "driver/fake/fake.h"

#define OWNERS 4
#define MOST 3000 /* live at once; less than a chunk */
#define STEPS 400000

static struct ss_core *core;
static struct ss_spares spares[OWNERS];
static struct { struct ss_block *b; int owner; } live[MOST];
static int owner_of[2 * SS_CHUNK]; /* by index: 0 nobody, else owner + 1 */

static unsigned roll(unsigned n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static struct ss_block *at(uint32_t index)
{
	return &core->chunks[index / SS_CHUNK][index % SS_CHUNK];
}

static bool one_line(const struct ss_block *a, const struct ss_block *b)
{
	uintptr_t a_last = (uintptr_t)(a + 1) - 1, b_first = (uintptr_t)b;

	return a_last / SS_LINES == b_first / SS_LINES;
}

static void test_lines(void **state)
{
	unsigned count = 0;

	for (int i = 0; i < STEPS; i++) {
		/* Seldom whole batches: the number goes up and down slowly. */
		bool more = count == 0 || (count < MOST && roll(100) < (i / 20000 % 2 ? 35 : 65));
		int who = (int)roll(OWNERS);
		unsigned k = more ? count : roll(count);

		if (more) {
			struct ss_block *b = ss_block_new(core, &spares[who]);

			assert_non_null(b);
			assert_int_equal(owner_of[b->index], 0);
			owner_of[b->index] = who + 1;
			live[count].b = b;
			live[count++].owner = who;
			for (uint32_t near = b->index ? b->index - 1 : 0; near <= b->index + 1; near++) {
				struct ss_block *x = near < core->chunk_count * SS_CHUNK ? at(near) : b;

				if ((one_line(x, b) || one_line(b, x)) && owner_of[near])
					assert_int_equal(owner_of[near], who + 1);
			}
			continue;
		}
		/* Whoever merges two blocks has one to spare, mostly its own. */
		owner_of[live[k].b->index] = 0;
		ss_block_recycle(core, &spares[roll(3) ? live[k].owner : who], live[k].b);
		live[k] = live[--count];
	}
	/* All come home: the next owner finds every batch whole. */
	while (count--)
		ss_block_recycle(core, &spares[roll(OWNERS)], live[count].b);
	for (int i = 0; i < OWNERS; i++)
		ss_spares_return(core, &spares[i], 0);
	for (int i = 0; i < OWNERS; i++)
		assert_null(spares[i].mine);
	assert_in_range(core->chunk_count, 1, 2);
}

/* A free that found the block's descriptor just before another free recycled it, and that
 * looks at it again when it is another's, who is live by the same stream. */
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
	assert_int_equal(ss_free_async(core, p + 300, tl), SS_OK); /* as HIP has it */
	assert_int_equal(ss_free_async(core, p, tl), SS_ERR_INVALID);
}

int main(void)
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){ .idle = true });
	struct ss_driver driver = ss_fake_driver(fake);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_recycled),
	};
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
