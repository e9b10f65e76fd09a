/* SPDX-License-Identifier: MIT */
/*
 * The life of the chunks of a pool on virtual memory: made, mapped, opened to
 * devices, unmapped, given back. Which chunk goes where is decided in vmm.c.
 *
 * Locks: pool->lock, dropped for the driver. Meanwhile pool->mapping keeps others
 * from changing what is mapped (the frames), so whoever set it may read them.
 */
#include <stdlib.h>

#include "core/vmm.h"

/* ---- holes -------------------------------------------------------------- */

void ss_hole_place(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_vmm *v = pool->vmm;

	ss_set_state(b, SS_BLOCK_HOLE);
	b->slot = SS_SLOT_CLEAN;
	b->n = 0;
	if (ss_is_gap(b->next)) {
		ss_heap_remove(&v->holes, b->next);
		ss_block_merge(pool->core, b);
	}
	if (ss_is_gap(b->prev)) {
		b = b->prev;
		ss_heap_remove(&v->holes, b);
		ss_block_merge(pool->core, b);
	}
	ss_heap_insert(&v->holes, b);
}

/* ---- chunks ------------------------------------------------------------- */

/* The first chunk at frame *at or above; *at is then behind it. NULL: there is none. What nothing
 * was ever mapped in, most of a reservation, is not looked at. */
static struct ss_chunk *next_chunk(const struct ss_vmm *v, uint64_t *at)
{
	uint64_t half = v->frames / 2; /* ss_stays_from() */

	while (*at < v->end[0] || *at < v->end[1]) {
		struct ss_chunk *c;

		if (*at >= v->end[0] && *at < half)
			*at = half;
		c = v->frame[*at];
		*at += c ? c->size / v->unit : 1;
		if (c)
			return c;
	}
	return NULL;
}

static void frames_set(struct ss_vmm *v, uint64_t va, uint64_t size, struct ss_chunk *c)
{
	uint64_t *end = &v->end[va >= ss_stays_from(v)], last = (va + size - v->seg->base) / v->unit;

	if (c && *end < last)
		*end = last;
	for (uint64_t a = va; a < va + size; a += v->unit)
		*ss_frame_at(v, a) = c;
}

enum ss_status ss_chunk_unmap(struct ss_pool *pool, struct ss_block *b, struct ss_chunk *c)
{
	struct ss_core *core = pool->core;
	enum ss_status s;

	s = SS_DRIVE(core, core->drv.unmap(core->drv.ctx, pool->dev, (void *)(uintptr_t)c->va,
					   c->size));
	pthread_mutex_lock(&pool->lock);
	pool->spent.calls++;
	if (s == SS_OK) {
		frames_set(pool->vmm, c->va, c->size, NULL);
		ss_hole_place(pool, b);
	} else {
		ss_place(pool, b);
	}
	pthread_mutex_unlock(&pool->lock);
	return s;
}

bool ss_chunk_destroy(struct ss_pool *pool, struct ss_chunk *c)
{
	struct ss_core *core = pool->core;

	if (SS_DRIVE(core, core->drv.chunk_release(core->drv.ctx, pool->dev, c->handle, c->size)) !=
	    SS_OK) {
		/* It stays reserved, and counts against the limit. */
		c->next = pool->vmm->unreleased;
		pool->vmm->unreleased = c;
		return false;
	}
	atomic_fetch_sub(&pool->reserved, c->size);
	atomic_fetch_sub(&core->dev[pool->dev].reserved, c->size);
	ss_cap_give(pool, c->size);
	pthread_mutex_lock(&pool->lock);
	pool->st.released_bytes += c->size;
	pool->spent.calls++;
	pool->vmm->chunks--;
	pthread_mutex_unlock(&pool->lock);
	atomic_fetch_sub(&core->handles, 1);
	ss_host_free(core, c, sizeof(*c));
	return true;
}

static struct ss_chunk *chunk_make(struct ss_pool *pool, uint64_t size, enum ss_status *s)
{
	struct ss_core *core = pool->core;
	struct ss_chunk *c;

	if (!ss_cap_take(pool, size)) {
		*s = SS_ERR_NOMEM;
		return NULL;
	}
	c = ss_host_alloc(core, sizeof(*c));
	*s = c ? SS_DRIVE(core, core->drv.chunk_create(core->drv.ctx, pool->dev, size, &c->handle))
	       : SS_ERR_FAILED;
	if (*s != SS_OK) {
		ss_cap_give(pool, size);
		ss_host_free(core, c, sizeof(*c));
		return NULL;
	}
	c->size = size;
	ss_account_reserved(pool, size);
	pthread_mutex_lock(&pool->lock);
	atomic_fetch_add(&core->handles, 1);
	pool->vmm->chunks++;
	pool->st.grown++;
	pool->spent.calls++;
	pthread_mutex_unlock(&pool->lock);
	return c;
}

