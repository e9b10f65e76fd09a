/* SPDX-License-Identifier: MIT */
/*
 * The birth of a pool, and the end of its host memory.
 *
 * Locks: pools->lock, held by the caller.
 */
#include <string.h>

#include "core/pool/pool_state.h"

/* hipMalloc memory must stay exportable with hipIpcGetMemHandle and visible to RDMA
 * registration, so it never comes from virtual memory. */
static enum ss_backing backing_for(struct ss_core *core, bool classic)
{
	enum ss_backing want = (enum ss_backing)core->opt.backing;

	/* What libraries open from outside is asked for with IPC_WHOLE. HIP exports no memory of
	 * HSA's. */
	return classic && (want != SS_BACKING_HSA || core->opt.ipc_whole) ? SS_BACKING_HIP : want;
}

/* A pool that is born again counts from nothing. */
static void reset_counts(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);

	SS_CACHES_ALL(q, &pool->caches) {
		ss_bias_visit(&q->lock);
		q->id = ss_cache_new_ids(core);
		q->hits = q->frees = 0;
		ss_bias_unlock(&q->lock);
		q->fences = q->frees_fenced = 0;
	}
	pool->ids = 0;
	pool->id_base = ss_cache_new_ids(core);
	memset(&pool->st, 0, sizeof(pool->st));
	pool->counted = false;
}

void ss_pool_set_aside(struct ss_pool *pool)
{
	struct ss_device_pools *d = ss_device_pools(ss_core_of(pool), pool->mem.dev);

	pool->next = d->spare;
	d->spare = pool;
}

static void gather(struct ss_memory *m)
{
	ss_reclaim_all(m->pool);
}

static struct ss_pool *pool_alloc(struct ss_core *core)
{
	struct ss_pool *pool = ss_host_alloc(core, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->users = SS_POOL_GONE;
	if (!ss_caches_init(&pool->caches, core, &pool->mem)) {
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
	ss_memory_init(&pool->mem, core, pool, dev, backing_for(core, classic));
	pool->mem.gather = gather;
	if (classic)
		atomic_fetch_or(&pool->mem.peers, atomic_load(&d->peers));
	pool->mem.handle = (void *)(uintptr_t)(SS_HANDLE_TAG | ++core->pools->next_handle);
	pool->classic = classic;
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
	ss_used_reset(&pool->caches, true);
	pool->kept = 0;
	reset_counts(pool);
	ss_table_add(&core->pools->by_handle, &pool->link, pool->mem.handle);
	/* Before anybody uses it. */
	ss_trace_pool_create(pool->mem.handle, dev, ss_pool_kind(pool, kind));
	pool->next = core->pools->list;
	core->pools->list = pool;
	atomic_fetch_and(&pool->users, ~SS_POOL_GONE);
	return pool;
}

void ss_pool_free(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);

	ss_caches_finish(&pool->caches);
	ss_memory_finish(&pool->mem);
	ss_host_free(core, pool, sizeof(*pool));
}
