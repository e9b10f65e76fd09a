/* SPDX-License-Identifier: MIT */
/*
 * Devices: the first pools of each device, its peers, its reset, and the figures that a program
 * sees.
 *
 * Locks: pools->lock, then pool locks one at a time.
 */
#include <inttypes.h>

#include "core/shelf/fast_path.h"
#include "core/pool/release.h"

static bool is_device(const struct ss_core *core, int dev)
{
	return dev >= 0 && dev < core->devices;
}

/* ---- the first use ------------------------------------------------------------------ */

void ss_device_current_changed(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_pool *pool = atomic_load(&d->current), *classic = atomic_load(&d->classic);

	/* A pool with a maximum needs one more check, so it is not for the hot path. */
	atomic_store(&core->fast->current[dev],
		     pool && !atomic_load(&pool->mem.max_bytes) ? &pool->shelves : NULL);
	atomic_store(&core->fast->frees[dev], pool && pool->is_default);
	atomic_store(&core->fast->classic[dev], classic ? &classic->shelves : NULL);
	ss_hits_end(core);
}

/* Asks the driver, with no lock held, then makes the device's pools. */
static void device_init(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_device_info info = {0};
	struct ss_pool *pool;

	if (core->drv.device_info(core->drv.ctx, dev, &info) != SS_OK)
		return;
	pthread_mutex_lock(&core->pools->lock);
	if (!atomic_load(&d->known)) {
		core->info[dev] = info;
		ss_device_memory(core, dev)->limit = ss_amount_bytes(&core->opt.limit,
								     info.total_bytes);
		atomic_store(&d->known, true);
	}
	if (!atomic_load(&d->classic) && (pool = ss_pool_new(core, dev, true, true))) {
		ss_order_classic(core, dev);
		atomic_store(&d->classic, pool);
	}
	if (!atomic_load(&d->def) && (pool = ss_pool_new(core, dev, false, true))) {
		atomic_store(&d->current, pool);
		ss_device_current_changed(core, dev);
		atomic_store_explicit(&d->def, pool, memory_order_release);
	}
	pthread_mutex_unlock(&core->pools->lock);
}

/* The pool in *at, which is one of dev's pools. The pools are made at the first use of the
 * device. */
static struct ss_pool *pool_of(struct ss_core *core, int dev, const _Atomic(struct ss_pool *) *at)
{
	struct ss_pool *pool = atomic_load_explicit(at, memory_order_acquire);

	if (likely(pool != NULL))
		return pool;
	device_init(core, dev);
	return atomic_load_explicit(at, memory_order_acquire);
}

struct ss_pool *ss_pool_default(struct ss_core *core, int dev)
{
	return is_device(core, dev) ? pool_of(core, dev, &ss_device_pools(core, dev)->def) : NULL;
}

enum ss_status ss_pool_none(struct ss_core *core, int dev)
{
	return is_device(core, dev) && atomic_load(&ss_device_pools(core, dev)->known) ?
		       SS_ERR_NOMEM :
		       SS_ERR_INVALID;
}

struct ss_pool *ss_pool_classic(struct ss_core *core, int dev)
{
	return is_device(core, dev) ? pool_of(core, dev, &ss_device_pools(core, dev)->classic) :
				      NULL;
}

struct ss_pool *ss_pool_current(struct ss_core *core, int dev)
{
	return is_device(core, dev) ? pool_of(core, dev, &ss_device_pools(core, dev)->current) :
				      NULL;
}

void ss_device_initial(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	int dev = pool->mem.dev;
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_growth growth = {.align = SS_GRAIN, .slot = SS_SLOT_COMPLETED};

	/* A pool that the program made may be destroyed soon, or have a lower maximum. */
	if (atomic_load_explicit(&d->initial_done, memory_order_relaxed) ||
	    !core->opt.initial.set || !(pool->classic || pool->is_default) ||
	    atomic_exchange(&d->initial_done, true))
		return;
	growth.size = ss_amount_bytes(&core->opt.initial, core->info[dev].total_bytes);
	/* The reservation is a wish: if the device is too full, pools grow on demand. */
	if (growth.size && ss_memory_grow(&pool->mem, &growth) != SS_OK && core->watch.log)
		fprintf(core->watch.log,
			"somashim: SOMASHIM_INITIAL: device %d has no %" PRIu64
			" bytes to reserve\n",
			dev, growth.size);
	ss_tell_growth(core);
	ss_decay_wake(core);
}

/* ---- figures for the program ----------------------------------------------------------- */

uint64_t ss_idle_bytes(struct ss_core *core, int dev)
{
	uint64_t idle = 0, reserved;

	SS_POOLS_EACH(pool, core, dev) {
		reserved = ss_reserved(pool);
		idle += ss_minus(reserved, ss_used(&pool->shelves) + atomic_load(&pool->kept));
	}
	return idle;
}

uint64_t ss_limit_of(struct ss_core *core, int dev, uint64_t total_bytes)
{
	uint64_t limit = core->opt.limit.bytes;

	/* The device may have more memory than its total (APUs), and percents count all of its
	 * memory. */
	if (core->opt.limit.percent > 0 && ss_pool_default(core, dev))
		limit = ss_device_memory(core, dev)->limit;
	return limit && limit < total_bytes ? limit : total_bytes;
}

/* Does the device have more memory than its total? Some APUs do. */
static bool exceeds_total(struct ss_device_memory *d, uint64_t free_bytes, uint64_t total_bytes)
{
	if (free_bytes > total_bytes || atomic_load(&d->reserved) > total_bytes)
		atomic_store(&d->exceeds_total, true);
	return atomic_load(&d->exceeds_total);
}

