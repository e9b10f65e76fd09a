/* SPDX-License-Identifier: MIT */
/* Follows the ranges that are open, and adds up those that end. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/phases.h"
#include "trace/grow.h"

struct ss_phase_open {
	uint32_t phase, tid, depth;
	bool nested; /* PUSH */
	uint64_t range, begin_ns;
	uint64_t used_peak, used_peak_ns, reserved_peak;
	int device;
	uint64_t used, allocs, frees; /* when it began */
};

/* Makes the phases up to this one. False: out of memory. */
static bool add_names(struct ss_phases *p, const struct ss_trace_reader *r, uint32_t number)
{
	while (p->count < number) {
		const char *name = ss_trace_reader_phase(r, (uint32_t)p->count + 1);
		struct ss_phase *more = ss_grow(p->phase, p->count, sizeof(*more));
		if (!more)
			return false;
		p->phase = more;
		more[p->count] = (struct ss_phase){.name = strdup(name ? name : ""),
						   .device = SS_NO_DEVICE};
		if (!more[p->count].name)
			return false;
		p->count++;
	}
	return true;
}

static void raise_open(struct ss_phase_open *o, int device, const struct ss_level *level,
		       uint64_t now_ns)
{
	if (level->used > o->used_peak || o->device == SS_NO_DEVICE) {
		o->used_peak = level->used;
		o->used_peak_ns = now_ns;
		o->device = device;
	}
	o->reserved_peak = level->reserved > o->reserved_peak ? level->reserved : o->reserved_peak;
}

void ss_phases_level(struct ss_phases *p, int device, const struct ss_level *level, uint64_t now_ns)
{
	for (size_t i = 0; i < p->opens; i++)
		raise_open(&p->open[i], device, level, now_ns);
}

static bool begin(struct ss_phases *p, const struct ss_trace_item *e,
		  const struct ss_phase_totals *now)
{
	uint32_t depth = 0;

	if (!p->open && !(p->open = calloc(SS_PHASES_OPEN, sizeof(*p->open))))
		return false;
	if (p->opens == SS_PHASES_OPEN)
		return true;
	for (size_t i = 0; i < p->opens; i++)
		depth += p->open[i].tid == e->tid;
	struct ss_phase_open *o = &p->open[p->opens++];
	*o = (struct ss_phase_open){.phase = e->phase - 1,
				    .tid = e->tid,
				    .depth = depth,
				    .nested = e->flags == SS_TRACE_PHASE_PUSH,
				    .range = e->range,
				    .begin_ns = e->time_ns,
				    .device = SS_NO_DEVICE,
				    .used = now->used,
				    .allocs = now->allocs,
				    .frees = now->frees};
	for (int d = 0; d < SS_DEVICES; d++)
		if (now->level[d].reserved || now->level[d].used)
			raise_open(o, d, &now->level[d], e->time_ns);
	return true;
}

/* Drops the shortest spans, until at most half of them are left. From now on, spans of that length
 * are not added. */
static void thin_spans(struct ss_phases *p)
{
	size_t kept = p->spans;

	while (kept > SS_PHASE_SPANS / 2) {
		kept = 0;
		p->least_ns = p->least_ns ? 2 * p->least_ns : 1000;
		for (size_t i = 0; i < p->spans; i++)
			if (p->span[i].end_ns - p->span[i].begin_ns >= p->least_ns)
				p->span[kept++] = p->span[i];
		p->spans = kept;
		if (p->least_ns > UINT64_MAX / 4)
			p->spans = kept = 0;
	}
}

static bool add_span(struct ss_phases *p, const struct ss_phase_open *o, uint64_t end_ns)
{
	p->spans_all++;
	if (end_ns - o->begin_ns < p->least_ns)
		return true;
	if (p->spans == SS_PHASE_SPANS)
		thin_spans(p);
	struct ss_phase_span *more = ss_grow(p->span, p->spans, sizeof(*more));
	if (!more)
		return false;
	p->span = more;
	more[p->spans++] = (struct ss_phase_span){o->phase, o->tid, o->depth, o->begin_ns, end_ns};
	return true;
}

