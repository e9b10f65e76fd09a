/* SPDX-License-Identifier: MIT */
/* The device memory of one process at a moment of its trace. */
#include <stdlib.h>

#include "cli/analysis/trace_memory.h"

bool ss_trace_memory_init(struct ss_trace_memory *m, const struct ss_trace_reader *reader,
			  const struct ss_sites *sites, ss_trace_memory_watch *watch, void *arg)
{
	*m = (struct ss_trace_memory){.reader = reader, .sites = sites, .watch = watch, .arg = arg};
	m->pool = calloc(SS_POOLS, sizeof(*m->pool));
	return m->pool != NULL;
}

void ss_trace_memory_finish(struct ss_trace_memory *m)
{
	ss_ranges_finish(&m->blocks);
	ss_ranges_finish(&m->mapped);
	free(m->pool);
	m->pool = NULL;
}

uint8_t ss_trace_memory_device(const struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	const struct ss_trace_pool_def *pool;

	if (e->device >= 0)
		return (uint8_t)e->device;
	pool = e->pool ? ss_trace_reader_pool(m->reader, e->pool) : NULL;
	return pool && pool->device >= 0 ? (uint8_t)pool->device : SS_NO_DEVICE;
}

static void tell(const struct ss_trace_memory *m, enum ss_change change,
		 const struct ss_range *range, const struct ss_trace_item *e)
{
	if (m->watch)
		m->watch(m->arg, change, range, e);
}

static void add_live(struct ss_trace_memory *m, const struct ss_range *b, int sign)
{
	struct ss_level *of[] = {&m->device[b->device], &m->pool[b->pool]};

	for (int i = 0; i < 2; i++) {
		of[i]->asked += (uint64_t)sign * b->asked;
		of[i]->used += (uint64_t)sign * b->size;
	}
}

static void add_flight(struct ss_trace_memory *m, const struct ss_range *b, int sign)
{
	m->device[b->device].in_flight += (uint64_t)sign * b->size;
	m->pool[b->pool].in_flight += (uint64_t)sign * b->size;
}

static void add_mapped(struct ss_trace_memory *m, const struct ss_range *s, int sign)
{
	m->device[s->device].reserved += (uint64_t)sign * s->size;
	m->pool[s->pool].reserved += (uint64_t)sign * s->size;
}

/* Adds what is left of `old` outside of [base, end). */
static bool add_rest(struct ss_trace_memory *m, struct ss_ranges *set, const struct ss_range *old,
		     uint64_t base, uint64_t end,
		     void (*add)(struct ss_trace_memory *m, const struct ss_range *range, int sign))
{
	uint64_t old_end = old->base + old->size;
	struct ss_range rest = *old;

	rest.part = true;
	if (old->base < base) {
		rest.size = base - old->base;
		if (!ss_ranges_add(set, &rest))
			return false;
		add(m, &rest, 1);
	}
	if (old_end > end) {
		rest.base = end;
		rest.size = old_end - end;
		if (!ss_ranges_add(set, &rest))
			return false;
		add(m, &rest, 1);
	}
	return true;
}

/* The freed blocks in [base, end) may be reused from now on. With `honest` the search ends at the
 * first live block, because a program's REUSABLE never covers one; a hostile file could otherwise
 * make each event search all blocks. */
static bool end_flight(struct ss_trace_memory *m, uint64_t base, uint64_t end, bool honest,
		       const struct ss_trace_item *e)
{
	const struct ss_range *at = ss_ranges_from(&m->blocks, base);
	struct ss_range old;

	while (at && at->base < end && (at->freed || !honest)) {
		uint64_t next = at->base + at->size;
		if (at->freed) {
			ss_ranges_remove(&m->blocks, at->base, &old);
			add_flight(m, &old, -1);
			if (!old.part)
				tell(m, SS_CHANGE_REUSABLE, &old, e);
			if (!add_rest(m, &m->blocks, &old, base, end, add_flight))
				return false;
		}
		at = ss_ranges_from(&m->blocks, next);
	}
	return true;
}

/* Blocks in [base, end) are no longer there, although nobody freed them. */
static void drop_live(struct ss_trace_memory *m, uint64_t base, uint64_t end,
		      const struct ss_trace_item *e, uint64_t *count)
{
	const struct ss_range *at;
	struct ss_range old;

	while ((at = ss_ranges_from(&m->blocks, base)) && at->base < end) {
		ss_ranges_remove(&m->blocks, at->base, &old);
		++*count;
		add_live(m, &old, -1);
		tell(m, SS_CHANGE_FREE, &old, e);
		tell(m, SS_CHANGE_REUSABLE, &old, e);
	}
}

/* Removes all that was mapped in [base, end), with the blocks in it. */
static bool unmap(struct ss_trace_memory *m, uint64_t base, uint64_t end,
		  const struct ss_trace_item *e)
{
	const struct ss_range *at;
	struct ss_range old;

	while ((at = ss_ranges_from(&m->mapped, base)) && at->base < end) {
		uint64_t from = at->base, to = at->base + at->size;
		if (at->chunk) {
			from = from > base ? from : base;
			to = to < end ? to : end;
		}
		if (!end_flight(m, from, to, false, e))
			return false;
		drop_live(m, from, to, e, &m->reset_blocks);
		ss_ranges_remove(&m->mapped, at->base, &old);
		add_mapped(m, &old, -1);
		if (!add_rest(m, &m->mapped, &old, from, to, add_mapped))
			return false;
		old.base = from;
		old.size = to - from;
		tell(m, SS_CHANGE_UNMAP, &old, e);
	}
	return true;
}