void ss_mem_info(struct ss_core *core, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	uint64_t total = *total_bytes, idle, used;
	struct ss_device_memory *d;

	if (!is_device(core, dev))
		return;
	/* Programs compute their needs from these figures before they allocate, so the limit
	 * must be known. */
	if (core->opt.limit.set)
		(void)ss_pool_default(core, dev);
	d = ss_device_memory(core, dev);
	/* The device counts memory of a sleeping process as free, but the process may take it
	 * again at any time. */
	*free_bytes = ss_minus(*free_bytes, atomic_load(&d->asleep));
	*total_bytes = ss_limit_of(core, dev, total);
	idle = ss_idle_bytes(core, dev);
	/* Memory that changes hands in the meantime may be in both figures. */
	if (exceeds_total(d, *free_bytes, total))
		*free_bytes += idle;
	else
		*free_bytes = ss_min(*free_bytes + idle, total);
	if (d->limit) {
		used = ss_minus(atomic_load(&d->reserved), idle) + atomic_load(&d->others);
		*free_bytes = ss_min(*free_bytes, ss_minus(d->limit, used));
	}
}

/* ---- peers --------------------------------------------------------------------------------- */

enum ss_status ss_device_add_peers(struct ss_core *core, int dev, uint64_t peers)
{
	enum ss_status s = SS_OK;
	struct ss_pool *pool;

	if (!is_device(core, dev))
		return SS_ERR_NO_DEVICE;
	atomic_fetch_or(&ss_device_pools(core, dev)->peers, peers); /* for later pools */
	pool = ss_pool_classic(core, dev);
	if (!pool)
		return SS_ERR_NO_DEVICE;
	/* A pool that ends with a reset needs nothing: the next pool has the peers. */
	if (!ss_pool_ref(pool))
		return SS_OK;
	if (atomic_load(&ss_device_pools(core, dev)->classic) == pool)
		s = ss_memory_set_access(&pool->mem, peers, 0);
	if (atomic_load(&pool->dying))
		s = SS_OK;
	ss_pool_unref(pool);
	return s;
}

bool ss_devices_reopen(struct ss_core *core)
{
	bool all = true;

	SS_POOLS_EACH(pool, core, -1)
		all &= ss_memory_reopen(&pool->mem);
	return all;
}

/* Devices with access to memory of the pools of dev. */
static uint64_t users_of(struct ss_core *core, int dev)
{
	uint64_t devices = 0;

	SS_POOLS_EACH(pool, core, dev)
		if (pool->mem.vmm || ss_reserved(pool))
			devices |= atomic_load(&pool->mem.peers);
	return devices;
}

uint64_t ss_reset_waits_for(struct ss_core *core, int dev)
{
	uint64_t others = 0;

	if (!is_device(core, dev))
		return 0;
	for (int other = 0; other < core->devices && !others; other++)
		others = other != dev ? users_of(core, other) : 0;
	return users_of(core, dev) | (others ? 1ull << dev : 0);
}

/* ---- the end ------------------------------------------------------------------------------ */

bool ss_must_unmap(struct ss_core *core, int dev)
{
	bool any = false;

	if (!is_device(core, dev) || !core->info[dev].unmap_at_exit)
		return false;
	SS_POOLS_EACH(pool, core, dev)
		any |= ss_memory_maps(&pool->mem) && ss_reserved(pool);
	return any;
}

void ss_unmap(struct ss_core *core, int dev)
{
	SS_POOLS_EACH(pool, core, dev)
		ss_memory_unmap_all(&pool->mem);
}

/* Takes the pools of dev off all lists. New default pools are made at the next use. */
static void unlist_pools(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_pool *pool;

	pthread_mutex_lock(&core->pools->lock);
	atomic_store(&d->def, NULL);
	atomic_store(&d->classic, NULL);
	atomic_store(&d->current, NULL);
	ss_device_current_changed(core, dev);
	for (pool = core->pools->list; pool; pool = pool->next)
		/* The pool ends when its last user leaves. */
		if (pool->mem.dev == dev && !atomic_exchange(&pool->dying, true))
			ss_table_remove(&core->pools->by_handle, &pool->link);
	pthread_mutex_unlock(&core->pools->lock);
}

static void reset_pool(struct ss_pool *pool, bool idle)
{
	/* Another thread has made a new pool meanwhile. */
	if (!atomic_load(&pool->dying))
		return;
	/* A thread that maps memory or gives access to it now finishes first. */
	if (ss_memory_claim(&pool->mem, true, NULL)) {
		ss_stats_ended(pool);
		ss_pool_drop_memory(pool, idle ? SS_DROP_OUTLIVES : SS_DROP_FORGET);
		ss_memory_unclaim(&pool->mem);
	}
}

void ss_device_reset_begin(struct ss_core *core, int dev, bool idle)
{
	struct ss_device_pools *d;

	if (!is_device(core, dev))
		return;
	d = ss_device_pools(core, dev);
	/* Memory that another thread gets now would vanish with the real reset, unknown to the
	 * pool. */
	ss_growth_forbid(core, dev);
	unlist_pools(core, dev);
	SS_POOLS_EACH(pool, core, dev)
		reset_pool(pool, idle);
	ss_order_reset(core, dev);
	atomic_store(&d->initial_done, false);
	atomic_store(&d->busy, NULL);
	atomic_store(&d->asks_again, 0);
	ss_nearly_full_set(core, dev, false);
	atomic_store(&ss_device_memory(core, dev)->woken, false);
	atomic_store(&ss_device_memory(core, dev)->low, false);
	atomic_store(&ss_device_memory(core, dev)->others, 0);
	ss_hits_end(core);
}

void ss_device_reset_end(struct ss_core *core, int dev)
{
	if (is_device(core, dev))
		ss_growth_allow(core, dev);
}
