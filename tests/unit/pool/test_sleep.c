/* SPDX-License-Identifier: MIT */
/*
 * Tests sleep: what is live is saved and comes back at the same addresses, all of it or nothing,
 * whatever the driver or the store refuses. The fake device ends the process at a map of what is
 * mapped and at access to what is not.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/pool/pool_state.h"
#include "core/sleep.h"
#include "core/statistics.h"
#include "driver/fake/fake.h"

#define MIB (1ull << 20)
#define BLOCKS 48
#define DEVICES 2
#define VRAM (1024 * MIB)

static struct ss_fake *fake;
static struct ss_core *core;
static struct ss_driver driver;
static struct ss_timeline *tl[DEVICES];
static struct ss_asleep *asleep;
static struct ss_slept slept;
static atomic_bool wake_wanted;

static void *const native[DEVICES] = {(void *)16, (void *)17};

/* ---- blocks, with contents at both ends ---------------------------------------------- */

struct block {
	void *p;
	uint64_t size, stamp[2]; /* 0: lost */
	uint64_t value;          /* 0: nothing was written */
	int dev;
} block[BLOCKS];
static uint64_t next_value = 1;

static char *end_of(const struct block *b, int end)
{
	return b->p ? (char *)b->p + (end ? b->size - 8 : 0) : NULL;
}

static void take(struct block *b, int dev, uint64_t size)
{
	*b = (struct block){.dev = dev, .size = size};
	assert_int_equal(ss_alloc_async(core, ss_pool_default(core, dev), tl[dev], size, &b->p),
			 SS_OK);
}

static void fill(struct block *b)
{
	ss_fake_access(fake, b->dev, b->p, b->size);
	b->value = b->stamp[0] = b->stamp[1] = next_value++;
}

static void verify(const struct block *b)
{
	if (!b->p)
		return;
	ss_fake_access(fake, b->dev, b->p, b->size);
	assert_true(!b->value || (b->stamp[0] == b->value && b->stamp[1] == b->value));
}

static void give(struct block *b)
{
	assert_int_equal(ss_free_async(core, b->p, tl[b->dev]), SS_OK);
	*b = (struct block){0};
}

static void idle(void)
{
	for (int dev = 0; dev < DEVICES; dev++) {
		struct ss_token t = ss_device_sync_begin(core, dev);

		ss_fake_drain(fake, dev, native[dev]);
		ss_sync_end(core, &t, true, true);
	}
}

/* ---- the store -------------------------------------------------------------------------- */

static struct store {
	uint64_t bytes, saved, restored;
	struct kept {
		uint64_t va, size, stamp[BLOCKS][2];
	} kept[BLOCKS];
	size_t ranges, next;
	unsigned opens, closes;
	int fails; /* 1: open, 2: save, 3: flush, 4: restore, 5: flush after restoring */
	bool restoring;
} st;

static bool is_in(const struct block *b, int end, uint64_t va, uint64_t size)
{
	if (!b->p)
		return false;

	uint64_t at = (uint64_t)(uintptr_t)end_of(b, end);

	return at >= va && at + 8 <= va + size;
}

static bool st_open(void *ctx, uint64_t bytes)
{
	assert_ptr_equal(ctx, &st);
	st.bytes = bytes;
	st.saved = st.ranges = st.next = 0;
	st.restoring = false;
	st.opens++;
	return st.fails != 1;
}

static bool st_save(void *ctx, int dev, uint64_t va, uint64_t size)
{
	struct kept *k = &st.kept[st.ranges++];

	assert_ptr_equal(ctx, &st);
	ss_fake_access(fake, dev, (void *)(uintptr_t)va, size);
	*k = (struct kept){.va = va, .size = size};
	for (int i = 0; i < BLOCKS; i++)
		for (int end = 0; end < 2; end++)
			if (is_in(&block[i], end, va, size))
				k->stamp[i][end] = block[i].stamp[end];
	st.saved += size;
	return st.fails != 2;
}

static bool st_restore(void *ctx, int dev, uint64_t va, uint64_t size)
{
	const struct kept *k = &st.kept[st.next++];

	assert_ptr_equal(ctx, &st);
	st.restoring = true;
	assert_true(st.next <= st.ranges && k->va == va && k->size == size);
	ss_fake_access(fake, dev, (void *)(uintptr_t)va, size);
	for (int i = 0; i < BLOCKS; i++)
		for (int end = 0; end < 2; end++)
			if (is_in(&block[i], end, va, size))
				block[i].stamp[end] = k->stamp[i][end];
	return st.fails != 4;
}

