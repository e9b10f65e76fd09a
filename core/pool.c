/* SPDX-License-Identifier: MIT */
/*
 * Pools as objects: making and destroying them, attributes, trimming.
 *
 * A pool's handle is a number that is never used twice, so a dead handle is
 * known as one. How a pool ends is in lives.c.
 *
 * Locks: core->pools for the lists, then one pool->lock at a time.
 */
#include <stdlib.h>

#include "core/grow.h"
#include "core/lease.h"

#define HANDLE_TAG 0x5330000000000000ull /* no address: bits 48..63 are not canonical */

/* ---- making ------------------------------------------------------------- */

static enum ss_backing backing_for(struct ss_core *core, int dev, bool classic)
{
	enum ss_backing want = (enum ss_backing)core->opt.backing;

	if (want == SS_BACKING_AUTO && !classic)
		want = core->dev[dev].info.best;
	/* hipMalloc memory must stay exportable with hipIpcGetMemHandle and
	 * visible to RDMA registration. */
	if (want == SS_BACKING_AUTO || (want == SS_BACKING_VMM && classic))
		return SS_BACKING_HIP;
	/* Asked for, and not to be had on this device. */
	if ((want == SS_BACKING_VMM && !core->dev[dev].info.chunk_bytes) ||
	    (want == SS_BACKING_HSA && core->dev[dev].info.no_hsa))
		return SS_BACKING_HIP;
	return want;
}

/* A pool that is born again counts from nothing. */
static void counts_reset(struct ss_pool *pool)
{
	for (struct ss_queue *q = pool->done; q; q = ss_queue_after(pool, q)) {
		ss_bias_visit(&q->lock);
		q->id = atomic_fetch_add(&pool->core->next_queue_id, 1) << 40;
		q->hits = q->frees = 0;
		ss_bias_unlock(&q->lock);
		q->hits_counted = q->fences = q->frees_fenced = 0;
		q->lease_in = q->lease_wait = 0;
		memset(&q->demand, 0, sizeof(q->demand));
	}
	pool->ids = 0;
	pool->id_base = atomic_fetch_add(&pool->core->next_queue_id, 1) << 40;
	memset(&pool->st, 0, sizeof(pool->st));
	memset(&pool->spent, 0, sizeof(pool->spent));
	memset(&pool->peak, 0, sizeof(pool->peak));
	memset(&pool->turns, 0, sizeof(pool->turns));
	pool->waited = 0;
	pool->crossed = 0;
	pool->counted = false;
}

/* For the next birth. core->pools held. */
static void set_aside(struct ss_pool *pool)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];

	pool->next = d->spare_pools;
	d->spare_pools = pool;
}

/* core->pools held. */
static struct ss_pool *pool_new(struct ss_core *core, int dev, bool classic, bool is_default)
{
	struct ss_pool *pool = core->dev[dev].spare_pools;
	uint64_t total = core->dev[dev].info.total_bytes;

	if (pool) {
		core->dev[dev].spare_pools = pool->next;
	} else {
		pool = ss_host_alloc(core, sizeof(*pool));
		if (!pool)
			return NULL;
		pthread_mutex_init(&pool->lock, NULL);
		pthread_cond_init(&pool->mapped, NULL);
		pool->core = core;
		pool->users = SS_POOL_GONE;
		pool->done = ss_queue_new(pool, NULL);
		if (!pool->done) {
			ss_host_free(core, pool, sizeof(*pool));
			return NULL;
		}
	}
	pool->handle = HANDLE_TAG | ++core->next_handle;
	pool->dev = dev;
	pool->classic = classic;
	pool->is_default = is_default;
	pool->trim_wanted = false; /* of an earlier life */
	pool->dying = false;
	pool->shared = false;
	pool->backing = backing_for(core, dev, classic);
	pool->max_bytes = 0;
	pool->peers = 1ull << dev | (classic ? atomic_load(&core->dev[dev].peers) : 0);
	pool->readers = 0;
	pool->follow = pool->opportunistic = pool->internal = true;
	pool->threshold_set = core->opt.threshold[dev].set;
	pool->threshold = ss_amount_bytes(&core->opt.threshold[dev], total);
	if (pool->threshold_set || !core->opt.decay_ms)
		ss_strict(core, dev);
	pool->reserved = pool->reserved_high = 0;
	pool->counter = 0;
	ss_recent_end(core);
	ss_pool_used_reset(pool, true);
	pool->kept = 0;
	counts_reset(pool);
	HASH_ADD(hh, core->pool_by_handle, handle, sizeof(pool->handle), pool);
	if (!SS_HASH_HAS(pool)) {
		set_aside(pool);
		return NULL;
	}
	pool->next = core->pool_list;
	core->pool_list = pool;
	atomic_fetch_and(&pool->users, ~SS_POOL_GONE);
	return pool;
}

