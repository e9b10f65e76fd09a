/* SPDX-License-Identifier: MIT */
/* Plays the events before a part, and then returns the memory that they left as events. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/window.h"

enum { BEFORE, MAPPED, FREED, LIVE, OUTSIDE, INSIDE };

void ss_window_begin(struct ss_window *w, struct ss_trace_reader *reader,
		     const struct ss_part *part)
{
	memset(w, 0, sizeof(*w));
	w->reader = reader;
	w->part = *part;
}

static void drop_memory(struct ss_window *w)
{
	if (w->memory.pool)
		ss_trace_memory_finish(&w->memory);
	free(w->stacks.of_stack);
	w->stacks.of_stack = NULL;
}

void ss_window_finish(struct ss_window *w)
{
	drop_memory(w);
	memset(w, 0, sizeof(*w));
}

/* Plays the events before the part. False: out of memory. */
static bool play(struct ss_window *w)
{
	if (!ss_sites_of_stacks(&w->stacks, w->reader) ||
	    !ss_trace_memory_init(&w->memory, w->reader, &w->stacks, NULL, NULL))
		return false;
	while ((w->has_first = ss_trace_reader_next(w->reader, &w->first))) {
		w->begin_ns = w->begin_ns ? w->begin_ns : w->first.time_ns;
		w->real_offset = w->first.real_ns - w->first.time_ns;
		if (w->first.time_ns - w->begin_ns >= w->part.from_ns)
			break;
		if (!ss_trace_memory_apply(&w->memory, &w->first))
			return false;
	}
	return true;
}

/* The next range of the set that the state is about. NULL: no more. */
static const struct ss_range *next_range(struct ss_window *w)
{
	const struct ss_ranges *set = w->state == MAPPED ? &w->memory.mapped : &w->memory.blocks;

	do {
		w->at = w->walk.begun || w->at ? ss_ranges_next(set, &w->walk, w->at) :
						 ss_ranges_from(set, 0);
	} while (w->at && w->state != MAPPED && w->at->freed != (w->state == FREED));
	return w->at;
}

static void tell(const struct ss_window *w, const struct ss_range *r, struct ss_trace_item *out)
{
	uint64_t now_ns = w->begin_ns + w->part.from_ns;

	*out = (struct ss_trace_item){
		.kind = w->state == MAPPED ? (r->chunk ? SS_TRACE_MAP : SS_TRACE_SEGMENT_ALLOC) :
			r->freed           ? SS_TRACE_IN_FLIGHT :
					     SS_TRACE_ALLOC,
		.time_ns = now_ns,
		.real_ns = now_ns + w->real_offset,
		.tid = r->tid,
		.device = r->device == SS_NO_DEVICE ? -1 : r->device,
		.pool = r->pool,
		.flags = SS_TRACE_F_LIVED,
		.address = r->base,
		.size = r->size};
	if (w->state != MAPPED) {
		out->stream = r->freed ? r->stream : r->first_stream;
		out->stack = r->site;
		out->size = r->asked;
		out->rounded = r->size;
		out->since_ns = r->begin_ns;
	}
}

/* The next sum of memory outside of the pools. */
static bool next_outside(struct ss_window *w, struct ss_trace_item *out)
{
	while (w->next_outside < SS_DEVICES * SS_TRACE_OUTSIDE_KINDS) {
		unsigned device = w->next_outside / SS_TRACE_OUTSIDE_KINDS;
		unsigned kind = w->next_outside++ % SS_TRACE_OUTSIDE_KINDS;
		uint64_t bytes = w->memory.outside[device].bytes[kind];
		if (!bytes)
			continue;
		uint64_t now_ns = w->begin_ns + w->part.from_ns;
		*out = (struct ss_trace_item){.kind = SS_TRACE_OUTSIDE,
					      .time_ns = now_ns,
					      .real_ns = now_ns + w->real_offset,
					      .device = device == SS_NO_DEVICE ? -1 : (int)device,
					      .flags = kind | SS_TRACE_OUTSIDE_LIVED,
					      .size = bytes};
		return true;
	}
	return false;
}

static bool next_inside(struct ss_window *w, struct ss_trace_item *out)
{
	if (w->has_first)
		*out = w->first;
	else if (!ss_trace_reader_next(w->reader, out))
		return false;
	w->has_first = false;
	w->begin_ns = w->begin_ns ? w->begin_ns : out->time_ns;
	return !w->part.to_ns || out->time_ns - w->begin_ns <= w->part.to_ns;
}

bool ss_window_next_slow(struct ss_window *w, struct ss_trace_item *out)
{
	if (w->state == BEFORE && w->part.from_ns == 0) {
		w->state = INSIDE;
	} else if (w->state == BEFORE) {
		w->failed = !play(w);
		if (w->failed)
			return false;
		w->state = MAPPED;
	}
	for (; w->state < OUTSIDE; w->state++) {
		const struct ss_range *r = next_range(w);
		if (r) {
			tell(w, r, out);
			return true;
		}
		memset(&w->walk, 0, sizeof(w->walk));
		w->at = NULL;
	}
	if (w->state == OUTSIDE) { /* after the reserved memory, from which `rest` is computed */
		if (next_outside(w, out))
			return true;
		drop_memory(w);
		w->state = INSIDE;
	}
	return next_inside(w, out);
}
