/* SPDX-License-Identifier: MIT */
/*
 * The life of a pool: its birth, its users, and its end.
 *
 * A destroyed pool ends when none of it is live, reserved or in use. A thread takes memory from the
 * device, or releases it, with no lock held. If the pool ended meanwhile, the thread would find
 * another pool in its place. So every thread that does more to a pool than take or free a block is
 * counted in pool->users, and the last user of a dying pool ends it.
 *
 * Records of pools are recycled on the same device and never freed, so a late reader still reads a
 * pool. A hit takes no reference: it needs a block, and a pool with a block has reserved memory and
 * does not end.
 *
 * Locks: pools->lock. No pool lock inside.
 */
#include <string.h>

#include "core/pool/reclaim.h"
#include "core/pool/release.h"

/* ---- birth. pools->lock held. -------------------------------------------------- */

/* hipMalloc memory must stay exportable with hipIpcGetMemHandle and visible to RDMA
 * registration, so it comes from virtual memory only if the user gives that up for sleep. */
enum ss_backing ss_classic_backing(const struct ss_options *opt)
{
	bool sleeps = opt->sleep == SS_SLEEP_ALL && opt->backing == SS_BACKING_VMM;

	/* With IPC_WHOLE, libraries open such memory from outside, and HIP does not export HSA's
	 * memory. */
	if ((sleeps || opt->backing == SS_BACKING_HSA) && !opt->ipc_whole)
		return (enum ss_backing)opt->backing;
	return SS_BACKING_HIP;
}

/* A recycled pool counts from zero. */
static void reset_counts(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);

	SS_SHELVES_ALL(q, &pool->shelves) {
		ss_bias_visit(&q->lock);
		q->id = ss_shelf_new_ids(core);
		q->hits = q->frees = 0;
		ss_bias_unlock(&q->lock);
		q->frees_fenced = 0;
	}
	pool->ids = 0;
	pool->id_base = ss_shelf_new_ids(core);
	memset(&pool->st, 0, sizeof(pool->st));
	pool->counted = false;
}

static void gather(struct ss_memory *m)
{
	ss_reclaim_all(m->pool);
}

/* A hipMalloc that has to map must not wait for streams, since the real one does not. So nobody
 * gives the devices work from the question until the memory is mapped. */
static void map_end(struct ss_memory *m)
{
	if (m->core->watch.quiet_end)
		m->core->watch.quiet_end();
}

static bool map_begin(struct ss_memory *m)
{
	if (m->core->watch.quiet_begin && !m->core->watch.quiet_begin())
		return false;
	if (ss_joined_idle(m->core))
		return true;
	map_end(m);
	return false;
}

static void set_callbacks(struct ss_pool *pool)
{
	struct ss_memory *m = &pool->mem;
	bool waits = pool->classic && m->core->info[m->dev].map_waits;

	m->gather = gather;
	m->wake_null = ss_null_wake;
	m->map_begin = waits ? map_begin : NULL;
	m->map_end = waits ? map_end : NULL;
}

static struct ss_pool *pool_alloc(struct ss_core *core)
{
	struct ss_pool *pool = ss_host_alloc(core, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->users = SS_POOL_GONE;
	if (!ss_shelves_init(&pool->shelves, core, &pool->mem)) {
		ss_host_free(core, pool, sizeof(*pool));
		return NULL;
	}
	return pool;
}

struct ss_pool *ss_pool_new(struct ss_core *core, int dev, bool classic, bool is_default)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_pool *pool = d->spare;
	char kind[32];

	if (pool)
		d->spare = pool->next;
	else
		pool = pool_alloc(core);
	if (!pool)
		return NULL;
	ss_memory_init(&pool->mem, core, pool, dev,
		       classic ? ss_classic_backing(&core->opt) :
				 (enum ss_backing)core->opt.backing);
	if (classic)
		atomic_fetch_or(&pool->mem.peers, atomic_load(&d->peers));
	pool->mem.handle = (void *)(uintptr_t)(SS_HANDLE_TAG | ++core->pools->next_handle);
	pool->classic = classic;
	set_callbacks(pool);
	pool->is_default = is_default;
	pool->trim_wanted = false;
	pool->dying = false;
	pool->shared = false;
	pool->readers = 0;
	pool->follow = pool->opportunistic = pool->internal = true;
	pool->threshold_set = core->opt.threshold[dev].set;
	pool->threshold = ss_amount_bytes(&core->opt.threshold[dev], core->info[dev].total_bytes);
	if (pool->threshold_set || !core->opt.decay_ms)
		ss_decay_each_sync(core, dev);
	ss_hits_end(core);
	ss_used_reset(&pool->shelves, true);
	pool->kept = 0;
	reset_counts(pool);
	ss_table_add(&core->pools->by_handle, &pool->link, pool->mem.handle);
	/* No thread can use the pool yet. */
	ss_trace_pool_create(pool->mem.handle, dev, ss_pool_kind(pool, kind));
	pool->next = core->pools->list;
	core->pools->list = pool;
	atomic_fetch_and(&pool->users, ~SS_POOL_GONE);
	return pool;
}