/* The pool that was made last, which nobody has seen yet. core->pools held since. */
static void pool_unmake(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;

	atomic_fetch_or(&pool->users, SS_POOL_GONE);
	core->pool_list = pool->next;
	HASH_DEL(core->pool_by_handle, pool);
	set_aside(pool);
}

/* First use of a device: ask the driver (no lock held), then make its pools. */
void ss_device_init(struct ss_core *core, int dev)
{
	struct ss_device_state *d = &core->dev[dev];
	struct ss_device_info info = {0};
	struct ss_pool *def, *classic;

	if (core->drv.device_info(core->drv.ctx, dev, &info) != SS_OK)
		return;
	pthread_mutex_lock(&core->pools);
	if (!d->known) {
		d->info = info;
		d->limit = ss_amount_bytes(&core->opt.limit, info.total_bytes);
		d->wide_now = 1;
		if (!core->drv.real_time || !core->opt.decay_ms)
			d->hurry = SS_HURRY_CLOCK;
		d->known = true;
	}
	if (!atomic_load(&d->def)) {
		classic = pool_new(core, dev, true, true);
		def = classic ? pool_new(core, dev, false, true) : NULL;
		if (classic && !def)
			pool_unmake(classic);
		if (def) {
			atomic_store(&d->classic, classic);
			atomic_store(&d->current, def);
			atomic_store_explicit(&d->def, def, memory_order_release);
		}
	}
	pthread_mutex_unlock(&core->pools);
}

static struct ss_pool *device_pool(struct ss_core *core, int dev, size_t which)
{
	_Atomic(struct ss_pool *) *at;
	struct ss_pool *pool;

	if (dev < 0 || dev >= core->devices)
		return NULL;
	at = (void *)((char *)&core->dev[dev] + which);
	pool = atomic_load_explicit(at, memory_order_acquire);
	if (__builtin_expect(!pool, 0)) {
		ss_device_init(core, dev);
		pool = atomic_load_explicit(at, memory_order_acquire);
	}
	return pool;
}

struct ss_pool *ss_pool_default(struct ss_core *core, int dev)
{
	return device_pool(core, dev, offsetof(struct ss_device_state, def));
}

struct ss_pool *ss_pool_classic(struct ss_core *core, int dev)
{
	return device_pool(core, dev, offsetof(struct ss_device_state, classic));
}

struct ss_pool *ss_pool_current(struct ss_core *core, int dev)
{
	return device_pool(core, dev, offsetof(struct ss_device_state, current));
}

enum ss_status ss_pool_set_current(struct ss_core *core, int dev, struct ss_pool *pool)
{
	enum ss_status s = SS_OK;

	if (!ss_pool_default(core, dev) || !pool)
		return SS_ERR_INVALID;
	/* No pool that is being destroyed becomes current. */
	pthread_mutex_lock(&core->pools);
	if (atomic_load(&pool->dying))
		s = SS_ERR_INVALID;
	else if (pool->dev != dev)
		s = SS_ERR_DEVICE;
	else
		atomic_store(&core->dev[dev].current, pool);
	pthread_mutex_unlock(&core->pools);
	ss_recent_end(core);
	return s;
}

enum ss_status ss_pool_create(struct ss_core *core, int dev, uint64_t max_bytes,
			      struct ss_pool **out)
{
	struct ss_pool *pool;

	if (!ss_pool_default(core, dev))
		return SS_ERR_INVALID;
	pthread_mutex_lock(&core->pools);
	pool = pool_new(core, dev, false, false);
	pthread_mutex_unlock(&core->pools);
	if (!pool)
		return SS_ERR_NOMEM;
	/* Blocks are whole grains; and what is more than any device has is no cap. */
	pool->max_bytes = max_bytes < 1ull << 62 ? ss_round(max_bytes, SS_GRAIN) : 0;
	*out = pool;
	return SS_OK;
}

void ss_pool_share(struct ss_pool *pool)
{
	/* The only memory that has handles. */
	pool->backing = SS_BACKING_HIP;
	pool->shared = true;
}

bool ss_pool_shared(const struct ss_pool *pool)
{
	return pool->shared;
}

void *ss_pool_handle(const struct ss_pool *pool)
{
	return (void *)(uintptr_t)pool->handle;
}

bool ss_pool_is_handle(const void *handle)
{
	return ((uintptr_t)handle & 0xffff000000000000ull) == HANDLE_TAG;
}