static bool map(struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	uint64_t end = ss_range_end(e->address, e->size);
	struct ss_range s = {.base = e->address,
			     .size = end - e->address,
			     .pool = (uint16_t)e->pool,
			     .device = ss_trace_memory_device(m, e),
			     .begin_ns = e->time_ns,
			     .chunk = e->kind == SS_TRACE_MAP};

	if (s.size == 0)
		return true;
	if (!unmap(m, s.base, end, e) || !ss_ranges_add(&m->mapped, &s))
		return false;
	add_mapped(m, &s, 1);
	tell(m, SS_CHANGE_MAP, &s, e);
	return true;
}

static bool allocate(struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	uint64_t size = e->rounded ? e->rounded : 1;
	uint64_t end = ss_range_end(e->address, size);
	struct ss_range b = {.base = e->address,
			     .size = end - e->address,
			     .asked = e->size < end - e->address ? e->size : end - e->address,
			     .begin_ns = e->since_ns ? e->since_ns : e->time_ns,
			     .stream = e->stream,
			     .first_stream = e->stream,
			     .tid = e->tid,
			     .pool = (uint16_t)e->pool,
			     .device = ss_trace_memory_device(m, e),
			     .site = ss_sites_of(m->sites, e),
			     .freed = e->kind == SS_TRACE_IN_FLIGHT,
			     .free_ns = e->kind == SS_TRACE_IN_FLIGHT ? e->time_ns : 0};

	if (b.size == 0)
		return true;
	const struct ss_range *at = ss_ranges_from(&m->blocks, b.base);
	if (at && at->base < end) { /* most often the addresses are free */
		if (!end_flight(m, b.base, end, false, e))
			return false;
		drop_live(m, b.base, end, e, &m->lost_frees);
	}
	if (!ss_ranges_add(&m->blocks, &b))
		return false;
	if (b.freed)
		add_flight(m, &b, 1);
	else
		add_live(m, &b, 1);
	tell(m, b.freed ? SS_CHANGE_IN_FLIGHT : SS_CHANGE_ALLOC, &b, e);
	return true;
}

static void release(struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	struct ss_range *at = ss_ranges_at(&m->blocks, e->address), old;

	if (!at || at->freed) {
		m->unknown_frees++;
		return;
	}
	at->free_ns = e->time_ns;
	at->stream = e->stream ? e->stream : at->stream;
	if (e->flags & SS_TRACE_F_REUSABLE) {
		ss_ranges_remove(&m->blocks, e->address, &old);
		add_live(m, &old, -1);
		tell(m, SS_CHANGE_FREE, &old, e);
		tell(m, SS_CHANGE_REUSABLE, &old, e);
		return;
	}
	at->freed = true;
	add_live(m, at, -1);
	add_flight(m, at, 1);
	tell(m, SS_CHANGE_FREE, at, e);
}

static void outside(struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	uint8_t device = ss_trace_memory_device(m, e);
	struct ss_outside *o = &m->outside[device];
	uint32_t kind = e->flags & SS_TRACE_OUTSIDE_KIND;
	uint64_t *bytes, known;

	if (kind >= SS_TRACE_OUTSIDE_KINDS)
		return;
	bytes = &o->bytes[kind];
	if (kind == SS_TRACE_OUTSIDE_KERNEL) {
		known = m->device[device].reserved + o->bytes[SS_TRACE_OUTSIDE_ARRAY] +
			o->bytes[SS_TRACE_OUTSIDE_DEVICE];
		*bytes = e->size;
		o->rest = e->size > known ? e->size - known : 0;
	} else if (e->flags & SS_TRACE_OUTSIDE_FREE) {
		*bytes -= *bytes < e->size ? *bytes : e->size;
	} else if (e->size < UINT64_MAX / 2 - *bytes) {
		*bytes += e->size;
	}
}

bool ss_trace_memory_apply(struct ss_trace_memory *m, const struct ss_trace_item *e)
{
	uint64_t end = ss_range_end(e->address, e->size);

	switch (e->kind) {
	case SS_TRACE_ALLOC:
	case SS_TRACE_IN_FLIGHT: return allocate(m, e);
	case SS_TRACE_FREE: release(m, e); return true;
	case SS_TRACE_REUSABLE: return end_flight(m, e->address, end, true, e);
	case SS_TRACE_SEGMENT_ALLOC:
	case SS_TRACE_MAP:
		return e->kind == SS_TRACE_SEGMENT_ALLOC && (e->flags & SS_TRACE_S_RESERVED) ?
			       true :
			       map(m, e);
	case SS_TRACE_SEGMENT_FREE:
	case SS_TRACE_UNMAP:
		return (e->kind == SS_TRACE_SEGMENT_FREE && (e->flags & SS_TRACE_S_RESERVED)) ||
		       unmap(m, e->address, end, e);
	case SS_TRACE_OUTSIDE: outside(m, e); return true;
	default: return true;
	}
}
