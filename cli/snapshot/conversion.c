/* SPDX-License-Identifier: MIT */
/*
 * Writes the definitions that events name, and the memory from before the history: addresses that
 * the history frees or that exist at its end, but that the history did not allocate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/snapshot/conversion.h"

bool ss_conversion_wrong(struct ss_conversion *c, const char *fmt, size_t n, const char *what)
{
	int at = snprintf(c->err, c->err_size, "%s: ", c->path);

	if (at > 0 && (size_t)at < c->err_size)
		snprintf(c->err + at, c->err_size - (size_t)at, fmt, n, what);
	return false;
}

/* ---- definitions ----------------------------------------------------------- */

uint32_t ss_conversion_stream(struct ss_conversion *c, uint64_t device, uint64_t handle)
{
	uint64_t key[2] = {device, handle};
	struct ss_snapshot_stream *s;

	HASH_FIND(hh, c->streams, key, sizeof(key), s);
	if (s || HASH_COUNT(c->streams) >= SS_SNAPSHOT_STREAMS)
		return s ? s->id : 0;
	s = calloc(1, sizeof(*s));
	if (!s) {
		c->no_memory = true;
		return 0;
	}
	memcpy(s->key, key, sizeof(key));
	s->id = HASH_COUNT(c->streams) + 1;
	HASH_ADD(hh, c->streams, key, sizeof(s->key), s);
	struct ss_trace_stream *r = ss_builder_record(&c->definitions, SS_TRACE_STREAM, sizeof(*r),
						      0);
	if (r) {
		r->id = s->id;
		r->device = (uint8_t)device;
		r->kind = handle ? SS_TRACE_STREAM_UNKNOWN : SS_TRACE_STREAM_NULL;
		r->handle = handle;
	}
	return s->id;
}

void ss_conversion_text(struct ss_conversion *c, enum ss_trace_info_key key, const char *text)
{
	size_t length = strnlen(text, SS_TRACE_TEXT_MAX), size = (length + 7) / 8 * 8;
	struct ss_trace_info *r = ss_builder_record(&c->definitions, SS_TRACE_INFO,
						    sizeof(*r) + size, 0);

	if (r) {
		r->key = key;
		r->length = (uint16_t)length;
		memcpy(r->text, text, length);
	}
}

void ss_conversion_device(struct ss_conversion *c, size_t device)
{
	if (c->used[device])
		return;
	c->used[device] = true;
	struct ss_trace_device *d = ss_builder_record(&c->definitions, SS_TRACE_DEVICE, sizeof(*d),
						      0);
	if (d)
		d->device = (uint8_t)device;
	struct ss_trace_pool *p = ss_builder_record(&c->definitions, SS_TRACE_POOL, sizeof(*p), 0);
	if (p) {
		p->r.pool = SS_SNAPSHOT_POOL(device);
		p->handle = device;
		p->device = (uint8_t)device;
		snprintf(p->name, sizeof(p->name), "PyTorch");
	}
}

void ss_conversion_fill(struct ss_trace_event *e, size_t device, uint32_t stream, uint32_t stack,
			uint32_t flags)
{
	e->r.pool = SS_SNAPSHOT_POOL(device);
	e->stream_flags = SS_TRACE_PACK(stream, flags);
	e->stack_device = SS_TRACE_PACK(stack, device);
}

/* ---- what was there before ------------------------------------------------- */

void ss_conversion_segment(struct ss_builder_chain *to, enum ss_trace_kind kind, size_t device,
			   uint64_t base, uint64_t size, uint32_t flags, uint64_t time_ns)
{
	struct ss_trace_segment *r = ss_builder_record(to, kind, sizeof(*r), time_ns);

	if (r) {
		ss_conversion_fill(&r->e, device, 0, 0, flags);
		r->base = base;
		r->size = size;
	}
}

/* Marks the addresses as named. `before`: those that nothing named so far existed before the
 * history. Ranges that follow each other become one, so that all calls together look at each range
 * once. */
void ss_conversion_name_segment(struct ss_conversion *c, size_t device, uint64_t base,
				uint64_t size, bool before)
{
	uint64_t end = ss_range_end(base, size), at = base, low = base, high = end;
	struct ss_ranges *set = &c->segments[device];
	const struct ss_range *r;
	struct ss_range old;

	while ((r = ss_ranges_from(set, low)) && r->base < end) {
		if (before && r->base > at)
			ss_conversion_segment(&c->before, SS_TRACE_MAP, device, at, r->base - at,
					      SS_TRACE_F_LIVED, c->begin_ns);
		at = r->base + r->size;
		low = r->base < low ? r->base : low;
		high = at > high ? at : high;
		ss_ranges_remove(set, r->base, &old);
	}
	if (before && at < end)
		ss_conversion_segment(&c->before, SS_TRACE_MAP, device, at, end - at,
				      SS_TRACE_F_LIVED, c->begin_ns);
	if (high > low && !ss_ranges_add(set, &(struct ss_range){.base = low, .size = high - low}))
		c->no_memory = true;
}

struct ss_snapshot_block *ss_conversion_find(struct ss_conversion *c, size_t device,
					     uint64_t address)
{
	uint64_t key[2] = {device, address};
	struct ss_snapshot_block *b;

	HASH_FIND(hh, c->blocks, key, sizeof(key), b);
	return b;
}

struct ss_snapshot_block *ss_conversion_add(struct ss_conversion *c, size_t device,
					    uint64_t address, uint64_t size)
{
	struct ss_snapshot_block *b = calloc(1, sizeof(*b));

	if (!b) {
		c->no_memory = true;
		return NULL;
	}
	b->key[0] = device;
	b->key[1] = address;
	b->size = size;
	HASH_ADD(hh, c->blocks, key, sizeof(b->key), b);
	return b;
}

void ss_conversion_drop(struct ss_conversion *c, struct ss_snapshot_block *b)
{
	HASH_DEL(c->blocks, b);
	free(b);
}

/* Marks the addresses of a block as named. False: some were named already, so the block did not
 * live before the history. */
bool ss_conversion_name_block(struct ss_conversion *c, size_t device, uint64_t address,
			      uint64_t size)
{
	uint64_t end = ss_range_end(address, size), low = address, high = end;
	struct ss_ranges *set = &c->named[device];
	const struct ss_range *r;
	struct ss_range old;
	bool first = true;

	while ((r = ss_ranges_from(set, low)) && r->base < end) {
		low = r->base < low ? r->base : low;
		high = r->base + r->size > high ? r->base + r->size : high;
		first = false;
		ss_ranges_remove(set, r->base, &old);
	}
	if (high > low && !ss_ranges_add(set, &(struct ss_range){.base = low, .size = high - low}))
		c->no_memory = true;
	return first;
}

void ss_conversion_lived(struct ss_conversion *c, size_t device, uint64_t address, uint64_t size,
			 uint64_t asked, uint32_t stream, uint32_t stack)
{
	struct ss_trace_lived *r = ss_builder_record(&c->before, SS_TRACE_ALLOC, sizeof(*r),
						     c->begin_ns);

	if (r) {
		ss_conversion_fill(&r->a.e, device, stream, stack, SS_TRACE_F_LIVED);
		r->a.ptr = address;
		r->a.size = SS_TRACE_SIZE(asked);
		r->rounded = size;
		r->since_ns = c->begin_ns;
	}
}
