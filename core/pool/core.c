/* SPDX-License-Identifier: MIT */
/*
 * The core as one object: its beginning and end, pointer queries, what the
 * device looks like from outside, and reset.
 *
 * Locks: core->pools, pool locks and core->order, each alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/internal.h"
#include "core/lease.h"
#include "core/vmm.h"

#define MAX_SLOTS 65536

static _Atomic uint64_t serials;

uint64_t ss_drive_begin(struct ss_core *core)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void ss_drive_end(struct ss_core *core, uint64_t t0)
{
	atomic_fetch_add_explicit(&core->driver_calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&core->driver_ns, ss_drive_begin(core) - t0,
				  memory_order_relaxed);
}

struct ss_core *ss_core_create(const struct ss_driver *drv, const struct ss_options *opt)
{
	struct ss_core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->drv = *drv;
	core->opt = *opt;
	core->serial = atomic_fetch_add(&serials, 1) + 1;
	core->recent_gen = core->serial << 32; /* no two cores have one in common */
	core->next_queue_id = 1;
	pthread_mutex_init(&core->order, NULL);
	pthread_mutex_init(&core->pools, NULL);
	pthread_mutex_init(&core->meta, NULL);
	core->slot_cap = MAX_SLOTS;
	core->slots = calloc(core->slot_cap, sizeof(*core->slots));
	if (!core->slots || !ss_table_init(&core->by_handle) || !ss_table_init(&core->events) ||
	    !ss_map_init(core)) {
		ss_table_finish(&core->by_handle);
		ss_table_finish(&core->events);
		ss_map_finish(core);
		free(core->slots);
		free(core);
		return NULL;
	}
	core->devices = drv->device_count(drv->ctx);
	if (core->devices > SS_MAX_DEVICES)
		core->devices = SS_MAX_DEVICES;
	if (opt->journal[0] && !(core->journal = ss_journal_open(opt->journal)))
		core->journal_error = errno;
	core->classic_odd = core->journal || opt->ipc_whole || opt->align_large;
	return core;
}

void ss_core_set_log(struct ss_core *core, FILE *log)
{
	core->log = log;
	ss_journal_set_log(core->journal, log);
}

int ss_core_journal_error(const struct ss_core *core)
{
	return core->journal_error;
}

static void pool_free(struct ss_core *core, struct ss_pool *pool)
{
	struct ss_queue_table *t = atomic_load(&pool->queues), *older;

	for (uint32_t i = 0; t && i < t->cap; i++)
		ss_queue_free(core, atomic_load(&t->q[i]));
	for (; t; t = older) {
		older = t->older;
		ss_host_free(core, t, sizeof(*t) + t->cap * sizeof(t->q[0]));
	}
	ss_queue_free(core, pool->done);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->mapped);
	ss_host_free(core, pool, sizeof(*pool));
}

void ss_core_destroy(struct ss_core *core)
{
	struct ss_pool *pool, *next;

	if (!core)
		return;
	HASH_CLEAR(hh, core->pool_by_handle);
	for (pool = core->pool_list; pool; pool = next) {
		next = pool->next;
		ss_pool_drop_memory(pool, true);
		pool_free(core, pool);
	}
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		for (pool = core->dev[dev].spare_pools; pool; pool = next) {
			next = pool->next;
			pool_free(core, pool);
		}
	for (uint32_t i = 0; i < core->slot_count; i++) {
		ss_fence_dropped(core, ss_fence_drop(core, core->slots[i]));
		ss_row_put(core->slots[i]->saw);
		ss_host_free(core, core->slots[i], sizeof(*core->slots[i]));
	}
	ss_table_finish(&core->by_handle);
	ss_event_finish_all(core);
	ss_journal_close(core->journal);
	ss_map_finish(core);
	pthread_mutex_destroy(&core->order);
	pthread_mutex_destroy(&core->pools);
	pthread_mutex_destroy(&core->meta);
	free(core->slots);
	free(core);
}

/* ---- pointer queries ---------------------------------------------------- */

bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *out)
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b = NULL;
	struct ss_pool *pool;

	if (!seg)
		return false;
	pool = seg->pool;
	pthread_mutex_lock(&pool->lock);
	ss_lease_freeze(pool, true);
	if (ss_map_segment(core, addr) == seg && seg->pool == pool)
		b = ss_block_last_start(core, seg, addr);
	if (b) {
		memset(out, 0, sizeof(*out));
		out->base = (void *)(uintptr_t)b->addr;
		out->size = b->request;
		out->segment = seg->native;
		out->segment_size = seg->native_size;
		out->id = b->id;
		out->device = pool->dev;
		out->backing = seg->backing;
		out->pool = pool;
		out->classic = b->classic;
		out->live = atomic_load_explicit(&b->state, memory_order_acquire) ==
			    SS_BLOCK_LIVE;
	}
	ss_lease_freeze(pool, false);
	pthread_mutex_unlock(&pool->lock);
	return b != NULL;
}

/* An address in memory of ours that is in no live block at first sight. Where hipMalloc's is
 * not handed out there is no allocation, and what is behind the bytes that were asked for is
 * none of them; what was freed to a pool stays with the runtime's, too, for a while. */
static bool stray(struct ss_core *core, const void *ptr, uint64_t *left)
{
	struct ss_block_info info;
	uint64_t at;

	if (!ss_lookup(core, ptr, &info) || !info.pool->classic)
		return false;
	at = (uintptr_t)ptr - (uintptr_t)info.base;
	*left = info.live && at < info.size ? info.size - at : 0;
	return true;
}

/* The live block that begins last before addr, or at it. It stays what it is, for it is the
 * caller's, and so does the mark of its start, so what is found without a lock is either that
 * block or does not hold addr. */
static struct ss_block *live_before(struct ss_core *core, struct ss_segment *seg, uint64_t addr)
{
	struct ss_block *b = seg ? ss_block_last_start(core, seg, addr) : NULL;

	return b && atomic_load_explicit(&b->state, memory_order_acquire) == SS_BLOCK_LIVE &&
	       __atomic_load_n(&b->seg, __ATOMIC_RELAXED) == seg ? b : NULL;
}

bool ss_bytes_left(struct ss_core *core, const void *ptr, uint64_t *left)
{
	uint64_t addr = (uintptr_t)ptr, size;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b = live_before(core, seg, addr);

	if (!seg)
		return false;
	if (!b)
		return stray(core, ptr, left);
	/* The runtime's own pools, too, give out more than they are asked for. */
	size = __atomic_load_n(b->classic ? &b->request : &b->size, __ATOMIC_RELAXED);
	if (addr - b->addr > size || ss_map_segment(core, addr) != seg)
		return stray(core, ptr, left);
	*left = size - (addr - b->addr);
	return true;
}

void ss_timeline_visits(struct ss_core *core, struct ss_timeline *tl, const void *ptr)
{
	uint64_t addr = (uintptr_t)ptr, bits = UINT64_MAX;
	struct ss_segment *seg = ptr ? ss_map_segment(core, addr) : NULL;

	if (ptr && !live_before(core, seg, addr))
		return;
	if (ptr)
		bits = 1ull << seg->pool->dev;
	bits &= ~(1ull << tl->dev);
	if (!(bits & ~atomic_load(&tl->visits)))
		return;
	/* Who marks goes twice through the timelines. And who finds the second set relies on
	 * the first. */
	pthread_mutex_lock(&core->order);
	atomic_fetch_or(&core->visited, bits);
	atomic_fetch_or(&tl->visits, bits);
	pthread_mutex_unlock(&core->order);
}

enum ss_status ss_where(struct ss_core *core, const void *ptr, int *dev)
{
	struct ss_segment *seg = ss_map_segment(core, (uintptr_t)ptr);
	struct ss_block *b = seg ? ss_block_at(core, seg, (uintptr_t)ptr) : NULL;
	struct ss_block_info info;

