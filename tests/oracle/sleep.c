/* SPDX-License-Identifier: MIT */
/*
 * With --sleep the pools of a program are put to sleep and woken after every few operations, when
 * no device has anything to do. The device ends the program at a map over a mapping and at access
 * to what is not mapped. All live blocks must be memory again afterwards.
 */
#include <string.h>

#include "core/sleep.h"
#include "oracle.h"

#define EVERY 11  /* operations */
#define TRIES 40  /* to wake; calls of the device fail now and then */

bool oracle_sleeps;

/* Ranges that were saved. */
static struct {
	uint64_t va, size;
	int dev;
} saved[BLOCKS];
static int count, at;

static bool st_open(void *ctx, uint64_t bytes)
{
	count = 0;
	return true;
}

static void check_mapped(struct world *w, int dev, uint64_t va, uint64_t size, const char *what)
{
	if (memory_of(w, dev, va, va + size) != size)
		fail(w, F_OVERLAP, "%s: %#lx+%lu is not wholly memory of device %d", what,
		     (unsigned long)va, (unsigned long)size, dev);
}

static bool st_save(void *ctx, int dev, uint64_t va, uint64_t size)
{
	struct world *w = ctx;

	check_mapped(w, dev, va, size, "saved");
	if (count == BLOCKS) {
		fail(w, F_DRIVER, "more ranges are saved than there are blocks");
		return false;
	}
	saved[count].va = va;
	saved[count].size = size;
	saved[count++].dev = dev;
	return true;
}

static bool st_restore(void *ctx, int dev, uint64_t va, uint64_t size)
{
	struct world *w = ctx;

	if (at >= count || saved[at].va != va || saved[at].size != size || saved[at].dev != dev)
		fail(w, F_DRIVER, "%#lx+%lu is restored and was not saved so", (unsigned long)va,
		     (unsigned long)size);
	at++;
	check_mapped(w, dev, va, size, "restored");
	return true;
}

static bool st_flush(void *ctx)
{
	at = 0;
	return true;
}

static void st_close(void *ctx)
{
}

/* Is every live block of a pool on mapped memory in what was saved? */
static void check_saved(struct world *w)
{
	for (int i = 0; i < BLOCKS; i++) {
		const struct block *b = &w->blk[i];
		bool found = !b->used || memory_of(w, b->dev, b->addr, b->addr + b->size);

		for (int k = 0; k < count && !found; k++)
			found = saved[k].dev == b->dev && b->addr >= saved[k].va &&
				b->addr + b->size <= saved[k].va + saved[k].size;
		if (!found)
			fail(w, F_DRIVER, "block %d sleeps and was not saved", i);
	}
}

/* Waits for all devices as the program would. False: one has work that does not end. */
static bool idle(struct world *w)
{
	struct clk all;

	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].stuck || w->s[i].capturing || w->s[i].pairs || w->s[i].busy)
			return false;
	for (int d = 0; d < w->cfg.devices; d++) {
		struct op sync = {.kind = OP_DEVICE_SYNC, .b = (uint8_t)d};

		op_sync(w, &sync);
		device_clock(w, d, true, &all);
		if (!clk_done(w, &all))
			return false;
	}
	return !w->fail_class && !w->full;
}

static void cycle(void *arg)
{
	struct world *w = arg;
	const struct ss_sleep_store store = {w, st_open, st_save, st_restore, st_flush, st_close};
	struct ss_asleep *asleep;
	struct ss_slept slept;
	struct call before = w->call;

	memset(&w->call, 0, sizeof(w->call));
	if (idle(w)) {
		w->sleeping = true;
		if (ss_core_sleep(w->core, &store, &asleep, &slept) == SS_OK) {
			check_saved(w);
			for (int i = 0; ss_core_wake(asleep) != SS_OK; i++)
				if (i == TRIES)
					memset(w->inject, 0, sizeof(w->inject));
			for (int i = 0; i < BLOCKS; i++)
				if (w->blk[i].used)
					check_mapped(w, w->blk[i].dev, w->blk[i].addr,
						     w->blk[i].size, "awake");
		}
		w->sleeping = false;
	}
	w->call = before;
}

void sleep_and_wake(struct world *w)
{
	if (oracle_sleeps && w->cfg.vmm && w->pc % EVERY == 0 && !w->depth && !w->hook)
		on_thread(0, cycle, w);
}
