/* SPDX-License-Identifier: MIT */
/*
 * Makes and destroys the core, the pool manager of one process: its layers are made from base/ up
 * to pool/, and destroyed in the reverse order.
 */
#include <stdlib.h>

#include "core/shelf/fast_path.h"
#include "core/pool/release.h"

static _Atomic uint64_t serials;

static bool pools_init(struct ss_core *core)
{
	core->pools = ss_host_alloc(core, sizeof(*core->pools));
	if (!core->pools)
		return false;
	pthread_mutex_init(&core->pools->lock, NULL);
	ss_waits_init(core);
	ss_decay_watch(core, NULL, NULL);
	return ss_table_init(&core->pools->by_handle);
}

static void pools_finish(struct ss_core *core)
{
	if (!core->pools)
		return;
	ss_table_finish(&core->pools->by_handle);
	pthread_mutex_destroy(&core->pools->lock);
	ss_host_free(core, core->pools, sizeof(*core->pools));
}

static void finish(struct ss_core *core)
{
	pools_finish(core);
	ss_fast_path_finish(core);
	ss_devices_finish(core);
	ss_order_finish(core);
	ss_map_finish(core);
	free(core);
}

struct ss_core *ss_core_create(const struct ss_driver *drv, const struct ss_options *opt)
{
	struct ss_core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->drv = *drv;
	core->opt = *opt;
	/* Only a tool that looks at it has use for it. */
	core->opt.check_front = opt->check & SS_CHECK_BOUNDS ? opt->check_front : 0;
	core->recorded = ss_trace_on();
	core->serial = atomic_fetch_add(&serials, 1) + 1;
	core->recent_gen = core->serial << 32; /* no two cores have one in common */
	core->devices = drv->device_count(drv->ctx);
	if (core->devices > SS_MAX_DEVICES)
		core->devices = SS_MAX_DEVICES;
	if (!ss_map_init(core) || !ss_order_init(core, ss_decay_synchronized) ||
	    !ss_devices_init(core) || !ss_fast_path_init(core) || !pools_init(core)) {
		finish(core);
		return NULL;
	}
	core->fast->slow = opt->align_large || core->recorded || opt->ipc_whole ||
			   core->opt.check_front;
	return core;
}

void ss_core_watch(struct ss_core *core, const struct ss_watch *watch)
{
	core->watch = *watch;
	core->fast->slow |= watch->block != NULL;
}

void ss_core_destroy(struct ss_core *core)
{
	struct ss_pool *pool, *next;

	if (!core)
		return;
	for (pool = core->pools->list; pool; pool = next) {
		next = pool->next;
		ss_pool_drop_memory(pool, SS_DROP_ALL);
		ss_pool_free(pool);
	}
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		for (pool = ss_device_pools(core, dev)->spare; pool; pool = next) {
			next = pool->next;
			ss_pool_free(pool);
		}
	finish(core);
}