static bool st_flush(void *ctx)
{
	bool ok = st.fails != (st.restoring ? 5 : 3);

	assert_ptr_equal(ctx, &st);
	if (st.restoring)
		st.next = 0;
	else
		assert_int_equal(st.saved, st.bytes);
	return ok;
}

static void st_close(void *ctx)
{
	assert_ptr_equal(ctx, &st);
	st.closes++;
}

static const struct ss_sleep_store store = {
	&st, st_open, st_save, st_restore, st_flush, st_close,
};

/* ---- a process ----------------------------------------------------------------------------- */

static bool wake_please(void)
{
	atomic_store(&wake_wanted, true);
	return true;
}

static void begin(bool prefix, char **env)
{
	struct ss_options options;
	struct ss_watch watch = {.wake = wake_please};

	fake = ss_fake_create(&(struct ss_fake_config){
		.devices = DEVICES, .vram = VRAM, .vmm = true, .access_prefix = prefix});
	driver = ss_fake_driver(fake);
	ss_options_read(&options, env, NULL);
	core = ss_core_create(&driver, &options);
	assert_non_null(core);
	ss_core_watch(core, &watch);
	for (int dev = 0; dev < DEVICES; dev++) {
		tl[dev] = ss_timeline_add(core, dev, native[dev], SS_TL_NONBLOCKING, true);
		assert_non_null(tl[dev]);
	}
	memset(block, 0, sizeof(block));
	memset(&st, 0, sizeof(st));
}

static void end(void)
{
	assert_int_equal(st.opens, st.closes);
	assert_null(ss_check(core));
	ss_fake_fail_clear(fake);
	ss_core_destroy(core);
	ss_fake_destroy(fake);
}

static char *vmm_env[] = {"SOMASHIM_BACKING=vmm", NULL};

/* 24 blocks on each device, every third of which goes again. */
static void populate(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		take(&block[i], i % DEVICES, (1 + (uint64_t)i % 7) * 900 << 10);
		fill(&block[i]);
	}
	for (int i = 0; i < BLOCKS; i += 3)
		give(&block[i]);
	idle();
}

static uint64_t on_device(void)
{
	return ss_fake_reserved(fake, 0) + ss_fake_reserved(fake, 1);
}

static enum ss_status sleep_now(void)
{
	enum ss_status s = ss_core_sleep(core, &store, &asleep, &slept);

	/* What is not mapped loses its contents. */
	for (int i = 0; s == SS_OK && i < BLOCKS; i++)
		if (block[i].p && !ss_fake_usable(fake, block[i].dev, block[i].p, block[i].size))
			block[i].stamp[0] = block[i].stamp[1] = 0;
	return s;
}

static void all_right(void)
{
	for (int i = 0; i < BLOCKS; i++)
		verify(&block[i]);
	assert_null(ss_check(core));
	assert_int_equal(ss_asleep_bytes(core, 0) + ss_asleep_bytes(core, 1), 0);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	uint64_t free_bytes, total = VRAM, live = 0, before[DEVICES];

	begin(false, vmm_env);
	populate();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BLOCKS; i++)
			live += block[i].p ? ss_round(block[i].size, SS_GRAIN) : 0;
		assert_int_equal(sleep_now(), SS_OK);
		assert_int_equal(on_device(), 0);
		assert_int_equal(slept.stays, 0);
		assert_int_equal(slept.gone, slept.held);
		assert_int_equal(slept.seen, slept.idle + slept.gone);
		assert_int_equal(slept.live, live);
		assert_true(!slept.exported && !slept.by);
		assert_true(st.bytes >= live && st.bytes < live + BLOCKS * (64 << 10));
		for (int dev = 0; dev < DEVICES; dev++) {
			before[dev] = ss_asleep_bytes(core, dev);
			assert_true(before[dev]);
			/* It is the process's all the same. */
			free_bytes = VRAM;
			ss_mem_info(core, dev, &free_bytes, &total);
			assert_true(free_bytes + before[dev] <= VRAM + ss_idle_bytes(core, dev));
		}
		/* Frees and hits go on. Nothing was written to what is handed out now. */
		give(&block[1 + round * 3]);
		assert_false(atomic_load(&wake_wanted));
		assert_int_equal(ss_core_wake(asleep), SS_OK);
		assert_int_equal(on_device(), slept.held);
		all_right();
		live = 0;
	}
	/* It goes on as if nothing had been. */
	for (int i = 0; i < BLOCKS; i += 3) {
		take(&block[i], i % DEVICES, 3 * MIB);
		fill(&block[i]);
	}
	all_right();
	end();
}