	if (b && atomic_load_explicit(&b->state, memory_order_acquire) == SS_BLOCK_LIVE) {
		*dev = seg->pool->dev;
		return SS_OK;
	}
	if (!seg || !ss_lookup(core, ptr, &info))
		return SS_ERR_FOREIGN;
	*dev = info.device;
	return info.live ? SS_OK : SS_ERR_INVALID;
}

bool ss_owns_range(struct ss_core *core, const void *ptr, size_t size)
{
	uint64_t addr = (uintptr_t)ptr, end = addr + (size ? size - 1 : 0);

	if (end < addr)
		end = UINT64_MAX;
	for (;;) {
		if (ss_map_segment(core, addr))
			return true;
		if (end - addr < SS_FRAME - addr % SS_FRAME)
			return false;
		addr += SS_FRAME - addr % SS_FRAME;
	}
}

/* ---- the device from outside -------------------------------------------- */

static void sum_idle(struct ss_pool *pool, void *arg)
{
	uint64_t reserved = atomic_load(&pool->reserved);
	uint64_t used = ss_pool_used(pool) + atomic_load(&pool->kept);

	*(uint64_t *)arg += reserved > used ? reserved - used : 0;
}

uint64_t ss_idle_bytes(struct ss_core *core, int dev)
{
	uint64_t idle = 0;

	ss_pools_each(core, dev, sum_idle, &idle);
	return idle;
}

void ss_mem_info(struct ss_core *core, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	uint64_t idle, left, limit, reserved;

	/* Programs size what they will need before they allocate. */
	if (core->opt.limit.set)
		(void)ss_pool_default(core, dev);
	idle = ss_idle_bytes(core, dev);
	limit = dev >= 0 && dev < SS_MAX_DEVICES ? core->dev[dev].limit : 0;
	left = *free_bytes + idle;
	if (left > *total_bytes)
		left = *total_bytes;
	if (limit && limit < *total_bytes) {
		reserved = atomic_load(&core->dev[dev].reserved);
		*total_bytes = limit;
		reserved -= reserved < idle ? reserved : idle;
		if (left > limit - (reserved < limit ? reserved : limit))
			left = limit - (reserved < limit ? reserved : limit);
	}
	*free_bytes = left;
}

/* ---- peers and reset ---------------------------------------------------- */

/* Pool lock held, but not during the driver's calls. Segments that come meanwhile see to
 * themselves (ss_slab_add). */
static enum ss_status open_segments(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	enum ss_status s = SS_OK;

	for (struct ss_segment *seg = pool->segments; seg && s == SS_OK; seg = seg->next) {
		seg->opening = true; /* it stays where it is, and so does what comes after it */
		pthread_mutex_unlock(&pool->lock);
		s = SS_DRIVE(core, core->drv.segment_access(core->drv.ctx, pool->dev, seg->backing,
							    seg->native, seg->native_size,
							    pool->peers));
		pthread_mutex_lock(&pool->lock);
		seg->opening = false;
	}
	return s;
}

enum ss_status ss_pool_set_access(struct ss_core *core, struct ss_pool *pool, uint64_t give,
				  uint64_t take)
{
	uint64_t own = 1ull << pool->dev, before, more;
	enum ss_status s = SS_OK;

	(void)core;
	if (!ss_vmm_claim(pool, true, NULL))
		return SS_ERR_FAILED;
	pthread_mutex_lock(&pool->lock);
	before = pool->peers;
	/* First the wish, so that memory that comes meanwhile has it. */
	pool->peers = (before & ~take) | give | own;
	more = pool->peers & ~before;
	if (more && !pool->vmm)
		s = open_segments(pool);
	pthread_mutex_unlock(&pool->lock);
	if (more && pool->vmm)
		s = ss_vmm_open(pool);
	if (s != SS_OK) {
		pthread_mutex_lock(&pool->lock);
		pool->peers = before;
		pthread_mutex_unlock(&pool->lock);
	}
	ss_vmm_unclaim(pool);
	return s;
}

enum ss_status ss_device_add_peers(struct ss_core *core, int dev, uint64_t peers)
{
	struct ss_pool *pool;
	enum ss_status s = SS_OK;

