/* SPDX-License-Identifier: MIT */
/* Tells the hot path which pool of a device is current. Locks: pools->lock, held by the caller. */
#include "core/cache/fast_path.h"
#include "core/pool/pool_state.h"

void ss_device_current_changed(struct ss_core *core, int dev)
{
	struct ss_device_pools *d = ss_device_pools(core, dev);
	struct ss_pool *pool = atomic_load(&d->current), *classic = atomic_load(&d->classic);

	/* With a maximum there is more to ask. */
	atomic_store(&core->fast->current[dev],
		     pool && !atomic_load(&pool->mem.max_bytes) ? &pool->caches : NULL);
	atomic_store(&core->fast->frees[dev], pool && pool->is_default);
	atomic_store(&core->fast->classic[dev], classic ? &classic->caches : NULL);
	ss_recent_end(core);
}
