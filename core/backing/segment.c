/* SPDX-License-Identifier: MIT */
/*
 * Whole segments: how a pool on hip or hsa backing grows and releases memory.
 *
 * A segment is taken from the driver in one call, and released in one call when every byte of it is
 * free and completed. Its usable part starts and ends on 2 MiB frames, so that each frame of the
 * address map has one owner; the runtimes align segments of this size to a frame anyway.
 *
 * Locks: the memory's lock, dropped for the driver.
 */
#include <utlist.h>

#include "core/backing/segment.h"
#include "core/backing/vmm.h"

/* ---- one segment ------------------------------------------------------------ */

void ss_segment_link(struct ss_memory *m, struct ss_segment *seg)
{
	DL_PREPEND(m->segments, seg);
	m->segment_count++;
}

void ss_segment_unlink(struct ss_memory *m, struct ss_segment *seg)
{
	DL_DELETE(m->segments, seg);
	m->segment_count--;
	atomic_fetch_add(&m->forgotten, 1);
}

/* Takes seg out of all tables, before it is released to the driver: afterwards its addresses may
 * have another owner. Its bytes are no longer reserved, but count against the limit until
 * ss_cap_return. Returns the time for ss_memory_record(). Lock held. */
static uint64_t detach(struct ss_memory *m, struct ss_segment *seg)
{
	uint64_t size = seg->native_size;

	ss_segment_unlink(m, seg);
	ss_segment_forget(m->core, seg);
	return ss_reserved_add(m, -size);
}

/* Makes a segment of the driver's memory, guarded if `chunk` is set. The segment counts as
 * reserved; it is one block in state GAP. *when: for ss_memory_record(). NULL: host memory is
 * out. Lock held. */
static struct ss_segment *attach(struct ss_memory *m, void *native, uint64_t size, void *chunk,
				 uint64_t *when)
{
	uint64_t base = ss_round((uintptr_t)native, SS_FRAME);
	uint64_t end = ((uintptr_t)native + size) & ~(SS_FRAME - 1);
	struct ss_segment *seg;

	seg = end > base ? ss_segment_new(m->core, m->pool, base, end - base) : NULL;
	if (!seg)
		return NULL;
	seg->backing = chunk ? SS_BACKING_VMM : m->backing;
	seg->chunk = chunk;
	seg->native = native;
	seg->native_size = size;
	ss_segment_link(m, seg);
	*when = ss_reserved_add(m, size);
	return seg;
}

static enum ss_status return_memory(struct ss_memory *m, void *native, uint64_t size, void *chunk)
{
	return chunk ? ss_guard_return(m, native, size, chunk) :
		       SS_DRIVE_FREE(m, segment_free, m->backing, native, size);
}

/* Is seg one completed range? Lock held. */
static bool is_idle(const struct ss_memory *m, const struct ss_segment *seg)
{
	const struct ss_block *b = ss_segment_first(m->core, seg);

	return !seg->opening && ss_is_free_on(b, SS_SLOT_COMPLETED) && ss_is_whole(b);
}

/* ---- growing ---------------------------------------------------------------- */

static enum ss_status open_segment(struct ss_memory *m, void *native, uint64_t size, bool guarded)
{
	return guarded ? ss_guard_open(m, native, size) :
			 SS_DRIVE_MAP(m, segment_access, m->backing, native, size,
				      atomic_load(&m->peers));
}

/* Takes memory for a segment, and opens it to the peers. If this or a later step fails, *ptr
 * must be released by means of *spare; NULL: nothing. */
static enum ss_status take(struct ss_memory *m, uint64_t size, uint64_t peers, void **ptr,
			   struct ss_unreturned **spare)
{
	struct ss_core *core = m->core;
	enum ss_status s;

	*ptr = ss_unreturned_take(m, size, spare);
	if (*ptr)
		return open_segment(m, *ptr, size, false);
	if (!ss_cap_take(m, size))
		return SS_ERR_NOMEM;
	*spare = ss_host_alloc(core, sizeof(**spare));
	s = *spare ? SS_DRIVE_ALLOC(m, segment_alloc, m->backing, size, peers, ptr) : SS_ERR_FAILED;
	if (!*ptr) {
		ss_cap_return(m, size);
		ss_host_free(core, *spare, sizeof(**spare));
	}
	return s;
}

