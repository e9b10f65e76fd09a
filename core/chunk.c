/* SPDX-License-Identifier: MIT */
/*
 * The reservation of a pool on virtual memory and the life of its chunks: made,
 * mapped, opened to devices, unmapped, given back. Which chunk goes where is
 * decided in vmm.c.
 *
 * Locks: pool->lock, dropped for the driver.
 */
#include <stdlib.h>

#include "core/vmm.h"

/* ---- the reservation ---------------------------------------------------- */

enum ss_status ss_vmm_reserve(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	const struct ss_device_info *info = &core->dev[pool->dev].info;
	uint64_t size = ss_round(2 * info->total_bytes, SS_MAX_CHUNK);
	struct ss_vmm *v = ss_host_alloc(core, sizeof(*v));
	enum ss_status s;
	void *va;

	if (!v)
		return SS_ERR_FAILED;
	if (!info->chunk_bytes) {
		ss_host_free(core, v, sizeof(*v));
		return SS_ERR_UNSUPPORTED;
	}
	v->unit = ss_round(info->chunk_bytes, SS_FRAME);
	s = SS_DRIVE(core, core->drv.vmm_reserve(core->drv.ctx, pool->dev, size, &va));
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
		v->seg->prev = v->seg->next = NULL;
		pthread_mutex_lock(&pool->lock);
		if (!pool->vmm) {
			pool->vmm = v;
			pool->segments = v->seg;
			pool->segment_count = 1;
			ss_hole_place(pool, v->seg->first);
			pthread_mutex_unlock(&pool->lock);
			return SS_OK;
		}
		pthread_mutex_unlock(&pool->lock); /* another thread was first */
		ss_segment_forget(core, v->seg);
	}
	core->drv.vmm_unreserve(core->drv.ctx, pool->dev, va, size);
	free(v->frame);
	ss_host_free(core, v, sizeof(*v));
	return pool->vmm ? SS_OK : SS_ERR_FAILED;
}

void ss_hole_place(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_vmm *v = pool->vmm;

	ss_set_state(b, SS_BLOCK_HOLE);
	b->slot = SS_SLOT_CLEAN;
	b->n = 0;
	if (ss_is_state(b->next, SS_BLOCK_HOLE)) {
		ss_heap_remove(&v->holes, b->next);
		ss_block_merge(pool->core, b);
	}
	if (ss_is_state(b->prev, SS_BLOCK_HOLE)) {
		b = b->prev;
		ss_heap_remove(&v->holes, b);
		ss_block_merge(pool->core, b);
	}
	ss_heap_insert(&v->holes, b);
}

/* ---- chunks ------------------------------------------------------------- */

enum ss_status ss_chunk_unmap(struct ss_pool *pool, struct ss_block *b, struct ss_chunk *c)
{
	struct ss_core *core = pool->core;
	enum ss_status s;

	s = SS_DRIVE(core, core->drv.unmap(core->drv.ctx, pool->dev, (void *)(uintptr_t)c->va,
					   c->size));
	pthread_mutex_lock(&pool->lock);
	pool->spent.calls++;
	if (s == SS_OK) {
		for (uint64_t va = c->va; va < c->va + c->size; va += pool->vmm->unit)
			*ss_frame_at(pool->vmm, va) = NULL;
		ss_hole_place(pool, b);
	} else {
		ss_place(pool, b);
	}
	pthread_mutex_unlock(&pool->lock);
	return s;
}

void ss_chunk_destroy(struct ss_pool *pool, struct ss_chunk *c)
{
	struct ss_core *core = pool->core;

	SS_DRIVE(core, core->drv.chunk_release(core->drv.ctx, pool->dev, c->handle, c->size));
	atomic_fetch_sub(&pool->reserved, c->size);
	atomic_fetch_sub(&core->dev[pool->dev].reserved, c->size);
	pthread_mutex_lock(&pool->lock);
	pool->st.released_bytes += c->size;
	pool->spent.calls++;
	pool->vmm->chunks--;
	pthread_mutex_unlock(&pool->lock);
	ss_host_free(core, c, sizeof(*c));
}

struct ss_chunk *ss_chunk_make(struct ss_pool *pool, uint64_t size, enum ss_status *s)
{
	struct ss_core *core = pool->core;
	struct ss_chunk *c;

