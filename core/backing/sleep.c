/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory asleep: every chunk is unmapped and released, and frames, blocks and figures stay
 * as they are. The memory stays claimed meanwhile, so none of it moves.
 *
 * Locks: none is held.
 */
#include "core/backing/vmm.h"

#define TRIES 3 /* drivers now and then refuse a call that succeeds when repeated */

/* Counts bytes that the device has back, or (negative, as two's complement) no longer. */
static void count(struct ss_memory *m, uint64_t delta)
{
	atomic_fetch_add(&ss_device_memory(m->core, m->dev)->asleep, delta);
}

/* No device was ever given access to the chunk, so it has no contents, and the driver would
 * refuse again. */
static bool is_lost(const struct ss_chunk *c)
{
	return c->unopened && !c->waking;
}

bool ss_memory_mapped_for(const struct ss_memory *m, uint64_t addr)
{
	return m->vmm && addr - m->vmm->seg->base < m->vmm->seg->size;
}

/* ---- chunks that others hold -------------------------------------------------------- */

bool ss_memory_export(struct ss_memory *m, uint64_t va, uint64_t size, const char *by)
{
	bool any = false;
	struct ss_chunk *c;

	for (uint64_t at = 0; m->vmm && (c = ss_chunk_next(m->vmm, &at));)
		if (va < c->va + c->size && c->va < va + size) {
			c->exported = by;
			any = true;
		}
	return any;
}

uint64_t ss_memory_exported(const struct ss_memory *m, const char **by)
{
	uint64_t sum = 0;
	struct ss_chunk *c;

	for (uint64_t at = 0; m->vmm && (c = ss_chunk_next(m->vmm, &at));)
		if (c->exported) {
			sum += c->size;
			*by = c->exported;
		}
	return sum;
}

/* The part of [va, end) in one frame or chunk. */
static uint64_t piece(const struct ss_vmm *v, uint64_t va, uint64_t end, bool *exported)
{
	const struct ss_chunk *c = *ss_frame_at(v, va);
	uint64_t to = c ? c->va + c->size : va - (va - v->seg->base) % v->unit + v->unit;

	*exported = c && c->exported;
	return (to < end ? to : end) - va;
}

uint64_t ss_memory_part(const struct ss_memory *m, uint64_t *va, uint64_t end)
{
	uint64_t size = 0, step;
	bool exported;

	while (*va + size < end) {
		step = piece(m->vmm, *va + size, end, &exported);
		if (!exported)
			size += step;
		else if (size)
			break;
		else
			*va += step;
	}
	return size;
}

/* ---- to sleep --------------------------------------------------------------------- */

static bool release(struct ss_memory *m, struct ss_chunk *c)
{
	enum ss_status s = SS_ERR_FAILED;

	for (int i = 0; i < TRIES && c->handle && s != SS_OK; i++)
		s = SS_DRIVE_FREE(m, chunk_release, c->handle, c->size);
	if (s != SS_OK)
		return false; /* the same handle is mapped again */
	c->handle = NULL;
	count(m, c->size);
	return true;
}

/* False: the chunk stays as it is. */
static bool unmap(struct ss_memory *m, struct ss_chunk *c)
{
	enum ss_status s = SS_ERR_FAILED;

	if (c->asleep || c->exported || is_lost(c) ||
	    (c->unopened && m->core->info[m->dev].keep_unopened))
		return false;
	for (int i = 0; i < TRIES && s != SS_OK; i++)
		s = SS_DRIVE_MAP(m, unmap, (void *)(uintptr_t)c->va, c->size);
	if (s != SS_OK)
		return false;
	c->asleep = true;
	c->waking = c->unopened = false;
	return true;
}

/* Both are released, and `next` begins where c ends. */
static void join(struct ss_memory *m, struct ss_chunk *c, struct ss_chunk *next)
{
	pthread_mutex_lock(&m->lock);
	for (uint64_t va = next->va; va < next->va + next->size; va += m->vmm->unit)
		*ss_frame_at(m->vmm, va) = c;
	c->size += next->size;
	c->idle_since = c->idle_since && next->idle_since ?
				ss_max(c->idle_since, next->idle_since) :
				0;
	m->vmm->chunks--;
	pthread_mutex_unlock(&m->lock);
	atomic_fetch_sub(&m->core->backing->chunks, 1);
	ss_host_free(m->core, next, sizeof(*next));
}

/* Does a range that the driver refused begin or end there? It is retried as a whole. */
static bool is_border(const struct ss_vmm *v, uint64_t va)
{
	for (const struct ss_block *b = v->stuck; b; b = b->right)
		if (va == b->addr || va == b->addr + b->size)
			return true;
	return false;
}

static bool may_join(const struct ss_vmm *v, const struct ss_chunk *a, const struct ss_chunk *b)
{
	return a->asleep && !a->handle && b->asleep && !b->handle && b->va == a->va + a->size &&
	       a->size + b->size <= SS_CHUNK_MOST && !is_border(v, b->va);
}

