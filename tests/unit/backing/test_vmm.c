/* SPDX-License-Identifier: MIT */
/* Tests virtual memory: gaps, chunks that move, and calls that the driver refuses. */
#include "tests/unit/backing/fixture.h"

#define VRAM (4096 * MIB)
#define BLOCKS 8

/* Eight blocks of 8 MiB side by side. */
static void eight_blocks(struct ss_block **b)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		b[i] = need(8 * MIB, false);
		assert_true(!i || b[i]->addr == b[i - 1]->addr + 8 * MIB);
	}
	assert_reserved(64 * MIB);
}

/* Chunks of fragmented completed ranges make room for a large block, and no new memory is
 * needed. */
static void test_chunks_move(void **state)
{
	struct ss_block *b[BLOCKS];
	uint64_t created;

	open_memory(SS_BACKING_VMM, VRAM);
	eight_blocks(b);
	for (unsigned i = 0; i < BLOCKS; i += 2)
		give(b[i]);
	created = ss_fake_counts(fake).chunk_create;
	need(32 * MIB, true);
	assert_reserved(64 * MIB);
	assert_int_equal(mem->reserved_high, 64 * MIB);
	assert_int_equal(ss_fake_counts(fake).chunk_create, created);
	assert_int_equal(mem->moved, 32 / 2);
	for (unsigned i = 1; i < BLOCKS; i += 2)
		assert_true(ss_fake_usable(fake, 0, (void *)(uintptr_t)b[i]->addr, b[i]->size));
	close_memory();
}

/* Only the missing bytes are new memory; without `move` all of them are. */
static void test_some_move(void **state)
{
	for (int move = 0; move < 2; move++) {
		struct ss_block *b[BLOCKS];

		open_memory(SS_BACKING_VMM, VRAM);
		eight_blocks(b);
		give(b[0]);
		give(b[2]);
		need(32 * MIB, move);
		assert_reserved(move ? 80 * MIB : 96 * MIB);
		close_memory();
	}
}

/* Growth fills the gap where the fewest bytes are missing. */
static void test_cheapest_gap(void **state)
{
	struct ss_block *b[BLOCKS];
	uint64_t from;

	open_memory(SS_BACKING_VMM, VRAM);
	eight_blocks(b);
	from = b[2]->addr;
	give(b[2]);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 8 * MIB);
	assert_reserved(56 * MIB);
	/* With the free range in front of the gap, and the one behind it, it serves 24 MiB. */
	give(b[1]);
	give(b[3]);
	assert_int_equal(need(24 * MIB, false)->addr, from - 8 * MIB);
	assert_reserved(64 * MIB);
	close_memory();
}

/* Free ranges of the asking stream are part of the run. Those of other streams are not. */
static void test_own_ranges(void **state)
{
	static const struct {
		uint32_t slot;
		uint64_t reserved;
	} kinds[] = {
		{5, 12 * MIB},
		{6, 20 * MIB},
	};
	struct ss_growth g = {.size = 12 * MIB, .align = SS_GRAIN, .slot = 5};
	struct ss_block *b;

	for (unsigned i = 0; i < 2; i++) {
		open_memory(SS_BACKING_VMM, VRAM);
		b = need(8 * MIB, false);
		ss_set_home(b, kinds[i].slot + 1);
		b->n = 1;
		ss_set_free(b, kinds[i].slot);
		assert_int_equal(ss_memory_grow(mem, &g), SS_OK);
		assert_reserved(kinds[i].reserved);
		close_memory();
	}
}

/* Nothing is taken from the device if chunks that move are enough. */
static void test_moves_first(void **state)
{
	struct ss_growth g = {
		.size = 16 * MIB, .align = SS_GRAIN, .slot = SS_SLOT_COMPLETED, .move = true};
	struct ss_block *b[BLOCKS];

	open_memory(SS_BACKING_VMM, VRAM);
	eight_blocks(b);
	give(b[1]);
	give(b[3]);
	assert_int_equal(ss_memory_grow(mem, &g), SS_OK);
	assert_non_null(take(16 * MIB, SS_GRAIN));
	assert_reserved(64 * MIB);
	close_memory();
}

static void test_map_fails(void **state)
{
	static const char *const calls[] = {"chunk_create", "map", "set_access"};

	for (unsigned i = 0; i < 3; i++) {
		struct ss_block *b;
		uint64_t next;

		open_memory(SS_BACKING_VMM, VRAM);
		b = need(8 * MIB, false);
		next = b->addr + b->size;
		ss_fake_fail(fake, calls[i], i == 2 ? 1 : 3, SS_ERR_NOMEM);
		assert_int_equal(grow(16 * MIB, false), SS_ERR_NOMEM);
		assert_reserved(8 * MIB);
		assert_int_equal(mem->completed.bytes, 0);
		ss_fake_fail_clear(fake);
		assert_int_equal(need(16 * MIB, false)->addr, next);

		/* The driver refuses at every address. */
		ss_fake_fail(fake, calls[i], 0, SS_ERR_INVALID);
		assert_int_equal(grow(16 * MIB, true), SS_ERR_FAILED);
		assert_reserved(24 * MIB);
		assert_int_equal(mem->backing, SS_BACKING_VMM);
		ss_fake_fail_clear(fake);
		assert_int_equal(need(16 * MIB, false)->addr, next + 16 * MIB);
		assert_reserved(40 * MIB);
		close_memory();
	}
}

