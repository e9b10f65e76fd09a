/* SPDX-License-Identifier: MIT */
/*
 * Tests the index of free ranges (core/range/free_index.c). Every range is visited once, smaller
 * ones first. An empty list is not read, because the index of a stream has few ranges as a rule.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/range/free_index.h"

#define MOST 2000
#define STEPS 200

static struct ss_free_index heap;
static struct ss_block *lists[SS_CLASSES], *more_lists[SS_CLASSES];
static struct ss_block block[MOST];
static bool in[MOST];

struct visit {
	unsigned count;
	uint64_t size, bytes; /* size: the largest so far */
};

static void each(const struct ss_block *b, struct visit *v)
{
	assert_true(in[b - block]);
	/* Ranges of one list differ by a 32nd at most, and smaller lists come first. */
	assert_true(b->size + b->size / 32 >= v->size);
	if (b->size > v->size)
		v->size = b->size;
	v->bytes += b->size;
	v->count++;
}

static void check(unsigned count, uint64_t bytes)
{
	struct visit v = {0};

	SS_INDEX_EACH(b, &heap)
		each(b, &v);
	assert_int_equal(v.count, count);
	assert_int_equal(v.bytes, bytes);
}

static void test_each(void **state)
{
	uint64_t seed = 1, bytes = 0;
	unsigned count = 0;

	ss_index_init(&heap, lists);
	check(0, 0);
	for (int step = 0; step < STEPS; step++) {
		/* The index is full and empty in turn. */
		for (int n = 0; n < MOST / 10; n++) {
			int i;

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			i = (int)((seed >> 33) % MOST);
			if (in[i] != (step / 20 % 2 == 1))
				continue;
			in[i] = !in[i];
			if (in[i]) {
				block[i].addr = (uint64_t)i << 44;
				block[i].size = (1 + (seed >> 40) % 64) << (9 + (seed >> 20) % 28);
				ss_index_insert(&heap, &block[i]);
			} else {
				ss_index_remove(&heap, &block[i]);
			}
			count = in[i] ? count + 1 : count - 1;
			bytes = in[i] ? bytes + block[i].size : bytes - block[i].size;
		}
		check(count, bytes);
	}
	for (int i = 0; i < MOST; i++)
		if (in[i])
			ss_index_remove(&heap, &block[i]);
	memset(in, 0, sizeof(in));
	check(0, 0);
}

static void test_few(void **state)
{
	block[0].addr = 1 << 20;
	block[0].size = 1 << 20;
	ss_index_insert(&heap, &block[0]);
	in[0] = true;
	for (int i = 0; i < SS_CLASSES; i++)
		if (heap.list[i] != &block[0])
			heap.list[i] = (struct ss_block *)1; /* reading it crashes */
	check(1, 1 << 20);
}

/* An empty index can be searched. */
static void test_none(void **state)
{
	struct ss_free_index h;

	memset(more_lists, 0, sizeof(more_lists));
	ss_index_init(&h, more_lists);
	for (uint64_t size = SS_GRAIN; size < 1ull << 46;
	     size += size / 2 / SS_GRAIN * SS_GRAIN + SS_GRAIN) {
		assert_null(ss_index_fit(&h, size, 1));
		assert_null(ss_index_best(&h, size, SS_GRAIN));
	}
	assert_null(ss_index_next(&h, NULL));
}

/* The one range that fits at an alignment is found behind many that are long enough but not
 * aligned. */
static void test_aligned(void **state)
{
	const uint64_t align = 2 << 20, size = align + SS_GRAIN;
	struct ss_free_index h;

	memset(more_lists, 0, sizeof(more_lists));
	ss_index_init(&h, more_lists);
	for (int i = 0; i < 100; i++) {
		block[i].addr = ((uint64_t)i << 30) + SS_GRAIN;
		block[i].size = size + (uint64_t)i * SS_GRAIN;
		ss_index_insert(&h, &block[i]);
	}
	assert_null(ss_index_best(&h, size, align));
	block[100].addr = (uint64_t)100 << 30;
	block[100].size = size + 200 * SS_GRAIN;
	ss_index_insert(&h, &block[100]);
	assert_ptr_equal(ss_index_best(&h, size, align), &block[100]);
}

/* A range that changes its size between a removal and an insertion is found as what it is now, and
 * the smallest list that has a fit is found. */
static void test_resized(void **state)
{
	struct ss_free_index h;
	uint64_t seed = 7;

	memset(more_lists, 0, sizeof(more_lists));
	ss_index_init(&h, more_lists);
	for (int i = 0; i < 100; i++) {
		block[i].addr = (uint64_t)i << 30;
		block[i].size = (uint64_t)(1 + i % 10) * SS_GRAIN;
		ss_index_insert(&h, &block[i]);
	}
	for (int step = 0; step < STEPS; step++) {
		struct ss_block *b = &block[(seed >> 33) % 100];

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		ss_index_remove(&h, b);
		b->size = (1 + (seed >> 40) % 1000) * SS_GRAIN;
		ss_index_insert(&h, b);
	}
	for (int i = 0; i < 100; i++) {
		uint64_t least = UINT64_MAX, bytes = 0;
		struct ss_block *b = ss_index_best(&h, SS_GRAIN, SS_GRAIN);
		struct visit v = {0};

		memset(in, 1, sizeof(in));
		SS_INDEX_EACH(range, &h)
			each(range, &v);
		bytes = v.bytes;
		assert_int_equal(v.count, 100 - i);
		assert_int_equal(bytes, h.bytes);
		assert_non_null(b);
		least = b->size;
		ss_index_remove(&h, b);
		b = ss_index_best(&h, SS_GRAIN, SS_GRAIN);
		assert_true(!b || b->size + b->size / 32 >= least);
	}
	memset(in, 0, sizeof(in));
	assert_int_equal(h.bytes, 0);
}

/* What an index finds for a size is long enough, is within a 32nd of the smallest, and is found
 * whenever there is one. */
static void test_fits(void **state)
{
	struct ss_free_index h;
	uint64_t seed = 11;

	for (int step = 0; step < 2000; step++) {
		unsigned count = 1 + step % 40;
		uint64_t size, least = UINT64_MAX;
		struct ss_block *b;

		memset(more_lists, 0, sizeof(more_lists));
		ss_index_init(&h, more_lists);
		for (unsigned i = 0; i < count; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			block[i].addr = (uint64_t)i << 40;
			block[i].size = (1 + (seed >> 40) % 300) * SS_GRAIN << (seed >> 36) % 16;
			ss_index_insert(&h, &block[i]);
		}
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		size = (1 + (seed >> 40) % 300) * SS_GRAIN << (seed >> 36) % 16;
		for (unsigned i = 0; i < count; i++)
			if (block[i].size >= size && block[i].size < least)
				least = block[i].size;
		b = ss_index_best(&h, size, SS_GRAIN);
		assert_true(b ? b->size >= size : least == UINT64_MAX);
		if (b && (step % 40 < SS_LOOKED_AT || b->size > size + size / 32))
			assert_true(b->size <= least + least / 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resized), cmocka_unit_test(test_fits),
		cmocka_unit_test(test_none),    cmocka_unit_test(test_each),
		cmocka_unit_test(test_few),     cmocka_unit_test(test_aligned)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
