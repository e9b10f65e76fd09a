/* SPDX-License-Identifier: MIT */
/* The entries of a device's history, and the program's own ranges, as events. */
#include <string.h>

#include "cli/snapshot/conversion.h"

struct entry {
	size_t device;
	uint64_t address, size, time_ns;
	uint32_t stream, stack;
};

static void put_alloc(struct ss_conversion *c, const struct entry *e)
{
	struct ss_snapshot_block *b = ss_conversion_find(c, e->device, e->address);
	struct ss_trace_alloc *r;

	if (!e->size)
		return;
	ss_conversion_name_block(c, e->device, e->address, ss_conversion_rounded(e->size));
	if (b)
		ss_conversion_drop(c, b);
	ss_conversion_add(c, e->device, e->address, ss_conversion_rounded(e->size));
	r = ss_builder_record(&c->history, SS_TRACE_ALLOC, sizeof(*r), e->time_ns);
	if (r) {
		uint64_t more = (ss_conversion_rounded(e->size) - ((e->size + 255) & ~255ull)) /
				256;
		ss_conversion_fill(&r->e, e->device, e->stream, e->stack, 0);
		r->ptr = e->address;
		r->size = SS_TRACE_SIZE(e->size) | more << 48;
	}
}

static void put_free(struct ss_conversion *c, const struct entry *e, bool completed)
{
	struct ss_snapshot_block *b = ss_conversion_find(c, e->device, e->address);

	if (!b && e->size &&
	    ss_conversion_name_block(c, e->device, e->address, ss_conversion_rounded(e->size))) {
		b = ss_conversion_add(c, e->device, e->address, ss_conversion_rounded(e->size));
		ss_conversion_lived(c, e->device, e->address, ss_conversion_rounded(e->size),
				    e->size, e->stream, 0);
	}
	if (!b)
		return;
	if (!b->freed) {
		struct ss_trace_free *r = ss_builder_record(&c->history, SS_TRACE_FREE, sizeof(*r),
							    e->time_ns);
		if (r) {
			ss_conversion_fill(&r->e, e->device, e->stream, e->stack,
					   completed ? SS_TRACE_F_REUSABLE : 0);
			r->ptr = e->address;
		}
		b->freed = true;
	} else if (completed) {
		struct ss_trace_reusable *r = ss_builder_record(&c->history, SS_TRACE_REUSABLE,
								sizeof(*r), e->time_ns);
		if (r) {
			r->r.pool = SS_SNAPSHOT_POOL(e->device);
			r->base = e->address;
			r->size = b->size;
		}
	}
	if (completed)
		ss_conversion_drop(c, b);
}

static void put_oom(struct ss_conversion *c, const struct entry *e, const struct ss_pickle *entry)
{
	struct ss_trace_oom *r = ss_builder_record(&c->history, SS_TRACE_OOM, sizeof(*r),
						   e->time_ns);

	if (r) {
		ss_conversion_fill(&r->e, e->device, e->stream, e->stack, 0);
		r->size = e->size;
		ss_snapshot_number(entry, "device_free", &r->device_free);
	}
}

/* Older snapshots have no times: then an entry is a microsecond after the one before it. */
uint64_t ss_conversion_time(const struct ss_pickle *entry, size_t n)
{
	uint64_t us;

	if (!ss_snapshot_number(entry, "time_us", &us))
		us = n + 1;
	return us < UINT64_MAX / 2000 ? us * 1000 : 0;
}