/* What the driver refuses at one address is tried at another, and at the first one again later. */
static void test_stuck_gap(void **state)
{
	struct ss_block *b;
	uint64_t next;

	open_memory(SS_BACKING_VMM, VRAM);
	b = need(8 * MIB, false);
	next = b->addr + b->size;
	ss_fake_fail(fake, "set_access", 1, SS_ERR_FAILED);
	b = need(8 * MIB, false);
	assert_true(b->addr >= next + 8 * MIB);
	assert_reserved(16 * MIB);
	assert_int_equal(need(8 * MIB, false)->addr, next);
	assert_reserved(24 * MIB);
	close_memory();
}

/* Chunks that are not unmapped or released stay reserved until they go. */
static void test_unmap_refused(void **state)
{
	open_memory(SS_BACKING_VMM, VRAM);
	need(8 * MIB, false);
	give(need(8 * MIB, false));
	ss_fake_fail(fake, "chunk_release", 0, SS_ERR_FAILED);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 0);
	assert_reserved(16 * MIB);
	ss_fake_fail_clear(fake);
	assert_int_equal(ss_memory_retry(mem), 2 * MIB);
	ss_fake_fail(fake, "unmap", 1, SS_ERR_FAILED);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 0);
	assert_reserved(14 * MIB);
	assert_int_equal(mem->completed.bytes, 6 * MIB);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 6 * MIB);
	close_memory();
}

/* Without addresses, or if the driver refuses the first chunk, the pool uses whole segments. */
static void test_falls_back(void **state)
{
	static const char *const calls[] = {"vmm_reserve", "map", "chunk_create"};

	for (unsigned i = 0; i < 3; i++) {
		open_memory(SS_BACKING_VMM, VRAM);
		ss_fake_fail(fake, calls[i], 0, i ? SS_ERR_FAILED : SS_ERR_NOMEM);
		need(8 * MIB, false);
		assert_int_equal(mem->backing, SS_BACKING_HIP);
		assert_int_equal(ss_fake_counts(fake).segment_alloc, 1);
		assert_reserved(8 * MIB);
		close_memory();
	}
}

/* If access works only from the start of the reservation, the pool leaves no gaps. */
static void test_prefix(void **state)
{
	struct ss_block *b[BLOCKS];
	uint64_t from;

	open_memory(SS_BACKING_VMM, VRAM);
	core->info[0].access_prefix = true;
	eight_blocks(b);
	from = b[2]->addr;
	give(b[2]);
	give(b[5]);
	ss_memory_release(mem, 0, UINT64_MAX);
	assert_reserved(48 * MIB);
	assert_int_equal(grow(4 * MIB, true), SS_OK);
	assert_int_equal(take(4 * MIB, SS_GRAIN)->addr, from);
	assert_int_equal(mem->moved, 0);
	/* Access for another device covers all memory. */
	assert_int_equal(ss_memory_set_access(mem, 2, 0), SS_OK);
	assert_reserved(64 * MIB);
	assert_int_equal(mem->peers, 3);
	close_memory();
}

/* A device that keeps what is unmapped until the reservation goes. */
static enum ss_status stays_full(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	if (free_bytes)
		*free_bytes = mem->vmm ? 100 * MIB : 1000 * MIB;
	if (total_bytes)
		*total_bytes = VRAM;
	return SS_OK;
}

static void test_retention(void **state)
{
	struct ss_block *b;

	open_memory(SS_BACKING_VMM, VRAM);
	core->drv.mem_info = stays_full;
	b = need(8 * MIB, false);
	for (int i = 0; i < 2; i++) {
		give(need(8 * MIB, false));
		assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 8 * MIB);
	}
	give(need(8 * MIB, false));
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 0);
	assert_reserved(16 * MIB);
	give(b);
	assert_int_equal(ss_memory_release(mem, 0, UINT64_MAX), 16 * MIB);
	assert_null(mem->vmm);
	assert_int_equal(ss_fake_counts(fake).unreserve, 1);
	close_memory();
}