int ss_pool_device(const struct ss_pool *pool)
{
	return pool->dev;
}

/* ---- attributes --------------------------------------------------------- */

enum ss_status ss_pool_set_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t value)
{
	switch (attr) {
	case SS_ATTR_REUSE_FOLLOW_EVENTS:
		pool->follow = value != 0;
		return SS_OK;
	case SS_ATTR_REUSE_OPPORTUNISTIC:
		pool->opportunistic = value != 0;
		return SS_OK;
	case SS_ATTR_REUSE_INTERNAL:
		pool->internal = value != 0;
		return SS_OK;
	case SS_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		pool->threshold_set = true;
		ss_strict(core, pool->dev);
		return SS_OK;
	case SS_ATTR_RESERVED_HIGH:
	case SS_ATTR_USED_HIGH:
		if (value)
			return SS_ERR_INVALID;
		if (attr == SS_ATTR_USED_HIGH)
			ss_pool_used_reset(pool, false);
		else
			pool->reserved_high = atomic_load(&pool->reserved);
		return SS_OK;
	default:
		return SS_ERR_INVALID;
	}
}

enum ss_status ss_pool_get_attr(struct ss_core *core, struct ss_pool *pool, enum ss_attr attr,
				uint64_t *value)
{
	switch (attr) {
	case SS_ATTR_REUSE_FOLLOW_EVENTS: *value = pool->follow; break;
	case SS_ATTR_REUSE_OPPORTUNISTIC: *value = pool->opportunistic; break;
	case SS_ATTR_REUSE_INTERNAL: *value = pool->internal; break;
	case SS_ATTR_RELEASE_THRESHOLD: *value = pool->threshold; break;
	case SS_ATTR_RESERVED_CURRENT: *value = pool->reserved; break;
	case SS_ATTR_RESERVED_HIGH: *value = pool->reserved_high; break;
	case SS_ATTR_USED_CURRENT: *value = ss_pool_used(pool); break;
	case SS_ATTR_USED_HIGH: *value = ss_pool_used_high(pool); break;
	default: return SS_ERR_INVALID;
	}
	return SS_OK;
}

uint64_t ss_pool_access(const struct ss_pool *pool)
{
	return pool->peers;
}

void ss_pool_set_readers(struct ss_pool *pool, uint64_t readers, uint64_t others)
{
	atomic_fetch_or(&pool->readers, readers);
	atomic_fetch_and(&pool->readers, ~others);
}

uint64_t ss_pool_readers(const struct ss_pool *pool)
{
	return atomic_load(&pool->readers);
}

/* ---- giving back -------------------------------------------------------- */

/* Is there anything to give back, and would nobody have to wait for it? */
static bool trims_now(struct ss_core *core, struct ss_pool *pool, uint64_t keep)
{
	struct ss_timeline *busy = NULL;
	bool any;

	if (!ss_release_waits(pool))
		return true;
	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool);
	any = (pool->clean.bytes >= SS_FRAME || pool->unfreed) && atomic_load(&pool->reserved) > keep;
	pthread_mutex_unlock(&pool->lock);
	/* A query may ask a null stream that a fence would make join the blocking ones. */
	return any && (ss_device_idle(core, pool->dev, false) ||
		       ss_device_at_end(core, pool->dev, &busy));
}

/* A trim means what is idle when it is asked for. Where the threshold would not give back
 * the rest at the next synchronization anyway, memory that the device has not done with
 * is none of it. Which memory that is, only the streams know that were asked; while none is
 * known to be busy, all of it may be idle. */
static uint64_t trim_leaves(struct ss_core *core, struct ss_pool *pool, uint64_t keep)
{
	uint64_t reserved, idle;

	if (!atomic_load(&pool->threshold_set) || !ss_device_busy(core, pool->dev))
		return keep;
	pthread_mutex_lock(&pool->lock);
	ss_settle(pool);
	reserved = atomic_load(&pool->reserved);
	idle = pool->clean.bytes;
	pthread_mutex_unlock(&pool->lock);
	return reserved > idle && reserved - idle > keep ? reserved - idle : keep;
}

enum ss_status ss_pool_trim(struct ss_core *core, struct ss_pool *pool, uint64_t keep)
{
	pthread_mutex_lock(&pool->lock);
	pool->st.trims++;
	pthread_mutex_unlock(&pool->lock);
	ss_fence_poll(core, NULL, -1);
	if (trims_now(core, pool, keep)) {
		ss_release(pool, keep, UINT64_MAX);
		return SS_OK;
	}
	/* Giving back would wait for the device: remembered as a threshold for
	 * the next call that waits anyway. */
	keep = trim_leaves(core, pool, keep);
	pthread_mutex_lock(&pool->lock);
	/* What is allocated later is not meant. Another that is remembered still is done, too. */
	if (atomic_load(&pool->reserved) > keep) {
		if (!pool->trim_wanted || pool->trim_keep > keep)
			pool->trim_keep = keep;
		pool->trim_wanted = true;
	}
	pthread_mutex_unlock(&pool->lock);
	ss_strict(core, pool->dev);
	return SS_OK;
}