/* A block that is handed out while all sleeps. */
static void test_hit_asleep(void **state)
{
	struct block *b = &block[0];
	void *p;

	begin(false, vmm_env);
	take(b, 0, 4096);
	take(&block[1], 0, 4096);
	fill(&block[1]);
	p = b->p;
	give(b);
	idle();
	assert_int_equal(sleep_now(), SS_OK);
	take(b, 0, 4096);
	assert_ptr_equal(b->p, p);
	assert_int_equal(on_device(), 0);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	fill(b);
	all_right();
	end();
}

/* Other memory than what is mapped stays, and says so. */
static void test_stays(void **state)
{
	void *p;

	begin(false, vmm_env);
	assert_int_equal(ss_alloc_classic(core, 0, 4 * MIB, &p), SS_OK);
	take(&block[0], 0, 8 * MIB);
	fill(&block[0]);
	assert_int_equal(sleep_now(), SS_OK);
	assert_int_equal(slept.live, 8 * MIB);
	assert_int_equal(slept.held, slept.gone + slept.stays);
	assert_true(slept.stays >= 4 * MIB && on_device() == slept.stays);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	all_right();
	end();
}

/* Nothing is lost when the store cannot take it, nor when it cannot give it. */
static void test_store_fails(void **state)
{
	begin(false, vmm_env);
	populate();
	for (st.fails = 1; st.fails <= 3; st.fails++) {
		assert_int_equal(sleep_now(), SS_ERR_FAILED);
		all_right();
		assert_int_equal(st.opens, st.closes);
	}
	for (int fails = 4; fails <= 5; fails++) {
		st.fails = 0;
		assert_int_equal(sleep_now(), SS_OK);
		for (int i = 0; i < 2; i++) {
			st.fails = fails;
			st.next = 0;
			assert_int_equal(ss_core_wake(asleep), SS_ERR_FAILED);
			assert_int_equal(on_device(), 0);
			st.restoring = false;
		}
		st.fails = 0;
		assert_int_equal(ss_core_wake(asleep), SS_OK);
		all_right();
	}
	end();
}

/* A call that is refused for good leaves all asleep, and one that is refused once does not
 * matter. */
static void test_wake_refused(void **state)
{
	static const char *const calls[] = {"chunk_create", "map", "set_access"};
	static const enum ss_status how[] = {SS_ERR_NOMEM, SS_ERR_INVALID};

	for (size_t i = 0; i < 3; i++)
		for (int h = 0; h < 2; h++) {
			begin(false, vmm_env);
			populate();
			assert_int_equal(sleep_now(), SS_OK);
			ss_fake_fail(fake, calls[i], 0, how[h]);
			assert_int_not_equal(ss_core_wake(asleep), SS_OK);
			assert_int_equal(on_device(), 0);
			assert_int_not_equal(ss_core_wake(asleep), SS_OK);
			ss_fake_fail_clear(fake);
			ss_fake_fail(fake, calls[i], 3, how[h]);
			assert_int_equal(ss_core_wake(asleep), SS_OK);
			ss_fake_fail_clear(fake);
			all_right();
			end();
		}
}

/* What the driver does not take stays, and is right afterwards. */
static void test_sleep_refused(void **state)
{
	static const char *const calls[] = {"unmap", "chunk_release"};

	for (size_t i = 0; i < 2; i++)
		for (unsigned n = 0; n < 4; n++) {
			begin(false, vmm_env);
			for (int k = 0; k < BLOCKS; k++) {
				take(&block[k], k % DEVICES, 2 * MIB);
				fill(&block[k]);
			}
			idle();
			ss_fake_fail(fake, calls[i], n, SS_ERR_FAILED);
			assert_int_equal(sleep_now(), SS_OK);
			ss_fake_fail_clear(fake);
			assert_int_equal(on_device(), slept.stays);
			/* A call that is refused once is repeated. */
			assert_true(n ? slept.gone && !slept.stays : !slept.gone && slept.stays);
			assert_int_equal(ss_core_wake(asleep), SS_OK);
			assert_int_equal(on_device(), slept.held);
			all_right();
			end();
		}
}

/* Somebody else has the memory: nothing is taken on the way, and it comes back when there is
 * room. */