static void test_unmap_all(void **state)
{
	open_memory(SS_BACKING_VMM, VRAM);
	need(8 * MIB, false);
	ss_memory_unmap_all(mem);
	assert_int_equal(ss_fake_reserved(fake, 0), 0);
	assert_false(ss_memory_claim(mem, true, NULL));
	assert_int_equal(grow(8 * MIB, true), SS_ERR_NOMEM);
	/* The driver has everything back but the addresses. */
	core->drv.vmm_unreserve(core->drv.ctx, 0, mem->segments->native,
				mem->segments->native_size);
	ss_memory_drop(mem, SS_DROP_FORGET);
	close_memory();
}

/* With random sizes and failures the figures agree, and no two blocks overlap. */
static void check(struct ss_block **b, unsigned count)
{
	uint64_t live = 0;

	for (unsigned i = 0; i < count; i++) {
		live += b[i] ? b[i]->size : 0;
		if (b[i])
			assert_true(
				ss_fake_usable(fake, 0, (void *)(uintptr_t)b[i]->addr, b[i]->size));
		for (unsigned k = 0; b[i] && k < i; k++)
			assert_true(!b[k] || b[i]->addr + b[i]->size <= b[k]->addr ||
				    b[k]->addr + b[k]->size <= b[i]->addr);
	}
	assert_int_equal(live + mem->completed.bytes, mem->reserved);
	assert_int_equal(ss_fake_reserved(fake, 0), mem->reserved);
	assert_int_equal(ss_device_memory(core, 0)->taken, mem->reserved);
}

static void test_random(void **state)
{
	static const char *const calls[] = {"map", "set_access", "chunk_create"};
	struct ss_block *b[32];

	open_memory(SS_BACKING_VMM, 512 * MIB);
	srand(1);
	memset(b, 0, sizeof(b));
	b[0] = need(2 * MIB, false); /* stays live, so that the backing does not change */
	for (unsigned i = 0; i < 3000; i++) {
		struct ss_block **at = &b[1 + rand() % 31];
		uint64_t most = i % 5 ? 4 * MIB : 64 * MIB;
		uint64_t size = ss_round((uint64_t)rand() % most + 1, SS_GRAIN);
		enum ss_status s;

		if (*at) {
			give(*at);
			*at = NULL;
		} else if (!(*at = take(size, SS_GRAIN))) {
			if (i % 3 == 0)
				ss_fake_fail(fake, calls[i % 9 / 3], 1 + i % 4,
					     i % 2 ? SS_ERR_FAILED : SS_ERR_NOMEM);
			s = grow(size, i % 4);
			ss_fake_fail_clear(fake);
			*at = take(size, SS_GRAIN);
			assert_true(*at || s != SS_OK);
		}
		if (i % 50 == 0)
			ss_memory_release(mem, mem->reserved / 2, UINT64_MAX);
		check(b, 32);
	}
	assert_true(mem->moved > 0);
	close_memory();
}

/* Several threads miss at once, while another gives memory back. */
static _Atomic unsigned failures;

static void *allocate(void *arg)
{
	struct ss_block *b[4] = {0};
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 400; i++) {
		struct ss_block **at = &b[rand_r(&seed) % 4];
		uint64_t size = ss_round((uint64_t)rand_r(&seed) % (8 * MIB) + 1, SS_GRAIN);

		if (*at) {
			give(*at);
			*at = NULL;
			continue;
		}
		while (!(*at = take(size, SS_GRAIN)) && grow(size, i % 2) == SS_OK)
			;
		failures += !*at || !ss_fake_usable(fake, 0, (void *)(uintptr_t)(*at)->addr, size);
		if (seed % 8 == 0)
			ss_memory_release(mem, 0, UINT64_MAX);
		if (seed % 64 == 0)
			failures += ss_memory_set_access(mem, seed & 2, ~seed & 2) != SS_OK;
	}
	for (unsigned i = 0; i < 4; i++)
		if (b[i])
			give(b[i]);
	return NULL;
}

static void test_threads(void **state)
{
	static const enum ss_backing backings[] = {SS_BACKING_HIP, SS_BACKING_VMM};
	pthread_t t[3];

	for (unsigned k = 0; k < 2; k++) {
		open_memory(backings[k], VRAM);
		mem->gather = NULL;
		for (uintptr_t i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&t[i], NULL, allocate, (void *)(i + 1)), 0);
		for (unsigned i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
		assert_int_equal(failures, 0);
		assert_int_equal(mem->completed.bytes, mem->reserved);
		ss_memory_release(mem, 0, UINT64_MAX);
		assert_reserved(0);
		close_memory();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks_move),  cmocka_unit_test(test_some_move),
		cmocka_unit_test(test_cheapest_gap), cmocka_unit_test(test_own_ranges),
		cmocka_unit_test(test_moves_first),  cmocka_unit_test(test_map_fails),
		cmocka_unit_test(test_stuck_gap),    cmocka_unit_test(test_unmap_refused),
		cmocka_unit_test(test_falls_back),   cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_retention),    cmocka_unit_test(test_unmap_all),
		cmocka_unit_test(test_random),       cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
