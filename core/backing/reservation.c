/* SPDX-License-Identifier: MIT */
/*
 * The addresses of a pool on virtual memory, and whose turn it is to change what is mapped
 * there. What is mapped is chunk.c's.
 *
 * Locks: pool->lock, dropped for the driver.
 */
#include <stdlib.h>

#include "core/vmm.h"

/* ---- turns -------------------------------------------------------------- */

/* Access that is given from the start of the reservation (V1) must find no gap,
 * and what two threads miss at once is often the same. A thread that waits here
 * would wait for the same streams inside a map of its own (B7), so nothing hangs
 * that would not hang without us. */
bool ss_vmm_claim(struct ss_pool *pool, bool wait, bool *waited)
{
	bool mine;

	pthread_mutex_lock(&pool->lock);
	/* The runtime may call back from inside a map; that can't wait. */
	if (pool->mapping && pthread_equal(pool->mapper, pthread_self()))
		wait = false;
	if (waited)
		*waited = wait && pool->mapping;
	while (wait && pool->mapping)
		pthread_cond_wait(&pool->mapped, &pool->lock);
	mine = !pool->mapping;
	if (mine) {
		pool->mapping = true;
		pool->mapper = pthread_self();
	}
	pthread_mutex_unlock(&pool->lock);
	return mine;
}

void ss_vmm_unclaim(struct ss_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->mapping = false;
	pthread_cond_broadcast(&pool->mapped);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- the reservation ---------------------------------------------------- */

#define ADDRESSES (1ull << 47) /* of a process */

/* Addresses for twice what the device has leave room for holes. But the program and the
 * runtime need some, too: many pools have to do with less, and get none of the second half. */
static enum ss_status reserve(struct ss_pool *pool, uint64_t *size, void **va)
{
	struct ss_core *core = pool->core;
	uint64_t once = ss_round(core->dev[pool->dev].info.total_bytes, SS_MAX_CHUNK);
	uint64_t taken = atomic_load(&core->addresses);
	enum ss_status s = SS_ERR_NOMEM;

	for (int times = taken + 2 * once <= ADDRESSES / 4 ? 2 : 1; times && s == SS_ERR_NOMEM; times--) {
		*size = (uint64_t)times * once;
		if (taken + *size <= ADDRESSES / 2)
			s = SS_DRIVE(core, core->drv.vmm_reserve(core->drv.ctx, pool->dev, *size,
								 va));
	}
	if (s == SS_OK)
		atomic_fetch_add(&core->addresses, *size);
	return s;
}

void ss_vmm_unreserve(struct ss_pool *pool, void *va, uint64_t size)
{
	struct ss_core *core = pool->core;

	core->drv.vmm_unreserve(core->drv.ctx, pool->dev, va, size);
	atomic_fetch_sub(&core->addresses, size);
}

enum ss_status ss_vmm_reserve(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	const struct ss_device_info *info = &core->dev[pool->dev].info;
	uint64_t size;
	struct ss_vmm *v = ss_host_alloc(core, sizeof(*v));
	enum ss_status s;
	void *va;

	if (!v)
		return SS_ERR_FAILED;
	if (!info->chunk_bytes) {
		ss_host_free(core, v, sizeof(*v));
		return SS_ERR_UNSUPPORTED;
	}
	v->unit = info->chunk_bytes;
	s = reserve(pool, &size, &va);
	if (s != SS_OK) {
		ss_host_free(core, v, sizeof(*v));
		return s;
	}
	v->frames = size / v->unit;
	v->frame = calloc(v->frames, sizeof(*v->frame));
	v->seg = v->frame && (uintptr_t)va % SS_FRAME == 0 ?
		 ss_segment_new(core, pool, (uintptr_t)va, size) : NULL;
	if (v->seg) {
		v->seg->backing = SS_BACKING_VMM;
		v->seg->native = va;
		v->seg->native_size = size;
		pthread_mutex_lock(&pool->lock);
		pool->vmm = v;
		ss_segment_link(pool, v->seg);
		ss_hole_place(pool, v->seg->first);
		pthread_mutex_unlock(&pool->lock);
		return SS_OK;
	}
	ss_vmm_unreserve(pool, va, size);
	free(v->frame);
	ss_host_free(core, v, sizeof(*v));
	return SS_ERR_FAILED;
}
