/* SPDX-License-Identifier: MIT */
/*
 * The life of the chunks of a pool on virtual memory: made, mapped, opened to devices, unmapped and
 * released. compact.c and core/vmm.c decide the place of each chunk.
 *
 * Locks: the memory's lock, dropped for the driver. Only the thread that has claimed the memory
 * changes the frames, so it may read them without the lock.
 */
#include "core/backing/vmm.h"

/* ---- frames ---------------------------------------------------------------------- */

/* Sets or clears (`to` NULL) the frames of c. Lock held. */
static void frames_set(struct ss_vmm *v, const struct ss_chunk *c, struct ss_chunk *to)
{
	uint64_t first = (c->va - v->seg->base) / v->unit, last = first + c->size / v->unit;

	for (uint64_t i = first; i < last; i++)
		v->frame[i] = to;
	if (to && v->end < last)
		v->end = last;
}

/* ---- one chunk --------------------------------------------------------------------- */

/* A chunk counts as reserved from its creation on, so a recording shows it at `va`, its later
 * place. */
static struct ss_chunk *chunk_new(struct ss_memory *m, uint64_t va, uint64_t size,
				  enum ss_status *s)
{
	struct ss_core *core = m->core;
	struct ss_chunk *c;
	uint64_t when;

	if (!ss_cap_take(m, size)) {
		*s = SS_ERR_NOMEM;
		return NULL;
	}
	c = ss_host_alloc(core, sizeof(*c));
	*s = c ? SS_DRIVE_ALLOC(m, chunk_create, size, &c->handle) : SS_ERR_FAILED;
	if (*s != SS_OK) {
		ss_cap_return(m, size);
		ss_host_free(core, c, sizeof(*c));
		return NULL;
	}
	c->size = size;
	c->va = va;
	when = ss_reserved_add(m, size);
	ss_memory_record(m, when, SS_TRACE_MAP, va, size, 0);
	atomic_fetch_add(&core->backing->chunks, 1);
	pthread_mutex_lock(&m->lock);
	m->vmm->chunks++;
	m->grown++;
	pthread_mutex_unlock(&m->lock);
	return c;
}

/* Ends a chunk: its host memory and its figures. `gone`: the driver has taken it back; otherwise
 * it is set aside, and counts against the limit for good. */
static void chunk_end(struct ss_memory *m, struct ss_chunk *c, bool gone)
{
	uint64_t when = ss_reserved_add(m, -c->size);

	ss_memory_record(m, when, SS_TRACE_UNMAP, c->va, c->size, 0);
	if (gone)
		ss_cap_return(m, c->size);
	else
		atomic_fetch_add(&ss_device_memory(m->core, m->dev)->set_aside, c->size);
	atomic_fetch_sub(&m->core->backing->chunks, 1);
	ss_host_free(m->core, c, sizeof(*c));
}

bool ss_chunk_release(struct ss_memory *m, struct ss_chunk *c)
{
	if (SS_DRIVE_FREE(m, chunk_release, c->handle, c->size) != SS_OK) {
		/* The chunk stays reserved, and counts against the limit. */
		pthread_mutex_lock(&m->lock);
		c->next = m->vmm->unreleased;
		m->vmm->unreleased = c;
		pthread_mutex_unlock(&m->lock);
		return false;
	}
	pthread_mutex_lock(&m->lock);
	m->released_bytes += c->size;
	m->vmm->chunks--;
	pthread_mutex_unlock(&m->lock);
	chunk_end(m, c, true);
	return true;
}

static enum ss_status map(struct ss_memory *m, struct ss_chunk *c, uint64_t va)
{
	enum ss_status s;

	s = SS_DRIVE_MAP(m, map, (void *)(uintptr_t)va, c->size, c->handle);
	if (s != SS_OK)
		return s;
	if (c->va != va) {
		ss_memory_record(m, 0, SS_TRACE_UNMAP, c->va, c->size, 0);
		ss_memory_record(m, 0, SS_TRACE_MAP, va, c->size, 0);
		c->va = va;
	}
	c->idle_since = 0;
	c->unopened = true;
	pthread_mutex_lock(&m->lock);
	frames_set(m->vmm, c, c);
	pthread_mutex_unlock(&m->lock);
	return SS_OK;
}

/* Must the chunk stay mapped? */
static bool must_stay(const struct ss_memory *m, const struct ss_chunk *c)
{
	return c->unopened && (c->stays || m->core->info[m->dev].keep_unopened);
}