/* Opens [va, va + size), just mapped, to the pool's devices. Some versions accept
 * only ranges that begin with the reservation (V3); the same refuse such a range now and then,
 * however often they are asked, and take its end alone (V1; seen with 7.2.4 on an emulated device
 * that had work to do). */
static enum ss_status open_range(struct ss_pool *pool, uint64_t va, uint64_t size)
{
	struct ss_core *core = pool->core;
	struct ss_vmm *v = pool->vmm;
	const struct ss_chunk *c;
	uint64_t from = va;
	enum ss_status s;

	/* (From where there is no gap, be it one that the driver made.) */
	if (core->dev[pool->dev].info.access_prefix)
		while (from > v->seg->base && (c = *ss_frame_at(v, from - v->unit)))
			from = c->va;
	for (;;) {
		s = SS_DRIVE(core, core->drv.set_access(core->drv.ctx, pool->dev,
							(void *)(uintptr_t)from, va + size - from,
							pool->peers));
		if (!ss_refused(s) || from == va)
			return s;
		from = va;
	}
}

/* Maps the chunks at [va, ..) one after the other; those that fail stay in the
 * list. *done: the bytes mapped. */
static enum ss_status map_all(struct ss_pool *pool, uint64_t va, struct ss_chunk **list,
			      uint64_t *done)
{
	struct ss_core *core = pool->core;
	struct ss_chunk *c;

	for (*done = 0; (c = *list); *done += c->size) {
		enum ss_status s = SS_DRIVE(core, core->drv.map(core->drv.ctx, pool->dev,
								(void *)(uintptr_t)(va + *done),
								c->size, c->handle));

		if (s != SS_OK)
			return s;
		c->va = va + *done;
		c->idle_since = 0;
		pthread_mutex_lock(&pool->lock);
		pool->spent.calls++;
		frames_set(pool->vmm, c->va, c->size, c);
		pthread_mutex_unlock(&pool->lock);
		*list = c->next;
	}
	return SS_OK;
}

/* Takes back what map_all() did; what can be unmapped goes into the list again. */
static bool unmap_all(struct ss_pool *pool, uint64_t va, uint64_t size, struct ss_chunk **list)
{
	struct ss_core *core = pool->core;
	bool all = true;

	for (uint64_t a = va, end = va + size; a < end;) {
		struct ss_chunk *c = *ss_frame_at(pool->vmm, a);

		a += c ? c->size : pool->vmm->unit;
		if (!c)
			continue;
		if (SS_DRIVE(core, core->drv.unmap(core->drv.ctx, pool->dev,
						   (void *)(uintptr_t)c->va, c->size)) != SS_OK) {
			all = false;
			continue;
		}
		pthread_mutex_lock(&pool->lock);
		frames_set(pool->vmm, c->va, c->size, NULL);
		pthread_mutex_unlock(&pool->lock);
		c->next = *list;
		*list = c;
	}
	return all;
}

enum ss_status ss_chunk_fill(struct ss_pool *pool, struct ss_block *target,
			     struct ss_chunk *list, uint64_t unit)
{
	struct ss_core *core = pool->core;
	struct ss_chunk **tail, *c;
	enum ss_status s = SS_OK;
	uint64_t got = 0, mapped;
	bool stuck = false;

	for (tail = &list; *tail; tail = &(*tail)->next)
		got += (*tail)->size;
	while (got < target->size && s == SS_OK) {
		uint64_t left = target->size - got, off = (target->addr + got) % SS_FRAME;
		/* Page tables like frames: behind smaller chunks the next one ends with a frame. */
		uint64_t most = off && unit >= SS_FRAME ? SS_FRAME - off : unit;

		c = chunk_make(pool, left < most ? left : most, &s);
		if (!c)
			break;
		*tail = c;
		tail = &c->next;
		got += c->size;
	}
	/* All or nothing: a run that is too short helps nobody, and memory that the
	 * device may not touch is no memory. */
	if (s == SS_OK) {
		s = map_all(pool, target->addr, &list, &mapped);
		if (s == SS_OK)
			s = open_range(pool, target->addr, mapped);
		if (s == SS_OK && core->drv.settle)
			s = SS_DRIVE(core, core->drv.settle(core->drv.ctx, pool->dev,
							    (void *)(uintptr_t)target->addr,
							    mapped));
		/* What the driver does not want here it may take elsewhere: out of the way with the
		 * hole, until the next growth. */
		if (s != SS_OK)
			stuck = !unmap_all(pool, target->addr, mapped, &list) || ss_refused(s);
	}
	pthread_mutex_lock(&pool->lock);
	if (s == SS_OK) {
		target->slot = SS_SLOT_CLEAN;
		target->n = 0;
		ss_place(pool, target);
	} else if (stuck) {
		target->exported = true;
		ss_set_state(target, SS_BLOCK_HOLE);
		target->right = pool->vmm->stuck;
		pool->vmm->stuck = target;
	} else {
		ss_hole_place(pool, target);
	}
	pthread_mutex_unlock(&pool->lock);
	while ((c = list)) {
		list = c->next;
		ss_chunk_destroy(pool, c);
	}
	return s;
}