static void test_no_room(void **state)
{
	void *others[64];
	int n = 0;

	begin(false, vmm_env);
	populate();
	assert_int_equal(sleep_now(), SS_OK);
	while (n < 64 && driver.chunk_create(driver.ctx, 0, 16 * MIB, &others[n]) == SS_OK)
		n++;
	assert_true(n > 32);
	assert_int_equal(ss_core_wake(asleep), SS_ERR_NOMEM);
	assert_int_equal(on_device(), (uint64_t)n * 16 * MIB);
	while (n--)
		assert_int_equal(driver.chunk_release(driver.ctx, 0, others[n], 16 * MIB), SS_OK);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	all_right();
	end();
}

/* Where access is accepted only without a gap below, memory above a gap comes back, too. */
static void test_prefix(void **state)
{
	begin(true, vmm_env);
	for (int i = 0; i < 6; i++) {
		take(&block[i], 0, 16 * MIB);
		fill(&block[i]);
	}
	give(&block[2]);
	idle();
	assert_int_equal(ss_pool_trim(core, ss_pool_default(core, 0), 0), SS_OK);
	assert_int_equal(sleep_now(), SS_OK);
	assert_int_equal(on_device(), 0);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	all_right();
	end();
}

static void *grow(void *arg)
{
	take(arg, 0, 64 * MIB);
	return NULL;
}

/* Who has to map waits, and asks to be woken. */
static void test_growth_wakes(void **state)
{
	pthread_t thread;

	begin(false, vmm_env);
	populate();
	atomic_store(&wake_wanted, false);
	assert_int_equal(sleep_now(), SS_OK);
	assert_int_equal(pthread_create(&thread, NULL, grow, &block[0]), 0);
	while (!atomic_load(&wake_wanted))
		usleep(1000);
	assert_int_equal(on_device(), 0);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	pthread_join(thread, NULL);
	fill(&block[0]);
	all_right();
	end();
}

/* What others hold stays where it is, with what they write meanwhile, and the rest sleeps. */
static void test_exported(void **state)
{
	struct block *held = &block[1];
	void *classic;

	begin(false, vmm_env);
	for (int i = 0; i < 4; i++) {
		take(&block[i], 0, 8 * MIB);
		fill(&block[i]);
	}
	/* Memory of hipMalloc, from whole segments, stays anyway, and so does what is not ours. */
	assert_int_equal(ss_alloc_classic(core, 0, MIB, &classic), SS_OK);
	assert_false(ss_core_stays(core, classic, MIB, "export"));
	assert_false(ss_core_stays(core, &held, 8, "export"));
	/* One byte: the chunk behind it. */
	assert_true(ss_core_stays(core, end_of(held, 1), 1, "map"));
	assert_true(ss_core_stays(core, held->p, held->size, "export"));
	for (int round = 0; round < 2; round++) {
		assert_int_equal(sleep_now(), SS_OK);
		assert_string_equal(slept.by, "export");
		assert_true(slept.exported >= held->size && slept.exported <= slept.stays);
		assert_true(slept.gone && on_device() == slept.stays);
		assert_true(ss_fake_usable(fake, 0, held->p, held->size));
		assert_true(slept.live <= 4 * 8 * MIB - held->size);
		assert_true(st.bytes < slept.live + 2 * MIB);
		held->value = held->stamp[0] = held->stamp[1] = next_value++;
		assert_int_equal(ss_core_wake(asleep), SS_OK);
		all_right();
	}
	/* It may be freed and used again. */
	give(held);
	take(held, 0, 8 * MIB);
	fill(held);
	all_right();
	end();
}

static void *export(void *arg)
{
	struct block *b = arg;

	assert_true(ss_core_stays(core, b->p, b->size, "export"));
	return NULL;
}

/* Who exports asleep waits until the memory is there. */
static void test_export_wakes(void **state)
{
	pthread_t thread;

	begin(false, vmm_env);
	populate();
	atomic_store(&wake_wanted, false);
	assert_int_equal(sleep_now(), SS_OK);
	assert_int_equal(pthread_create(&thread, NULL, export, &block[1]), 0);
	while (!atomic_load(&wake_wanted))
		usleep(1000);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	pthread_join(thread, NULL);
	assert_true(ss_fake_usable(fake, 1, block[1].p, block[1].size));
	assert_int_equal(sleep_now(), SS_OK);
	assert_true(ss_fake_usable(fake, 1, block[1].p, block[1].size) && slept.exported);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	all_right();
	end();
}