	atomic_fetch_or(&core->dev[dev].peers, peers); /* for pools to come */
	pool = ss_pool_classic(core, dev);
	if (!pool)
		return SS_ERR_NO_DEVICE;
	/* Unless it goes with a reset, and the next has it. */
	if (!ss_pool_enter(pool))
		return SS_OK;
	if (atomic_load(&core->dev[dev].classic) == pool)
		s = ss_pool_set_access(core, pool, peers, 0);
	if (atomic_load(&pool->dying))
		s = SS_OK;
	ss_pool_leave(pool);
	return s;
}

static void keeps(struct ss_pool *pool, void *arg)
{
	if (pool->vmm || atomic_load(&pool->reserved))
		*(uint64_t *)arg |= ss_pool_access(pool);
}

uint64_t ss_device_keeps(struct ss_core *core, int dev)
{
	uint64_t devices = 0, others = 0;

	if (dev < 0 || dev >= core->devices)
		return 0;
	ss_pools_each(core, dev, keeps, &devices);
	for (int other = 0; other < core->devices && !others; other++)
		if (other != dev)
			ss_pools_each(core, other, keeps, &others);
	return others ? devices | 1ull << dev : devices;
}

static void reset_pool(struct ss_pool *pool, void *arg)
{
	const bool *idle = arg;
	struct ss_core *core = pool->core;

	/* A thread that maps or gives access just now comes to its end first. */
	if (ss_vmm_claim(pool, true, NULL)) {
		ss_stats_ended(pool);
		ss_pool_drop_memory(pool, *idle && ss_pool_outlives(pool));
		ss_vmm_unclaim(pool);
	}
	pthread_mutex_lock(&core->pools);
	if (!atomic_load(&pool->dying))
		HASH_DEL(core->pool_by_handle, pool);
	/* It ends when it is left. */
	atomic_store(&pool->dying, true);
	pthread_mutex_unlock(&core->pools);
}

static void look_for_vmm(struct ss_pool *pool, void *arg)
{
	*(bool *)arg |= pool->backing == SS_BACKING_VMM && atomic_load(&pool->reserved);
}

bool ss_must_unmap(struct ss_core *core, int dev)
{
	bool any = false;

	if (dev < core->devices && core->dev[dev].info.unmap_at_exit)
		ss_pools_each(core, dev, look_for_vmm, &any);
	return any;
}

void ss_unmap(struct ss_core *core, int dev)
{
	ss_pools_each(core, dev, ss_vmm_leave, NULL);
}

void ss_device_reset(struct ss_core *core, int dev, bool idle)
{
	struct ss_device_state *d;

	if (dev < 0 || dev >= core->devices)
		return;
	d = &core->dev[dev];
	/* Its default pools are made anew at the next use. */
	pthread_mutex_lock(&core->pools);
	atomic_store(&d->def, NULL);
	atomic_store(&d->classic, NULL);
	atomic_store(&d->current, NULL);
	pthread_mutex_unlock(&core->pools);
	ss_pools_each(core, dev, reset_pool, &idle);

	for (uint32_t i = 0; i < atomic_load(&core->slot_count); i++) {
		struct ss_timeline *tl = core->slots[i];
		struct ss_pending *fences = NULL;
		bool here;

		/* A free slot may become a stream of another device at any time. */
		pthread_mutex_lock(&core->order);
		here = tl->dev == dev;
		if (here)
			fences = ss_fence_drop(core, tl);
		if (here && tl->alive) {
			if (tl->kind == SS_TL_NULL)
				__atomic_store_n(&d->null, NULL, __ATOMIC_RELEASE);
			ss_timeline_end(core, tl);
			ss_complete(core, tl, tl->last, NULL, true);
		}
		pthread_mutex_unlock(&core->order);
		ss_fence_dropped(core, fences);
		if (here)
			ss_fence_quiesce(tl);
	}
	atomic_store(&d->initial_done, false);
	ss_pressed_set(core, dev, false);
	atomic_store(&core->dev[dev].woken, false);
	atomic_store(&core->dev[dev].low, false);
	ss_recent_end(core);
}
