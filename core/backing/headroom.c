/* SPDX-License-Identifier: MIT */
/*
 * What the runtime needs for itself. It takes device memory where no call can say that there
 * is none: for a queue, for the code of a kernel that is launched for the first time, for
 * graphs (7.2.4 crashes, or goes on without). Natively what the program has freed is there for
 * that; here it may lie idle in a pool.
 *
 * Locks: none held.
 */
#include "core/grow.h"

#define LOW_PART 64            /* of the device, */
#define LOW_MOST (64ull << 20) /* and at most: to be left free */
#define WAKE_PART 4            /* of the device */

static uint64_t low_water(uint64_t total)
{
	return total / LOW_PART < LOW_MOST ? total / LOW_PART : LOW_MOST;
}

/* A stream's queue is made with the stream, but the null stream's when somebody asks for it first:
 * be it ourselves, whether it is idle, on a device that is full by then. `used`: of the device. */
static void wake_null(struct ss_pool *pool, uint64_t used)
{
	struct ss_core *core = pool->core;
	struct ss_device_state *d = &core->dev[pool->dev];

	if (used < d->info.total_bytes / WAKE_PART || atomic_load(&d->woken) ||
	    !core->drv.stream_idle)
		return;
	if (core->drv.stream_idle(core->drv.ctx, pool->dev, NULL) != SS_ERR_CAPTURE)
		atomic_store(&d->woken, true);
}

void ss_wake_null(struct ss_pool *pool, uint64_t more)
{
	wake_null(pool, atomic_load(&pool->core->dev[pool->dev].taken) + more);
}

/* Memory is short: from now on a free records its own fence, which is what
 * ReuseAllowInternalDependencies can wait for. */
void ss_look_left(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	uint64_t left = 0, total = 0;

	if (SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->dev, &left, &total)) != SS_OK)
		return;
	wake_null(pool, total - left); /* others use it as well */
	ss_pressed_set(core, pool->dev, left < total / 16);
	if (left < low_water(total)) {
		atomic_store(&core->dev[pool->dev].low, true);
		ss_strict(core, pool->dev);
	}
}

void ss_relieve(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	struct ss_device_state *d = &core->dev[pool->dev];
	uint64_t left = 0, total = 0, reserved = atomic_load(&pool->reserved), missing;

	if (!atomic_load(&d->low) ||
	    SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->dev, &left, &total)) != SS_OK)
		return;
	if (left < low_water(total)) {
		missing = low_water(total) - left;
		ss_release(pool, reserved > missing ? reserved - missing : 0, UINT64_MAX);
	} else {
		atomic_store(&d->low, false);
	}
}

bool ss_scarce(struct ss_core *core, int dev)
{
	return ss_device_low(core, dev);
}

void ss_freed_idle(struct ss_core *core, int dev)
{
	if (ss_device_low(core, dev))
		ss_housekeep(core, dev, !ss_zombies(core, dev));
}

void ss_give_room(struct ss_core *core, int dev, uint64_t size, bool may_wait)
{
	uint64_t end = 0, left, total;

	if (dev < 0 || dev >= core->devices)
		return;
	while (ss_idle_bytes(core, dev) &&
	       SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, dev, &left, &total)) == SS_OK &&
	       left < size && ss_give_back(core, dev, may_wait, &end))
		;
}