static enum ss_status unmap(struct ss_memory *m, struct ss_chunk *c)
{
	enum ss_status s = SS_ERR_UNSUPPORTED;

	if (!must_stay(m, c))
		s = SS_DRIVE_MAP(m, unmap, (void *)(uintptr_t)c->va, c->size);
	c->stays |= c->unopened && ss_refused(s);
	if (s != SS_OK)
		return s;
	pthread_mutex_lock(&m->lock);
	frames_set(m->vmm, c, NULL);
	pthread_mutex_unlock(&m->lock);
	return SS_OK;
}

enum ss_status ss_chunk_unmap(struct ss_memory *m, struct ss_block *b, struct ss_chunk *c)
{
	enum ss_status s = unmap(m, c);

	pthread_mutex_lock(&m->lock);
	if (s == SS_OK)
		ss_gap_insert(m, b);
	else
		ss_completed_insert(m, b);
	pthread_mutex_unlock(&m->lock);
	return s;
}

/* ---- filling a gap ------------------------------------------------------------------- */

static uint64_t readers(const struct ss_memory *m)
{
	int n = m->core->devices;
	uint64_t all = n < 64 ? (1ull << n) - 1 : UINT64_MAX;

	return m->vmm->to_all ? all : atomic_load(&m->peers);
}

/* Opens [va, va + size), just mapped, to the pool's devices. Some versions accept only ranges
 * that begin with the reservation. The same versions now and then refuse such a range for good,
 * and accept its last part alone (seen with 7.2.4 on an emulated device that had work to do). */
enum ss_status ss_chunks_open_range(struct ss_memory *m, uint64_t va, uint64_t size)
{
	struct ss_core *core = m->core;
	struct ss_vmm *v = m->vmm;
	const struct ss_chunk *c;
	uint64_t from = va;
	enum ss_status s;

	/* The driver itself may have made a gap by refusing an unmap, so the range begins after
	 * the last gap. */
	if (core->info[m->dev].access_prefix)
		while (from > v->seg->base && (c = *ss_frame_at(v, from - v->unit)))
			from = c->va;
	s = SS_DRIVE_MAP(m, set_access, (void *)(uintptr_t)from, va + size - from, readers(m));
	if (ss_refused(s) && from != va)
		s = SS_DRIVE_MAP(m, set_access, (void *)(uintptr_t)va, size, readers(m));
	for (uint64_t a = va; s == SS_OK && a < va + size;) {
		struct ss_chunk *opened = *ss_frame_at(v, a);

		opened->unopened = false;
		a += opened->size;
	}
	return s;
}

/* Chunks in b that were just mapped and must stay mapped no longer belong to the pool. False:
 * there is no such chunk. */
static bool set_aside(struct ss_memory *m, const struct ss_block *b)
{
	struct ss_vmm *v = m->vmm;
	bool any = false;

	for (uint64_t a = b->addr; a < b->addr + b->size;) {
		struct ss_chunk *c = *ss_frame_at(v, a);

		a += c ? c->size : v->unit;
		if (!c || !must_stay(m, c))
			continue;
		pthread_mutex_lock(&m->lock);
		frames_set(v, c, NULL);
		v->chunks--;
		v->aside = any = true;
		pthread_mutex_unlock(&m->lock);
		chunk_end(m, c, false);
	}
	return any;
}

/* Unmaps all chunks in [va, va + size) and puts them into the list. False: some stay mapped. */
static bool unmap_range(struct ss_memory *m, uint64_t va, uint64_t size, struct ss_chunk **list)
{
	bool all = true;

	for (uint64_t a = va, end = va + size; a < end;) {
		struct ss_chunk *c = *ss_frame_at(m->vmm, a);

		a += c ? c->size : m->vmm->unit;
		if (!c)
			continue;
		if (unmap(m, c) != SS_OK) {
			all = false;
			continue;
		}
		c->next = *list;
		*list = c;
	}
	return all;
}

/* Opens newly mapped memory and waits until it can be used. */
static enum ss_status make_usable(struct ss_memory *m, uint64_t va, uint64_t size)
{
	enum ss_status s = ss_chunks_open_range(m, va, size);

	if (s == SS_OK && m->core->drv.settle)
		s = SS_DRIVE_MAP(m, settle, (void *)(uintptr_t)va, size);
	return s;
}

/* Must the devices be found idle before an unmap? */
static bool unmap_waits(const struct ss_memory *m)
{
	return m->core->info[m->dev].unmap_waits_all;
}