	if (ss_over_cap(pool, size)) {
		*s = SS_ERR_NOMEM;
		return NULL;
	}
	c = ss_host_alloc(core, sizeof(*c));
	*s = c ? SS_DRIVE(core, core->drv.chunk_create(core->drv.ctx, pool->dev, size, &c->handle))
	       : SS_ERR_FAILED;
	if (*s != SS_OK) {
		ss_host_free(core, c, sizeof(*c));
		return NULL;
	}
	c->size = size;
	ss_account_reserved(pool, size);
	pthread_mutex_lock(&pool->lock);
	pool->vmm->chunks++;
	pool->st.grown++;
	pool->spent.calls++;
	pthread_mutex_unlock(&pool->lock);
	return c;
}

uint64_t ss_chunk_map(struct ss_pool *pool, uint64_t va, struct ss_chunk **list)
{
	struct ss_core *core = pool->core;
	struct ss_vmm *v = pool->vmm;
	uint64_t done = 0;
	struct ss_chunk *c;

	while ((c = *list)) {
		if (SS_DRIVE(core, core->drv.map(core->drv.ctx, pool->dev,
						 (void *)(uintptr_t)(va + done), c->size,
						 c->handle)) != SS_OK)
			break;
		c->va = va + done;
		c->idle_since = 0;
		pthread_mutex_lock(&pool->lock);
		pool->spent.calls++;
		for (uint64_t a = c->va; a < c->va + c->size; a += v->unit)
			*ss_frame_at(v, a) = c;
		pthread_mutex_unlock(&pool->lock);
		done += c->size;
		*list = c->next;
	}
	if (done && (*list || SS_DRIVE(core, core->drv.set_access(core->drv.ctx, pool->dev,
								  (void *)(uintptr_t)va, done,
								  pool->peers)) != SS_OK)) {
		/* Memory that the device may not touch is no memory, and part of a
		 * run would stay reserved after a call that failed. */
		for (uint64_t a = va; a < va + done;) {
			pthread_mutex_lock(&pool->lock);
			c = *ss_frame_at(v, a);
			for (uint64_t f = a; f < a + c->size; f += v->unit)
				*ss_frame_at(v, f) = NULL;
			pthread_mutex_unlock(&pool->lock);
			SS_DRIVE(core, core->drv.unmap(core->drv.ctx, pool->dev,
						       (void *)(uintptr_t)a, c->size));
			a += c->size;
			c->next = *list;
			*list = c;
		}
		done = 0;
	}
	return done;
}

/* ---- the whole pool ----------------------------------------------------- */

enum ss_status ss_vmm_access(struct ss_pool *pool, uint64_t peers)
{
	struct ss_core *core = pool->core;
	struct ss_vmm *v = pool->vmm;
	enum ss_status s = SS_OK;
	uint64_t before;

	pthread_mutex_lock(&pool->lock);
	before = pool->peers;
	pool->peers = peers; /* chunks mapped meanwhile have it already */
	pthread_mutex_unlock(&pool->lock);
	for (uint64_t i = 0; i < v->frames && s == SS_OK; i++) {
		uint64_t va = 0, size = 0;

		pthread_mutex_lock(&pool->lock);
		if (v->frame[i]) {
			va = v->frame[i]->va;
			size = v->frame[i]->size;
		}
		pthread_mutex_unlock(&pool->lock);
		if (!size)
			continue;
		s = SS_DRIVE(core, core->drv.set_access(core->drv.ctx, pool->dev,
							(void *)(uintptr_t)va, size, peers));
		i += size / v->unit - 1;
	}
	if (s != SS_OK) {
		pthread_mutex_lock(&pool->lock);
		pool->peers = before;
		pthread_mutex_unlock(&pool->lock);
	}
	return s;
}

/* Pool lock not held; nobody else uses the pool. */
void ss_vmm_drop(struct ss_pool *pool, bool give_back)
{
	struct ss_core *core = pool->core;
	struct ss_vmm *v = pool->vmm;
	void *va;
	uint64_t size;

	if (!v)
		return;
	va = v->seg->native;
	size = v->seg->native_size;
	for (uint64_t i = 0; i < v->frames; i++) {
		struct ss_chunk *c = v->frame[i];

		if (!c)
			continue;
		if (give_back) {
			core->drv.unmap(core->drv.ctx, pool->dev, (void *)(uintptr_t)c->va, c->size);
			core->drv.chunk_release(core->drv.ctx, pool->dev, c->handle, c->size);
		}
		i += c->size / v->unit - 1;
		ss_host_free(core, c, sizeof(*c));
	}
	ss_segment_forget(core, v->seg);
	if (give_back)
		core->drv.vmm_unreserve(core->drv.ctx, pool->dev, va, size);
	pool->vmm = NULL;
	pool->segments = NULL;
	pool->segment_count = 0;
	free(v->frame);
	ss_host_free(core, v, sizeof(*v));
}