static bool put_entry(struct ss_conversion *c, size_t device, const struct ss_pickle *entry,
		      size_t n)
{
	struct entry e = {.device = device, .time_ns = ss_conversion_time(entry, n)};
	const struct ss_pickle *action;
	uint64_t stream = 0;

	if (ss_snapshot_too_many_keys(entry))
		return ss_conversion_wrong(c, "trace entry %zu has too many keys%s", n, "");
	action = ss_pickle_get(entry, "action");
	if (!action || action->type != SS_PICKLE_STRING)
		return ss_conversion_wrong(c, "trace entry %zu has no action%s", n, "");
	if (!ss_snapshot_number(entry, "addr", &e.address) && !ss_pickle_is(action, "oom"))
		return true; /* marks of the program */
	ss_snapshot_number(entry, "size", &e.size);
	ss_snapshot_number(entry, "stream", &stream);
	e.stream = ss_conversion_stream(c, device, stream);
	e.stack = ss_snapshot_stack(&c->stacks, ss_pickle_get(entry, "frames"));
	e.size = e.size < 1ull << 47 ? e.size : 0;
	if (ss_pickle_is(action, "alloc")) {
		put_alloc(c, &e);
	} else if (ss_pickle_is(action, "free_requested") ||
		   ss_pickle_is(action, "free_completed")) {
		put_free(c, &e, ss_pickle_is(action, "free_completed"));
	} else if (ss_pickle_is(action, "oom")) {
		put_oom(c, &e, entry);
	} else if (ss_pickle_is(action, "segment_alloc") || ss_pickle_is(action, "segment_map")) {
		ss_conversion_name_segment(c, device, e.address, e.size, false);
		ss_conversion_segment(&c->history, SS_TRACE_MAP, device, e.address, e.size, 0,
				      e.time_ns);
	} else if (ss_pickle_is(action, "segment_free") || ss_pickle_is(action, "segment_unmap")) {
		ss_conversion_name_segment(c, device, e.address, e.size, true);
		ss_conversion_segment(&c->history, SS_TRACE_UNMAP, device, e.address, e.size, 0,
				      e.time_ns);
	}
	return true;
}

bool ss_conversion_trace(struct ss_conversion *c, size_t device)
{
	const struct ss_pickle *trace = ss_pickle_at(c->snapshot.traces, device);

	if (!ss_pickle_count(trace))
		return true;
	if (!ss_pickle_first_time(trace))
		return ss_conversion_wrong(c, "device %zu has the trace of another one%s", device,
					   "");
	c->history.last_ns = 0;
	for (size_t i = 0; i < ss_pickle_count(trace) && !c->builder.failed && !c->no_memory; i++) {
		if (i == 0)
			ss_conversion_device(c, device);
		if (!put_entry(c, device, ss_pickle_at(trace, i), i))
			return false;
	}
	ss_builder_end(&c->history);
	return true;
}

/* The program's own ranges: they become phases. */
void ss_conversion_annotations(struct ss_conversion *c)
{
	c->history.last_ns = 0;
	for (size_t i = 0; i < ss_pickle_count(c->snapshot.annotations); i++) {
		const struct ss_pickle *a = ss_pickle_at(c->snapshot.annotations, i), *name, *stage;

		if (ss_snapshot_too_many_keys(a))
			continue;
		name = ss_pickle_get(a, "name");
		stage = ss_pickle_get(a, "stage");
		bool begins = ss_pickle_is(stage, "START");
		if ((!begins && !ss_pickle_is(stage, "END")) || !name ||
		    name->type != SS_PICKLE_STRING)
			continue;
		size_t length = !begins                       ? 0 :
				name->len < SS_TRACE_TEXT_MAX ? name->len :
								SS_TRACE_TEXT_MAX;
		struct ss_trace_phase *r = ss_builder_record(&c->history, SS_TRACE_PHASE,
							     sizeof(*r) + (length + 7) / 8 * 8,
							     ss_conversion_time(a, i));
		if (!r)
			break;
		r->e.stream_flags = SS_TRACE_PACK(0, begins ? SS_TRACE_PHASE_PUSH :
							      SS_TRACE_PHASE_POP);
		r->e.stack_device = SS_TRACE_PACK(0, SS_TRACE_NO_DEVICE);
		r->length = (uint32_t)length;
		memcpy(r->text, name->s, length);
	}
	ss_builder_end(&c->history);
}
