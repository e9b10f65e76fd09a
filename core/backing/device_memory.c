/* SPDX-License-Identifier: MIT */
/*
 * The memory that this process has taken of each device, the limits on it, and the memory that is
 * left.
 *
 * Locks: none; all figures are atomic.
 */
#include "core/backing/device_memory.h"
#include "core/base/backoff.h"
#include "core/core.h"

/* While more than this part was left lately, the device is not asked: the call takes as long as
 * one that takes memory. */
#define FAR_PART 4
#define LATELY_MS 10 /* short, because other processes and the runtime take memory, too */

bool ss_devices_init(struct ss_core *core)
{
	core->backing = ss_host_alloc(core, sizeof(*core->backing));
	if (!core->backing)
		return false;
	pthread_mutex_init(&core->backing->guards.lock, NULL);
	core->backing->guards.newest = &core->backing->guards.oldest;
	return true;
}

void ss_devices_finish(struct ss_core *core)
{
	struct ss_gone *g;

	if (!core->backing)
		return;
	while ((g = core->backing->guards.oldest)) {
		core->backing->guards.oldest = g->next;
		core->drv.vmm_unreserve(core->drv.ctx, g->dev, g->va, g->size);
		ss_host_free(core, g, sizeof(*g));
	}
	pthread_mutex_destroy(&core->backing->guards.lock);
	ss_host_free(core, core->backing, sizeof(*core->backing));
	core->backing = NULL;
}

bool ss_cap_take(struct ss_memory *m, uint64_t size)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);
	uint64_t max = atomic_load(&m->max_bytes);

	/* Memory comes in whole frames. The function that hands memory out keeps to max_bytes
	 * itself. */
	if (max && atomic_load(&m->reserved) + size > ss_round(max, SS_FRAME))
		return false;
	/* The bytes count as taken before the device is asked, so that two threads at once stay
	 * below the limit, too. */
	if (atomic_fetch_add(&d->taken, size) + size + atomic_load(&d->others) <= d->limit ||
	    !d->limit)
		return true;
	ss_cap_return(m, size);
	return false;
}

void ss_cap_return(struct ss_memory *m, uint64_t size)
{
	atomic_fetch_sub(&ss_device_memory(m->core, m->dev)->taken, size);
}

bool ss_limit_take(struct ss_core *core, int dev, uint64_t bytes)
{
	struct ss_device_memory *d = ss_device_memory(core, dev);

	if (atomic_fetch_add(&d->others, bytes) + bytes + atomic_load(&d->taken) <= d->limit ||
	    !d->limit)
		return true;
	ss_limit_return(core, dev, bytes);
	return false;
}

void ss_limit_return(struct ss_core *core, int dev, uint64_t bytes)
{
	atomic_fetch_sub(&ss_device_memory(core, dev)->others, bytes);
}

bool ss_device_left(struct ss_core *core, int dev, uint64_t *left)
{
	struct ss_device_memory *d = ss_device_memory(core, dev);

	*left = 0;
	if (SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, dev, left, NULL)) != SS_OK)
		return false;
	atomic_store(&d->room, *left + atomic_load(&d->taken));
	atomic_store(&d->room_until, ss_now_ms(core) + LATELY_MS);
	atomic_fetch_add(&d->room_asked, 1);
	return true;
}

bool ss_device_roomy(struct ss_core *core, int dev, uint64_t more)
{
	struct ss_device_memory *d = ss_device_memory(core, dev);
	uint64_t used = atomic_load(&d->taken) + core->info[dev].total_bytes / FAR_PART + more;

	return atomic_load(&d->room) > used && ss_now_ms(core) < atomic_load(&d->room_until);
}

bool ss_device_lacks(struct ss_core *core, int dev, uint64_t bytes)
{
	uint64_t left;

	return !ss_device_roomy(core, dev, bytes) && ss_device_left(core, dev, &left) &&
	       bytes > left;
}

void ss_device_room_changed(struct ss_core *core)
{
	for (int dev = 0; dev < core->devices; dev++)
		atomic_store(&ss_device_memory(core, dev)->room_until, 0);
}

uint64_t ss_reserved_add(struct ss_memory *m, uint64_t delta)
{
	bool recorded = m->core->recorded;
	uint64_t when = recorded ? ss_moment_begin(&m->moment) : 0;
	uint64_t now = atomic_fetch_add(&m->reserved, delta) + delta;

	ss_raise_to(&m->reserved_high, now);
	if (recorded)
		ss_moment_end(&m->moment);
	atomic_fetch_add(&ss_device_memory(m->core, m->dev)->reserved, delta);
	return when;
}

void ss_nearly_full_set(struct ss_core *core, int dev, bool nearly_full)
{
	/* Threads remember pools whose frees need no fence. */
	if (atomic_exchange(&ss_device_memory(core, dev)->nearly_full, nearly_full) != nearly_full)
		ss_hits_end(core);
}

bool ss_device_low(struct ss_core *core, int dev)
{
	return atomic_load_explicit(&ss_device_memory(core, dev)->low, memory_order_relaxed);
}

enum ss_status ss_growth_begin(struct ss_memory *m)
{
	struct ss_device_memory *d = ss_device_memory(m->core, m->dev);

	/* Memory that this process has lent is not free for the process itself: with less memory
	 * it could not wake. So a thread that takes memory waits until the process is awake. */
	if (atomic_load(&d->asleep) && m->core->watch.wake && !m->core->watch.wake())
		return SS_ERR_NOMEM;
	/* Either this thread sees the reset, or the reset sees this thread. */
	atomic_fetch_add(&d->growing, 1);
	if (!atomic_load(&d->resets) && !atomic_load(&m->dropped))
		return SS_OK;
	ss_growth_end(m);
	return SS_ERR_NO_DEVICE;
}

void ss_growth_end(struct ss_memory *m)
{
	atomic_fetch_sub(&ss_device_memory(m->core, m->dev)->growing, 1);
}

void ss_growth_forbid(struct ss_core *core, int dev)
{
	struct ss_device_memory *d = ss_device_memory(core, dev);

	atomic_fetch_add(&d->resets, 1);
	for (unsigned turn = 0; atomic_load(&d->growing);)
		ss_backoff(&turn);
}

void ss_growth_allow(struct ss_core *core, int dev)
{
	atomic_fetch_sub(&ss_device_memory(core, dev)->resets, 1);
}

void ss_releasing_begin(struct ss_core *core, int dev)
{
	atomic_fetch_add(&ss_device_memory(core, dev)->releasing, 1);
}

void ss_releasing_end(struct ss_core *core, int dev, uint64_t bytes)
{
	struct ss_device_memory *d = ss_device_memory(core, dev);

	if (bytes)
		atomic_fetch_add(&d->gave, 1);
	atomic_fetch_sub(&d->releasing, 1);
}