static void join_all(struct ss_memory *m)
{
	struct ss_chunk *last = NULL, *c;

	for (uint64_t at = 0; (c = ss_chunk_next(m->vmm, &at));)
		if (last && may_join(m->vmm, last, c))
			join(m, last, c);
		else
			last = c;
}

uint64_t ss_memory_sleep(struct ss_memory *m, uint32_t *chunks)
{
	struct ss_chunk *c;
	uint64_t gone = 0;

	if (!m->vmm)
		return 0;
	for (uint64_t at = 0; (c = ss_chunk_next(m->vmm, &at));)
		(void)unmap(m, c);
	for (uint64_t at = 0; (c = ss_chunk_next(m->vmm, &at));)
		if (c->asleep && release(m, c)) {
			gone += c->size;
			*chunks += 1;
		}
	join_all(m);
	return gone;
}

/* ---- waking ----------------------------------------------------------------------- */

static enum ss_status create(struct ss_memory *m, struct ss_chunk *c)
{
	enum ss_status s = SS_ERR_FAILED;

	for (int i = 0; i < TRIES && s != SS_OK; i++)
		s = SS_DRIVE_ALLOC(m, chunk_create, c->size, &c->handle);
	if (s == SS_OK)
		count(m, -c->size);
	else
		c->handle = NULL;
	return s;
}

static enum ss_status map(struct ss_memory *m, struct ss_chunk *c)
{
	enum ss_status s = SS_ERR_FAILED;

	for (int i = 0; i < TRIES && s != SS_OK; i++)
		s = SS_DRIVE_MAP(m, map, (void *)(uintptr_t)c->va, c->size, c->handle);
	if (s == SS_OK) {
		c->asleep = false;
		c->waking = c->unopened = true;
	}
	return s;
}

/* [from, to) was opened. Waits until the mapped memory can be used, which overwrites it. */
static enum ss_status opened(struct ss_memory *m, uint64_t from, uint64_t to)
{
	enum ss_status s = SS_OK;

	for (uint64_t a = from; a < to && s == SS_OK;) {
		struct ss_chunk *c = *ss_frame_at(m->vmm, a);

		a += c ? c->size : m->vmm->unit;
		if (!c || !c->waking)
			continue;
		c->waking = false;
		if (m->core->drv.settle)
			s = SS_DRIVE_MAP(m, settle, (void *)(uintptr_t)c->va, c->size);
	}
	return s;
}

/* Opens each run of chunks, except lost ones. False: not all of them. */
static enum ss_status open_runs(struct ss_memory *m, bool *all)
{
	const struct ss_vmm *v = m->vmm;
	enum ss_status s = SS_OK;
	struct ss_chunk *c;

	*all = true;
	for (uint64_t at = 0; s == SS_OK && (c = ss_chunk_next(v, &at));) {
		uint64_t va = c->va, end = va + c->size;
		bool any = c->waking;

		if (is_lost(c))
			continue;
		for (; at < v->end && (c = v->frame[at]) && !is_lost(c); end += c->size) {
			any |= c->waking;
			at += c->size / v->unit;
		}
		if (any && ss_chunks_open_range(m, va, end - va) != SS_OK)
			*all = false;
		else if (any)
			s = opened(m, va, end);
	}
	return s;
}

/* Opens the runs; else each chunk alone; else everything, with memory in the gaps, if access is
 * accepted only without a gap below. */
static enum ss_status open_all(struct ss_memory *m)
{
	enum ss_status s;
	struct ss_chunk *c;
	bool all;

	s = open_runs(m, &all);
	if (s != SS_OK || all)
		return s;
	all = true;
	for (uint64_t at = 0; s == SS_OK && (c = ss_chunk_next(m->vmm, &at));) {
		if (!c->waking)
			continue;
		if (ss_chunks_open_range(m, c->va, c->size) == SS_OK)
			s = opened(m, c->va, c->va + c->size);
		else
			all = false;
	}
	if (s == SS_OK && !all)
		s = ss_vmm_open(m);
	return s == SS_OK ? opened(m, m->vmm->seg->base,
				   m->vmm->seg->base + m->vmm->end * m->vmm->unit) :
			    s;
}

/* All memory is created first: two processes that each have half and wait for the rest would
 * wait for ever. */
enum ss_status ss_memory_wake(struct ss_memory *m)
{
	struct ss_vmm *v = m->vmm;
	enum ss_status s = SS_OK;
	struct ss_chunk *c;
	uint32_t chunks = 0;

	if (!v)
		return SS_OK;
	for (uint64_t at = 0; s == SS_OK && (c = ss_chunk_next(v, &at));)
		if (c->asleep && !c->handle)
			s = create(m, c);
	for (uint64_t at = 0; s == SS_OK && (c = ss_chunk_next(v, &at));)
		if (c->asleep)
			s = map(m, c);
	if (s == SS_OK)
		s = open_all(m);
	if (s != SS_OK)
		(void)ss_memory_sleep(m, &chunks);
	return s;
}
