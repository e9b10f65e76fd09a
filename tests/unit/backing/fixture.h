/* SPDX-License-Identifier: MIT */
/* The memory of one pool on a fake device, and functions that take blocks of it as upper layers
 * do. */
#ifndef TESTS_BACKING_FIXTURE_H
#define TESTS_BACKING_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/backing/device_memory.h"
#include "driver/fake/fake.h"

#define MIB (1ull << 20)

static struct ss_core *core;
static struct ss_fake *fake;
static struct ss_memory *mem;
static unsigned gathered;

static void gather(struct ss_memory *m)
{
	/* The lock is held. */
	assert_int_not_equal(pthread_mutex_trylock(&m->lock), 0);
	gathered++;
}

static void open_memory(enum ss_backing backing, uint64_t vram)
{
	struct ss_fake_config config = {.vram = vram, .devices = 2, .vmm = true};

	fake = ss_fake_create(&config);
	core = calloc(1, sizeof(*core));
	core->drv = ss_fake_driver(fake);
	core->devices = 2;
	for (int dev = 0; dev < 2; dev++)
		assert_int_equal(core->drv.device_info(core->drv.ctx, dev, &core->info[dev]),
				 SS_OK);
	assert_true(ss_map_init(core));
	assert_true(ss_devices_init(core));
	mem = ss_host_alloc(core, sizeof(*mem));
	ss_memory_init(mem, core, NULL, 0, backing);
	mem->gather = gather;
	gathered = 0;
}

static void close_memory(void)
{
	ss_fake_fail_clear(fake);
	ss_memory_drop(mem, SS_DROP_ALL);
	assert_int_equal(mem->reserved, 0);
	assert_int_equal(ss_device_memory(core, 0)->reserved, 0);
	assert_int_equal(ss_device_memory(core, 0)->taken, 0);
	assert_int_equal(core->backing->chunks, 0);
	assert_int_equal(core->backing->addresses, 0);
	assert_int_equal(ss_fake_reserved(fake, 0), 0);
	ss_memory_finish(mem);
	ss_host_free(core, mem, sizeof(*mem));
	ss_devices_finish(core);
	ss_map_finish(core);
	assert_int_equal(core->host_bytes, 0);
	free(core);
	ss_fake_destroy(fake);
}

/* Checks that the pool, the figures of the device and the device itself agree. */
static void assert_reserved(uint64_t bytes)
{
	assert_int_equal(mem->reserved, bytes);
	assert_int_equal(ss_device_memory(core, 0)->reserved, bytes);
	assert_int_equal(ss_device_memory(core, 0)->taken, bytes);
	assert_int_equal(ss_fake_reserved(fake, 0), bytes);
}

static enum ss_status grow(uint64_t size, bool move)
{
	struct ss_growth g = {
		.size = size, .align = SS_GRAIN, .slot = SS_SLOT_COMPLETED, .move = move};

	return ss_memory_grow(mem, &g);
}

/* Takes a live block out of the completed ranges; NULL: no range is long enough. */
static struct ss_block *take(uint64_t size, uint64_t align)
{
	struct ss_block *b;

	pthread_mutex_lock(&mem->lock);
	b = ss_index_best(&mem->completed, size, align);
	if (b)
		b = ss_completed_cut(mem, b, ss_start_in(b, align), size);
	if (b)
		ss_set_state(b, SS_BLOCK_LIVE);
	pthread_mutex_unlock(&mem->lock);
	return b;
}

/* The same, but grows if it must. */
static struct ss_block *need(uint64_t size, bool move)
{
	struct ss_block *b = take(size, SS_GRAIN);

	if (!b) {
		assert_int_equal(grow(size, move), SS_OK);
		b = take(size, SS_GRAIN);
	}
	assert_non_null(b);
	assert_true(ss_fake_usable(fake, 0, (void *)(uintptr_t)b->addr, b->size));
	return b;
}

static void give(struct ss_block *b)
{
	pthread_mutex_lock(&mem->lock);
	ss_set_state(b, SS_BLOCK_QUEUED);
	b->n = ss_now_ms(core);
	ss_completed_insert(mem, b);
	pthread_mutex_unlock(&mem->lock);
}

#endif