static void left_over(struct ss_pool *pool, void *arg)
{
	*(bool *)arg |= atomic_load(&pool->dying) && !ss_pool_used(pool) &&
			atomic_load(&pool->reserved);
}

static void let_loose(struct ss_pool *pool, void *arg)
{
	(void)arg;
	if (atomic_load(&pool->dying) && !ss_pool_used(pool))
		ss_release(pool, 0, UINT64_MAX);
}

/* What the program may count on: with a pool its memory goes, if nobody has to wait for
 * that. So the device is asked, as for TrimTo; and what others left that were destroyed
 * while it was at work goes, too. */
static void give_up(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	bool any = false;

	ss_fence_poll(core, NULL, -1);
	if (!ss_release_waits(pool))
		ss_release(pool, 0, UINT64_MAX);
	ss_pools_each(core, pool->dev, left_over, &any);
	if (any && ss_device_idle(core, pool->dev, false))
		ss_pools_each(core, pool->dev, let_loose, NULL);
}

enum ss_status ss_pool_destroy(struct ss_core *core, struct ss_pool *pool)
{
	struct ss_pool *expected = pool;

	pthread_mutex_lock(&core->pools);
	if (pool->is_default || atomic_load(&pool->dying)) {
		pthread_mutex_unlock(&core->pools);
		return SS_ERR_INVALID;
	}
	HASH_DEL(core->pool_by_handle, pool);
	atomic_compare_exchange_strong(&core->dev[pool->dev].current, &expected,
				       atomic_load(&core->dev[pool->dev].def));
	ss_recent_end(core);
	atomic_fetch_add(&pool->users, 1);
	atomic_store_explicit(&pool->dying, true, memory_order_release);
	pthread_mutex_unlock(&core->pools);
	ss_strict(core, pool->dev);
	give_up(pool);
	ss_pool_leave(pool);
	return SS_OK;
}

/* What is live goes with the device. Pool lock held. */
static void journal_dropped(struct ss_pool *pool)
{
	for (struct ss_segment *seg = pool->segments; seg; seg = seg->next)
		for (struct ss_block *b = seg->first; b; b = b->next)
			if (atomic_load(&b->state) == SS_BLOCK_LIVE)
				ss_journal_free(pool->core->journal, (void *)(uintptr_t)b->addr,
						b->request, NULL);
}

void ss_pool_drop_memory(struct ss_pool *pool, bool give_back)
{
	struct ss_core *core = pool->core;
	struct ss_segment *seg;
	struct ss_epoch *e;

	ss_giving(pool);
	pthread_mutex_lock(&pool->lock);
	ss_lease_end_all(pool);
	if (core->journal)
		journal_dropped(pool);
	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q)) {
		ss_queue_clear(q);
		memset(&q->own, 0, sizeof(q->own));
	}
	ss_queue_clear(pool->done);
	memset(&pool->clean, 0, sizeof(pool->clean));
	pool->idle_bytes = 0;
	pool->unmarked = NULL;
	while ((e = pool->epochs)) {
		pool->epochs = e->next;
		ss_patience_completed(pool, e);
		ss_host_free(core, e, sizeof(*e) + e->count * sizeof(e->mark[0]));
	}
	pthread_mutex_unlock(&pool->lock);
	ss_vmm_drop(pool, give_back);
	ss_unfreed_drop(pool, give_back);
	pthread_mutex_lock(&pool->lock);
	while ((seg = pool->segments)) {
		void *native = seg->native;
		uint64_t size = seg->native_size;

		ss_segment_unlink(pool, seg);
		ss_segment_forget(core, seg);
		if (!give_back)
			continue;
		pthread_mutex_unlock(&pool->lock);
		core->drv.segment_free(core->drv.ctx, pool->dev, pool->backing, native, size);
		pthread_mutex_lock(&pool->lock);
	}
	atomic_fetch_sub(&core->dev[pool->dev].reserved, atomic_load(&pool->reserved));
	ss_cap_give(pool, atomic_load(&pool->reserved));
	pool->reserved = 0;
	ss_pool_used_reset(pool, true);
	pool->kept = 0;
	pthread_mutex_unlock(&pool->lock);
	ss_gave(pool, 1);
}