/* Maps the chunks of the list behind all of b and opens them. On failure the chunks that are not
 * mapped are in the list; *left: bytes from the start of b that are mapped, because they could
 * not be unmapped. *stuck: the driver refuses memory at this address. */
static enum ss_status map_list(struct ss_memory *m, const struct ss_block *b,
			       struct ss_chunk **list, bool *stuck, uint64_t *left)
{
	struct ss_core *core = m->core;
	enum ss_status s = SS_OK;
	uint64_t done = 0;

	for (struct ss_chunk *c; s == SS_OK && (c = *list);) {
		s = map(m, c, b->addr + done);
		if (s == SS_OK) {
			done += c->size;
			*list = c->next;
		}
	}
	if (s == SS_OK)
		s = make_usable(m, b->addr, b->size);
	else if (done && core->info[m->dev].keep_unopened)
		(void)ss_chunks_open_range(m, b->addr, done); /* so that it can be unmapped */
	if (s == SS_OK)
		return s;
	*stuck = ss_refused(s);
	if (unmap_waits(m))
		*left = done;
	else
		*stuck |= !unmap_range(m, b->addr, done, list);
	return s;
}

/* Appends new chunks to the list, which holds `got` bytes, until `target` is covered. */
static enum ss_status make_rest(struct ss_memory *m, const struct ss_block *target,
				struct ss_chunk **tail, uint64_t got, uint64_t unit)
{
	enum ss_status s = SS_OK;

	while (got < target->size) {
		uint64_t size = ss_min(target->size - got, unit);
		struct ss_chunk *c = chunk_new(m, target->addr + got, size, &s);

		if (!c)
			break;
		*tail = c;
		tail = &c->next;
		got += c->size;
	}
	return s;
}

/* After a growth that failed, only the first `left` bytes are mapped: the rest becomes a gap.
 * Can the mapped part be used? */
static bool keep_mapped(struct ss_memory *m, struct ss_block *target, uint64_t left)
{
	bool all = target->size == left;

	pthread_mutex_lock(&m->lock);
	ss_gap_shorten(m, target, left);
	pthread_mutex_unlock(&m->lock);
	/* If all of the range was mapped, the driver refused just this call. */
	return !all && target->size == left && make_usable(m, target->addr, left) == SS_OK;
}

enum ss_status ss_chunks_fill(struct ss_memory *m, struct ss_block *target, struct ss_chunk *list,
			      uint64_t unit)
{
	struct ss_chunk **tail, *c;
	enum ss_status s;
	uint64_t got = 0, left = 0;
	bool stuck = false, usable, aside;

	for (tail = &list; *tail; tail = &(*tail)->next)
		got += (*tail)->size;
	/* The range is filled as a whole or not at all: a run that is too short serves no
	 * request, and memory that the device may not touch is useless. */
	s = make_rest(m, target, tail, got, unit);
	if (s == SS_OK)
		s = map_list(m, target, &list, &stuck, &left);
	usable = s == SS_OK || (left && keep_mapped(m, target, left));
	stuck |= left > 0;
	aside = stuck && set_aside(m, target);
	pthread_mutex_lock(&m->lock);
	if (usable) {
		target->n = 0;
		ss_completed_insert(m, target);
	} else if (stuck) {
		/* This range is left alone until the next growth: the driver may accept another
		 * range. */
		target->exported = true;
		ss_set_state(target, SS_BLOCK_GAP);
		if (!aside) {
			target->right = m->vmm->stuck;
			m->vmm->stuck = target;
		}
	} else {
		ss_gap_insert(m, target);
	}
	pthread_mutex_unlock(&m->lock);
	while ((c = list)) {
		list = c->next;
		ss_chunk_release(m, c);
	}
	return s;
}

/* ---- all chunks ------------------------------------------------------------------------- */

/* The bytes of b that have memory. */
static uint64_t mapped_bytes(const struct ss_vmm *v, const struct ss_block *b)
{
	uint64_t bytes = 0;

	for (uint64_t a = b->addr; a < b->addr + b->size; a += v->unit)
		bytes += *ss_frame_at(v, a) ? v->unit : 0;
	return bytes;
}

/* The fate of a range in which memory was stuck. */
static enum ss_block_state unstick(struct ss_memory *m, const struct ss_block *b, bool may_unmap,
				   struct ss_chunk **list)
{
	uint64_t mapped = mapped_bytes(m->vmm, b);

	if (!mapped || (may_unmap && unmap_range(m, b->addr, b->size, list)))
		return SS_BLOCK_GAP;
	if (!may_unmap && mapped == b->size && make_usable(m, b->addr, b->size) == SS_OK)
		return SS_BLOCK_FREE;
	return SS_BLOCK_QUEUED;
}