/* ---- the whole pool ----------------------------------------------------- */

uint64_t ss_chunks_retry(struct ss_pool *pool)
{
	struct ss_vmm *v = pool->vmm;
	struct ss_block *b, *again = v->stuck;
	struct ss_chunk *list = v->unreleased, *c;
	uint64_t given = 0;

	v->stuck = NULL;
	v->unreleased = NULL;
	while ((b = again)) {
		bool all = unmap_all(pool, b->addr, b->size, &list);

		again = b->right;
		pthread_mutex_lock(&pool->lock);
		b->right = NULL;
		if (all) {
			b->exported = false;
			ss_hole_place(pool, b);
		} else {
			b->right = v->stuck;
			v->stuck = b;
		}
		pthread_mutex_unlock(&pool->lock);
	}
	while ((c = list)) {
		uint64_t size = c->size;

		list = c->next;
		if (ss_chunk_destroy(pool, c))
			given += size;
	}
	return given;
}

/* Memory into every gap below the last chunk. */
static enum ss_status fill_gaps(struct ss_pool *pool)
{
	for (;;) {
		struct ss_block *b;
		enum ss_status s;

		pthread_mutex_lock(&pool->lock);
		for (b = pool->vmm->seg->first; b && !(ss_is_gap(b) && b->next); b = b->next)
			;
		if (b) {
			ss_heap_remove(&pool->vmm->holes, b);
			ss_set_state(b, SS_BLOCK_QUEUED);
		}
		pthread_mutex_unlock(&pool->lock);
		if (!b)
			return SS_OK;
		s = ss_chunk_fill(pool, b, NULL, SS_MAX_CHUNK);
		if (s != SS_OK)
			return s;
	}
}

enum ss_status ss_vmm_open(struct ss_pool *pool)
{
	struct ss_vmm *v = pool->vmm;
	enum ss_status s = SS_OK;
	struct ss_chunk *c;

	/* Where a later part is not accepted alone, everything from the start is. */
	if (pool->core->dev[pool->dev].info.access_prefix)
		s = fill_gaps(pool);
	for (uint64_t at = 0, end; s == SS_OK && (c = next_chunk(v, &at));) {
		uint64_t va = c->va;

		for (end = va + c->size; at < v->frames && (c = v->frame[at]); end += c->size)
			at += c->size / v->unit;
		s = open_range(pool, va, end - va);
	}
	return s;
}

static void give_all(struct ss_pool *pool, const struct ss_vmm *v)
{
	struct ss_core *core = pool->core;
	const struct ss_chunk *c;

	for (uint64_t at = 0; (c = next_chunk(v, &at));) {
		core->drv.unmap(core->drv.ctx, pool->dev, (void *)(uintptr_t)c->va, c->size);
		core->drv.chunk_release(core->drv.ctx, pool->dev, c->handle, c->size);
	}
}

void ss_vmm_leave(struct ss_pool *pool, void *arg)
{
	(void)arg;
	if (pool->backing == SS_BACKING_VMM && ss_vmm_claim(pool, false, NULL) && pool->vmm)
		give_all(pool, pool->vmm);
}

/* No lock held. The pool is claimed, or nobody else uses it. */
void ss_vmm_drop(struct ss_pool *pool, bool give_back)
{
	struct ss_core *core = pool->core;
	struct ss_vmm *v = pool->vmm;
	struct ss_chunk *c;
	void *va;
	uint64_t size;

	if (!v)
		return;
	va = v->seg->native;
	size = v->seg->native_size;
	pthread_mutex_lock(&pool->lock);
	pool->vmm = NULL;
	ss_segment_unlink(pool, v->seg);
	ss_segment_forget(core, v->seg);
	pthread_mutex_unlock(&pool->lock);
	if (give_back)
		give_all(pool, v);
	for (uint64_t at = 0; (c = next_chunk(v, &at));) {
		atomic_fetch_sub(&core->handles, 1);
		ss_host_free(core, c, sizeof(*c));
	}
	while ((c = v->unreleased)) {
		v->unreleased = c->next;
		atomic_fetch_sub(&core->handles, 1);
		if (give_back)
			core->drv.chunk_release(core->drv.ctx, pool->dev, c->handle, c->size);
		ss_host_free(core, c, sizeof(*c));
	}
	if (give_back)
		ss_vmm_unreserve(pool, va, size);
	else
		atomic_fetch_sub(&core->addresses, size);
	free(v->frame);
	ss_host_free(core, v->recur, sizeof(*v->recur));
	ss_host_free(core, v, sizeof(*v));
}