static bool end(struct ss_phases *p, size_t at, const struct ss_phase_totals *now, uint64_t end_ns)
{
	struct ss_phase_open o = p->open[at];
	struct ss_phase *f = &p->phase[o.phase];
	uint64_t ns = end_ns > o.begin_ns ? end_ns - o.begin_ns : 0;

	memmove(&p->open[at], &p->open[at + 1], (--p->opens - at) * sizeof(*p->open));
	f->count++;
	f->ns += ns;
	f->longest_ns = ns > f->longest_ns ? ns : f->longest_ns;
	f->allocs += now->allocs - o.allocs;
	f->frees += now->frees - o.frees;
	f->grew += (double)now->used - (double)o.used;
	f->reserved_peak = o.reserved_peak > f->reserved_peak ? o.reserved_peak : f->reserved_peak;
	if (f->best_number == 0 || o.used_peak > f->used_peak) {
		f->used_peak = o.used_peak;
		f->used_peak_ns = o.used_peak_ns;
		f->device = o.device;
		f->best_begin_ns = o.begin_ns;
		f->best_end_ns = o.begin_ns + ns;
		f->best_number = f->count;
	}
	if (p->wanted && f->count == p->wanted_number && strcmp(f->name, p->wanted) == 0) {
		p->wanted_begin_ns = o.begin_ns;
		p->wanted_end_ns = o.begin_ns + ns;
	}
	return add_span(p, &o, o.begin_ns + ns);
}

/* The range that the event ends: the thread's innermost, or the one with its number. SIZE_MAX:
 * none. */
static size_t find_open(const struct ss_phases *p, const struct ss_trace_item *e)
{
	for (size_t i = p->opens; i-- > 0;) {
		const struct ss_phase_open *o = &p->open[i];
		if (e->flags == SS_TRACE_PHASE_POP ? o->nested && o->tid == e->tid :
						     !o->nested && o->range == e->range)
			return i;
	}
	return SIZE_MAX;
}

static bool add_mark(struct ss_phases *p, const struct ss_trace_item *e)
{
	if (p->marks_all++ >= SS_PHASE_MARKS)
		return true;
	struct ss_phase_mark *more = ss_grow(p->mark, p->marks, sizeof(*more));
	if (!more)
		return false;
	p->mark = more;
	more[p->marks++] = (struct ss_phase_mark){e->phase - 1, e->tid, e->time_ns};
	return true;
}

bool ss_phases_event(struct ss_phases *p, const struct ss_trace_reader *r,
		     const struct ss_trace_item *e, const struct ss_phase_totals *now)
{
	size_t at;

	switch (e->flags) {
	case SS_TRACE_PHASE_PUSH:
	case SS_TRACE_PHASE_START:
	case SS_TRACE_PHASE_MARK:
		if (!e->phase)
			return true;
		if (!add_names(p, r, e->phase))
			return false;
		return e->flags == SS_TRACE_PHASE_MARK ? add_mark(p, e) : begin(p, e, now);
	case SS_TRACE_PHASE_POP:
	case SS_TRACE_PHASE_STOP:
		at = find_open(p, e);
		if (at != SIZE_MAX)
			return end(p, at, now, e->time_ns);
		p->unmatched++;
		return true;
	default: return true;
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct ss_phase_span *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

void ss_phases_end(struct ss_phases *p, const struct ss_phase_totals *now, uint64_t end_ns)
{
	while (p->opens)
		(void)end(p, p->opens - 1, now, end_ns);
	if (p->spans)
		qsort(p->span, p->spans, sizeof(*p->span), by_begin);
	free(p->open);
	p->open = NULL;
}

void ss_phases_finish(struct ss_phases *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->phase[i].name);
	free(p->phase);
	free(p->span);
	free(p->mark);
	free(p->open);
	*p = (struct ss_phases){0};
}