enum ss_status ss_segment_enter(struct ss_memory *m, void *native, uint64_t size, void *chunk,
				uint64_t peers, struct ss_segment **out)
{
	enum ss_status s = SS_OK;
	uint64_t when;

	*out = NULL;
	pthread_mutex_lock(&m->lock);
	/* Devices that got access meanwhile have it to the segments in the list, but not yet to
	 * this one. */
	while (s == SS_OK && atomic_load(&m->peers) & ~peers) {
		peers = atomic_load(&m->peers);
		pthread_mutex_unlock(&m->lock);
		s = open_segment(m, native, size, chunk);
		pthread_mutex_lock(&m->lock);
	}
	if (s == SS_OK && !(*out = attach(m, native, size, chunk, &when)))
		s = SS_ERR_FAILED;
	m->grown += s == SS_OK;
	if (s == SS_OK && !chunk)
		ss_completed_insert(m, ss_segment_first(m->core, *out));
	pthread_mutex_unlock(&m->lock);
	if (s == SS_OK)
		ss_memory_record(m, when, SS_TRACE_SEGMENT_ALLOC, (uintptr_t)native, size, 0);
	return s;
}

enum ss_status ss_segment_add(struct ss_memory *m, uint64_t size)
{
	uint64_t peers = atomic_load(&m->peers);
	struct ss_unreturned *spare;
	struct ss_segment *seg;
	enum ss_status s;
	void *ptr;

	s = take(m, size, peers, &ptr, &spare);
	if (s == SS_OK)
		s = ss_segment_enter(m, ptr, size, NULL, peers, &seg);
	if (s == SS_OK)
		ss_host_free(m->core, spare, sizeof(*spare));
	else if (ptr && ss_release_waits(m))
		ss_unreturned_keep(m, spare, ptr, size);
	else if (ptr)
		ss_unreturned_return(m, spare, ptr, size);
	return s;
}

enum ss_status ss_segments_grow(struct ss_memory *m, const struct ss_growth *growth)
{
	uint64_t pad = growth->align > SS_FRAME ? growth->align : 0;
	uint64_t need = ss_round(growth->size + pad, SS_FRAME);
	uint64_t want = ss_max(ss_round(growth->segment, SS_FRAME), need);
	enum ss_status s;

	if (growth->move) {
		ss_unreturned_retry(m);
		ss_segments_make_room(m, want, need, growth->waited);
	}
	s = ss_segment_add(m, want);
	if (s == SS_ERR_NOMEM && want > need)
		s = ss_segment_add(m, need);
	return s;
}

/* ---- releasing -------------------------------------------------------------- */

/* The bytes that must stay reserved when `want` bytes replace idle segments: of the memory that a
 * threshold keeps, no more is released than is added. */
static uint64_t floor_of(const struct ss_memory *m, uint64_t want)
{
	return ss_minus(ss_min(atomic_load(&m->keep), atomic_load(&m->reserved)), want);
}

uint64_t ss_memory_releasable(struct ss_memory *m, uint64_t want)
{
	uint64_t reserved = atomic_load(&m->reserved), floor = floor_of(m, want), bytes = 0;

	if (m->backing == SS_BACKING_VMM)
		return 0;
	if (!floor)
		return m->idle_bytes;
	for (const struct ss_segment *seg = m->segments; seg; seg = seg->next)
		if (is_idle(m, seg) && seg->native_size + floor <= reserved)
			bytes += seg->native_size;
	return bytes;
}

/* Is the segment of `size` bytes released before that of `other`, if `excess` bytes must be
 * released? The smallest that suffices, or else the largest: that takes the fewest calls. */
static bool goes_first(uint64_t size, uint64_t other, uint64_t excess)
{
	return size > excess ? other < excess || size < other : other < excess && size > other;
}

/* The next segment to release: idle for long enough, and small enough that `floor` bytes stay.
 * Lock held. */
static struct ss_segment *victim(struct ss_memory *m, uint64_t target, uint64_t floor,
				 uint64_t older_than)
{
	uint64_t reserved = atomic_load(&m->reserved), excess = reserved - target;
	struct ss_segment *best = NULL;

	for (struct ss_segment *seg = m->segments; seg; seg = seg->next) {
		if (!is_idle(m, seg) || seg->idle_since > older_than ||
		    seg->native_size + floor > reserved)
			continue;
		if (!best || goes_first(seg->native_size, best->native_size, excess))
			best = seg;
	}
	return best;
}

enum ss_released ss_segment_release(struct ss_memory *m, struct ss_segment *seg, bool exported)
{
	void *native = seg->native, *chunk = seg->chunk;
	uint64_t size = seg->native_size, serial = seg->serial, when = detach(m, seg);
	struct ss_witness w = {0};
	enum ss_status s;