/* A pool that grew by small chunks wakes with large ones. */
static void test_join(void **state)
{
	uint32_t first;
	uint64_t before;

	begin(false, vmm_env);
	for (int i = 0; i < BLOCKS; i++) {
		take(&block[i], 0, 2 * MIB);
		fill(&block[i]);
	}
	idle();
	assert_int_equal(sleep_now(), SS_OK);
	first = slept.chunks;
	assert_true(first > 10);
	before = ss_fake_counts(fake).chunk_create;
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	assert_in_range(ss_fake_counts(fake).chunk_create - before, 1, slept.held / (64 * MIB) + 1);
	all_right();
	assert_int_equal(sleep_now(), SS_OK);
	assert_true(slept.chunks <= slept.held / (64 * MIB) + 1 && slept.gone == slept.held);
	assert_int_equal(ss_core_wake(asleep), SS_OK);
	all_right();
	/* A joined chunk is released as a whole, once all of it is idle. */
	for (int i = 0; i < BLOCKS; i++)
		give(&block[i]);
	idle();
	assert_int_equal(ss_pool_trim(core, ss_pool_default(core, 0), 0), SS_OK);
	assert_int_equal(on_device(), 0);
	end();
}

#define THREADS 3
static atomic_bool over;
static atomic_uint waits; /* how often a thread asked to wake */

static bool count_wait(void)
{
	atomic_fetch_add(&waits, 1);
	atomic_store(&wake_wanted, true);
	return true;
}

static void *work(void *arg)
{
	uint64_t x = (uint64_t)(uintptr_t)arg * 0x9e3779b97f4a7c15;
	void *stream = (void *)(uintptr_t)(32 + (uintptr_t)arg), *p[8] = {0};
	struct ss_timeline *mine = ss_timeline_add(core, 0, stream, SS_TL_NONBLOCKING, true);
	struct ss_pool *pool = ss_pool_default(core, 0);

	while (!atomic_load(&over)) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		if (p[x % 8])
			assert_int_equal(ss_free_async(core, p[x % 8], mine), SS_OK);
		assert_int_equal(
			ss_alloc_async(core, pool, mine, 1 + (x >> 20) % (2 * MIB), &p[x % 8]),
			SS_OK);
	}
	for (int i = 0; i < 8; i++)
		if (p[i])
			assert_int_equal(ss_free_async(core, p[i], mine), SS_OK);
	return NULL;
}

/* Threads allocate and free all the while: by hits, and by growth, which has to wait. */
static void test_threads(void **state)
{
	struct ss_watch watch = {.wake = count_wait};
	pthread_t thread[THREADS];

	begin(false, vmm_env);
	ss_core_watch(core, &watch);
	atomic_store(&over, false);
	take(&block[0], 0, 3 * MIB);
	fill(&block[0]);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
	for (int round = 0; round < 40 || (!atomic_load(&waits) && round < 4000); round++) {
		atomic_store(&wake_wanted, false);
		assert_int_equal(sleep_now(), SS_OK);
		for (int i = 0; i < 200 && !atomic_load(&wake_wanted); i++)
			sched_yield();
		assert_int_equal(ss_core_wake(asleep), SS_OK);
		verify(&block[0]);
	}
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_true(atomic_load(&waits));
	all_right();
	end();
}

/* Many rounds, with calls that fail now and then. */
static void test_random(void **state)
{
	static const char *const calls[] = {"chunk_create", "map", "set_access", "unmap",
					    "chunk_release"};
	uint64_t x = 88172645463325252ull;

	for (int prefix = 0; prefix < 2; prefix++) {
		begin(prefix, vmm_env);
		for (int round = 0; round < 400; round++) {
			for (int k = 0; k < 12; k++) {
				struct block *b;

				x ^= x << 13, x ^= x >> 7, x ^= x << 17;
				b = &block[x % BLOCKS];
				if (b->p) {
					verify(b);
					give(b);
				} else {
					take(b, (int)(x >> 20 & 1), 1 + (x >> 30) % (9 * MIB));
					fill(b);
				}
			}
			idle();
			if (x >> 40 & 1)
				ss_fake_fail(fake, calls[(x >> 41) % 5], 1 + (x >> 45) % 9,
					     x >> 50 & 1 ? SS_ERR_NOMEM : SS_ERR_FAILED);
			assert_int_equal(sleep_now(), SS_OK);
			while (ss_core_wake(asleep) != SS_OK)
				;
			ss_fake_fail_clear(fake);
			all_right();
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_hit_asleep),
		cmocka_unit_test(test_stays),        cmocka_unit_test(test_store_fails),
		cmocka_unit_test(test_wake_refused), cmocka_unit_test(test_sleep_refused),
		cmocka_unit_test(test_no_room),      cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_growth_wakes), cmocka_unit_test(test_random),
		cmocka_unit_test(test_threads),      cmocka_unit_test(test_exported),
		cmocka_unit_test(test_export_wakes), cmocka_unit_test(test_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