uint64_t ss_chunks_retry(struct ss_memory *m, bool may_unmap, bool *opened)
{
	struct ss_vmm *v = m->vmm;
	struct ss_block *stuck, *b;
	struct ss_chunk *list, *c;
	uint64_t given = 0;

	*opened = false;
	if (!v)
		return 0;
	pthread_mutex_lock(&m->lock);
	stuck = v->stuck;
	list = v->unreleased;
	v->stuck = NULL;
	v->unreleased = NULL;
	pthread_mutex_unlock(&m->lock);
	while ((b = stuck)) {
		enum ss_block_state is = unstick(m, b, may_unmap, &list);

		stuck = b->right;
		pthread_mutex_lock(&m->lock);
		b->exported = is == SS_BLOCK_QUEUED;
		if (is == SS_BLOCK_GAP) {
			ss_gap_insert(m, b);
		} else if (is == SS_BLOCK_FREE) {
			ss_completed_insert(m, b);
			*opened = true;
		} else {
			b->right = v->stuck;
			v->stuck = b;
		}
		pthread_mutex_unlock(&m->lock);
	}
	while ((c = list)) {
		uint64_t size = c->size;

		list = c->next;
		if (ss_chunk_release(m, c))
			given += size;
	}
	return given;
}

enum ss_status ss_chunks_open(struct ss_memory *m)
{
	const struct ss_vmm *v = m->vmm;
	enum ss_status s = SS_OK;
	struct ss_chunk *c;

	for (uint64_t at = 0; s == SS_OK && (c = ss_chunk_next(v, &at));) {
		uint64_t va = c->va, end = va + c->size;

		for (; at < v->end && (c = v->frame[at]); end += c->size)
			at += c->size / v->unit;
		s = ss_chunks_open_range(m, va, end - va);
	}
	return s;
}

enum ss_status ss_chunks_open_to_all(struct ss_memory *m)
{
	enum ss_status s;

	if (m->vmm->to_all || m->core->devices == 1)
		return SS_OK;
	m->vmm->to_all = true;
	s = ss_chunks_open(m);
	if (s != SS_OK)
		m->vmm->to_all = false;
	return s;
}

void ss_chunks_set_aside(struct ss_memory *m)
{
	struct ss_vmm *v = m->vmm;
	struct ss_chunk *c;

	for (uint64_t at = 0; (c = ss_chunk_next(v, &at));) {
		pthread_mutex_lock(&m->lock);
		frames_set(v, c, NULL);
		v->chunks--;
		v->aside = true;
		pthread_mutex_unlock(&m->lock);
		chunk_end(m, c, false);
	}
}

bool ss_chunks_any_open(const struct ss_vmm *v)
{
	const struct ss_chunk *c;

	for (uint64_t at = 0; (c = ss_chunk_next(v, &at));)
		if (!c->unopened)
			return true;
	return false;
}

/* False: the driver refuses the chunk. */
static bool return_chunk(struct ss_memory *m, const struct ss_chunk *c)
{
	const struct ss_driver *drv = &m->core->drv;

	if (c->asleep)
		return !c->handle ||
		       drv->chunk_release(drv->ctx, m->dev, c->handle, c->size) == SS_OK;
	return !must_stay(m, c) &&
	       drv->unmap(drv->ctx, m->dev, (void *)(uintptr_t)c->va, c->size) == SS_OK &&
	       drv->chunk_release(drv->ctx, m->dev, c->handle, c->size) == SS_OK;
}

void ss_chunks_unmap_all(struct ss_memory *m, const struct ss_vmm *v)
{
	const struct ss_chunk *c;

	for (uint64_t at = 0; (c = ss_chunk_next(v, &at));)
		(void)return_chunk(m, c);
}

void ss_chunks_end(struct ss_memory *m, struct ss_vmm *v, bool release)
{
	const struct ss_driver *drv = &m->core->drv;
	struct ss_chunk *c;
	bool gone;

	for (uint64_t at = 0; (c = ss_chunk_next(v, &at));) {
		gone = !release || return_chunk(m, c);
		v->aside |= !gone;
		chunk_end(m, c, gone);
	}
	while ((c = v->unreleased)) {
		v->unreleased = c->next;
		gone = !release ||
		       drv->chunk_release(drv->ctx, m->dev, c->handle, c->size) == SS_OK;
		chunk_end(m, c, gone);
	}
}