	pthread_mutex_unlock(&m->lock);
	ss_memory_record(m, when, SS_TRACE_SEGMENT_FREE, (uintptr_t)native, size, 0);
	if (exported) {
		ss_retention_begin(m, &w);
		w.reserved += size;
	}
	s = return_memory(m, native, size, chunk);
	if (s == SS_OK)
		ss_cap_return(m, size);
	if (s == SS_OK && exported && !chunk)
		ss_retention_exports_end(m, &w, size);
	pthread_mutex_lock(&m->lock);
	if (s == SS_OK) {
		m->released_bytes += size;
		return SS_RELEASED;
	}
	seg = attach(m, native, size, chunk, &when);
	if (!seg)
		return SS_LOST;
	if (exported) {
		seg->serial = serial;
		ss_segment_first(m->core, seg)->exported = true;
	} else {
		ss_completed_insert(m, ss_segment_first(m->core, seg));
	}
	pthread_mutex_unlock(&m->lock);
	ss_memory_record(m, when, SS_TRACE_SEGMENT_ALLOC, (uintptr_t)native, size, 0);
	pthread_mutex_lock(&m->lock);
	return SS_REFUSED;
}

uint64_t ss_segments_release(struct ss_memory *m, uint64_t target, uint64_t floor,
			     uint64_t older_than)
{
	uint64_t given = ss_unreturned_retry(m), size;
	struct ss_segment *seg;
	bool released = true;

	pthread_mutex_lock(&m->lock);
	while (released && atomic_load(&m->reserved) > target &&
	       (seg = victim(m, target, floor, older_than))) {
		size = seg->native_size;
		ss_completed_remove(m, ss_segment_first(m->core, seg));
		released = ss_segment_release(m, seg, false) == SS_RELEASED;
		given += released ? size : 0;
	}
	pthread_mutex_unlock(&m->lock);
	return given;
}

uint64_t ss_segments_idle_since(const struct ss_memory *m)
{
	uint64_t since = 0;

	for (const struct ss_segment *seg = m->segments; seg; seg = seg->next)
		if (is_idle(m, seg) && (!since || seg->idle_since < since))
			since = seg->idle_since;
	return since;
}

bool ss_segments_could_fit(struct ss_memory *m, uint64_t bytes)
{
	uint64_t idle;

	pthread_mutex_lock(&m->lock);
	idle = m->idle_bytes;
	pthread_mutex_unlock(&m->lock);
	return !ss_device_lacks(m->core, m->dev, ss_minus(bytes, idle));
}

/* Idle segments that are too short for a request make room for one that is not. `all`: all of
 * them are released, so that the pool may grow for the next requests, too. */
void ss_segments_make_room(struct ss_memory *m, uint64_t want, uint64_t need, bool all)
{
	uint64_t high = atomic_load(&m->reserved_high), reserved = atomic_load(&m->reserved);

	if (!reserved || reserved + want <= high)
		return;
	pthread_mutex_lock(&m->lock);
	if (m->gather)
		m->gather(m);
	pthread_mutex_unlock(&m->lock);
	if (!ss_segments_could_fit(m, need) ||
	    !ss_segments_release(m, all ? 0 : ss_minus(high, want), floor_of(m, want), UINT64_MAX))
		return;
	pthread_mutex_lock(&m->lock);
	m->exchanges++;
	pthread_mutex_unlock(&m->lock);
}

/* ---- all segments ------------------------------------------------------------ */

enum ss_status ss_segments_open(struct ss_memory *m)
{
	enum ss_status s = SS_OK;

	for (struct ss_segment *seg = m->segments; seg && s == SS_OK; seg = seg->next) {
		if (m->vmm && seg == m->vmm->seg)
			continue;
		seg->opening = true; /* seg stays in the list, and so do the segments after it */
		pthread_mutex_unlock(&m->lock);
		s = open_segment(m, seg->native, seg->native_size, seg->chunk);
		pthread_mutex_lock(&m->lock);
		seg->opening = false;
	}
	return s;
}

void ss_segments_drop(struct ss_memory *m, enum ss_drop how)
{
	bool own = how == SS_DROP_ALL || (how != SS_DROP_FORGET && m->backing != SS_BACKING_HIP);
	struct ss_segment *seg;

	ss_unreturned_drop(m, own);
	pthread_mutex_lock(&m->lock);
	while ((seg = m->segments)) {
		void *native = seg->native, *chunk = seg->chunk;
		uint64_t size = seg->native_size, when = detach(m, seg);

		ss_cap_return(m, size);
		pthread_mutex_unlock(&m->lock);
		ss_memory_record(m, when, SS_TRACE_SEGMENT_FREE, (uintptr_t)native, size, 0);
		if (chunk ? how != SS_DROP_FORGET : own)
			(void)return_memory(m, native, size, chunk);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}
