/* SPDX-License-Identifier: MIT */
/*
 * When idle memory goes back: at once where a threshold, a trim or the end of a pool says
 * so, else when it was idle for SOMASHIM_DECAY_MS. Only in calls of the program that
 * synchronize. Where giving back waits for the device (release_waits) it has to be at its
 * end: such a call waits for it all natively, or every stream, asked one by one, turns out
 * to have nothing left to do. Nobody waits here, and nothing is enqueued.
 *
 * To look for what is idle empties the bins, and asking costs a call per stream: so for
 * decay's sake that is done a few times in its span only. What a program frees between
 * two looks is as old as its stream's last synchronization says (ss_freed_by).
 *
 * Locks: those of what it calls, one at a time.
 */
#include "core/grow.h"

#define LOOKS 4 /* in the time of decay: idle memory stays a fourth of it longer at most */

struct keeper {
	uint64_t now;
	bool idle;
	bool decays; /* it is time to look */
	bool waits;  /* something is to go where that waits for the device, */
	bool others; /* or elsewhere */
};

static void keep_house(struct ss_pool *pool, void *arg)
{
	const struct keeper *k = arg;
	struct ss_core *core = pool->core;
	uint64_t decay = core->opt.decay_ms, target;
	bool trim;

	if (atomic_load(&pool->dying)) {
		if (k->idle && !ss_pool_used(pool))
			ss_release(pool, 0, UINT64_MAX);
		ss_pool_reap(pool);
		return;
	}
	if ((ss_release_waits(pool) && !k->idle) || !atomic_load(&pool->reserved))
		return;
	ss_ipc_release(pool, false); /* whatever the threshold: nobody can use it */
	pthread_mutex_lock(&pool->lock);
	trim = pool->trim_wanted;
	target = pool->trim_keep;
	pool->trim_wanted = false;
	pthread_mutex_unlock(&pool->lock);
	if (trim)
		ss_release(pool, target, UINT64_MAX);
	if (atomic_load(&pool->threshold_set)) {
		target = SS_MUTANT_IS(11) ? 0 : atomic_load(&pool->threshold);
		if (atomic_load(&pool->reserved) > target)
			ss_release(pool, target, UINT64_MAX);
	} else {
		if (k->decays && k->now >= decay)
			ss_release(pool, 0, decay ? k->now - decay : UINT64_MAX);
		ss_relieve(pool);
	}
}

static void house(struct ss_core *core, int dev, struct keeper *k)
{
	ss_pools_each(core, dev, keep_house, k);
}

void ss_housekeep(struct ss_core *core, int dev, bool device_idle)
{
	struct keeper k = {.idle = device_idle, .decays = true};

	if (dev < 0 || dev >= core->devices || !atomic_load(&core->dev[dev].def))
		return;
	k.now = core->drv.now_ms(core->drv.ctx);
	house(core, dev, &k);
}

/* Is anything idle in it that should go? */
static void wishes(struct ss_pool *pool, void *arg)
{
	uint64_t reserved = atomic_load(&pool->reserved);
	struct keeper *k = arg;
	bool wants;

	if (atomic_load(&pool->dying)) {
		wants = true;
	} else if (atomic_load(&pool->threshold_set)) {
		wants = reserved > atomic_load(&pool->threshold);
	} else {
		wants = k->decays || ss_device_low(pool->core, pool->dev);
	}
	if (!wants) {
		pthread_mutex_lock(&pool->lock);
		wants = pool->trim_wanted;
		pthread_mutex_unlock(&pool->lock);
	}
	if (!wants || !reserved || reserved <= ss_pool_used(pool))
		return;
	if (ss_release_waits(pool))
		k->waits = true;
	else
		k->others = true;
}

/* Its next synchronization looks, too. */
static void remember_busy(struct ss_device_state *d, struct ss_timeline *busy)
{
	uint64_t old = atomic_load(&d->hurry), bits = busy ? SS_HURRY_BUSY * (busy->slot + 1) : 0;

	while (!atomic_compare_exchange_weak(&d->hurry, &old,
					     (old & (SS_HURRY_BUSY - 1)) | bits))
		;
	if (busy)
		atomic_store_explicit(&busy->noted_at, 0, memory_order_relaxed);
}

void ss_strict(struct ss_core *core, int dev)
{
	if (atomic_fetch_or(&core->dev[dev].hurry, SS_HURRY_STRICT) & SS_HURRY_STRICT)
		return;
	pthread_mutex_lock(&core->order);
	for (uint32_t i = 0; i < core->slot_count; i++)
		atomic_store_explicit(&core->slots[i]->noted_at, 0, memory_order_relaxed);
	pthread_mutex_unlock(&core->order);
}

void ss_keep_house_now(struct ss_core *core, int dev, struct ss_timeline *tl, uint64_t pos,
		       bool idle)
{
	struct keeper k = {.now = core->drv.now_ms(core->drv.ctx)};
	struct ss_device_state *d = &core->dev[dev];
	uint64_t decay = core->opt.decay_ms;
	struct ss_timeline *busy = NULL;
	uint64_t hurry;
	uint32_t slot;

	if (tl)
		ss_note(core, tl, pos, k.now);
	if (idle) {
		/* What a destroyed stream still runs is waited for only by a device-wide
		 * wait. */
		ss_housekeep(core, dev, !ss_zombies(core, dev));
		return;
	}
	/* With the stream that was in the way last time, it is time again. */
	hurry = atomic_load_explicit(&d->hurry, memory_order_relaxed);
	slot = (uint32_t)(hurry / SS_HURRY_BUSY);
	k.decays = k.now >= atomic_load_explicit(&d->look, memory_order_relaxed) || !decay ||
		   (slot && tl && tl->slot + 1 == slot);
	if (!k.decays && !(hurry & SS_HURRY_STRICT))
		return;
	if (k.decays)
		atomic_store_explicit(&d->look, k.now + decay / LOOKS + 1, memory_order_relaxed);
	ss_pools_each(core, dev, wishes, &k);
	if (k.waits) {
		busy = slot ? ss_slot(core, slot - 1) : NULL;
		k.idle = ss_device_at_end(core, dev, &busy);
		remember_busy(d, busy);
		if (busy && k.decays)
			atomic_store_explicit(&d->look, k.now + 1, memory_order_relaxed);
	}
	if (k.idle || k.others)
		house(core, dev, &k);
}