/* ---- use and end ----------------------------------------------------------------- */

bool ss_pool_ref(struct ss_pool *pool)
{
	if (!(atomic_fetch_add(&pool->users, 1) & SS_POOL_GONE))
		return true;
	atomic_fetch_sub(&pool->users, 1);
	return false;
}

/* Ends a dying pool that has no user, no live block and no reserved memory. */
static void end(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_device_pools *d = ss_device_pools(core, pool->mem.dev);
	struct ss_pool **at;
	uint32_t nobody = 0;
	bool gone;

	pthread_mutex_lock(&core->pools->lock);
	/* A thread that enters without the lock looks for a current pool, which is never a dying
	 * one. */
	gone = atomic_load(&pool->dying) &&
	       atomic_compare_exchange_strong(&pool->users, &nobody, SS_POOL_GONE);
	if (gone && (ss_used(&pool->shelves) || ss_reserved(pool))) {
		atomic_fetch_and(&pool->users, ~SS_POOL_GONE);
		gone = false;
	}
	for (at = &core->pools->list; gone && *at != pool; at = &(*at)->next)
		;
	if (gone)
		*at = pool->next;
	pthread_mutex_unlock(&core->pools->lock);
	if (!gone)
		return;
	ss_stats_ended(pool);
	/* The addresses are released, too, before the pool may be recycled. */
	ss_pool_drop_memory(pool, SS_DROP_ALL);
	ss_trace_pool_destroy(pool->mem.handle, pool->mem.dev);
	pthread_mutex_lock(&core->pools->lock);
	pool->next = d->spare;
	d->spare = pool;
	pthread_mutex_unlock(&core->pools->lock);
}

void ss_pool_reap(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	bool alive;

	if (!atomic_load(&pool->dying))
		return;
	/* Two last frees at once, each counted in a shelf of its own: one of the two sees both. */
	atomic_thread_fence(memory_order_seq_cst);
	if (ss_used(&pool->shelves))
		return;
	pthread_mutex_lock(&core->pools->lock);
	alive = atomic_load(&pool->dying) && ss_pool_ref(pool);
	pthread_mutex_unlock(&core->pools->lock);
	if (!alive)
		return;
	if (ss_may_release(pool, SS_IDLE_UNASKED))
		ss_pool_release(pool, 0, UINT64_MAX, SS_TRACE_TRIM_RESET);
	if (atomic_fetch_sub(&pool->users, 1) == 1)
		end(pool);
}

void ss_pool_unref(struct ss_pool *pool)
{
	if (pool && atomic_fetch_sub(&pool->users, 1) == 1)
		ss_pool_reap(pool);
}

bool ss_pool_is_handle(const void *handle)
{
	return ((uintptr_t)handle & 0xffff000000000000ull) == SS_HANDLE_TAG;
}

static struct ss_pool *find(struct ss_core *core, void *handle, bool enter)
{
	struct ss_pool *pool;
	struct ss_link *l;

	if (!ss_pool_is_handle(handle))
		return NULL;
	pthread_mutex_lock(&core->pools->lock);
	l = ss_table_find(&core->pools->by_handle, handle);
	pool = l ? ss_container_of(l, struct ss_pool, link) : NULL;
	if (pool && enter)
		ss_pool_ref(pool);
	pthread_mutex_unlock(&core->pools->lock);
	return pool;
}

struct ss_pool *ss_pool_from_handle(struct ss_core *core, void *handle)
{
	return find(core, handle, false);
}

struct ss_pool *ss_pool_ref_handle(struct ss_core *core, void *handle)
{
	return find(core, handle, true);
}

struct ss_pool *ss_pool_next(struct ss_core *core, int dev, struct ss_pool *last)
{
	struct ss_pool *pool;

	pthread_mutex_lock(&core->pools->lock);
	pool = last ? last->next : core->pools->list;
	while (pool && ((dev >= 0 && pool->mem.dev != dev) || !ss_pool_ref(pool)))
		pool = pool->next;
	pthread_mutex_unlock(&core->pools->lock);
	ss_pool_unref(last);
	return pool;
}

void ss_pool_free(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);

	ss_shelves_finish(&pool->shelves);
	ss_memory_finish(&pool->mem);
	ss_host_free(core, pool, sizeof(*pool));
}
