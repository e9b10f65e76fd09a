/* SPDX-License-Identifier: MIT */
/*
 * Reads the events of a part of a recording. Memory that exists when the part begins comes first,
 * as events with SS_TRACE_F_LIVED. A ring has the same form, so the callers treat a part as a
 * recording. Not thread safe.
 */
#ifndef SS_ANALYSIS_WINDOW_H
#define SS_ANALYSIS_WINDOW_H

#include "cli/analysis/trace_memory.h"

/* Nanoseconds since the recording begins. */
struct ss_part {
	uint64_t from_ns, to_ns; /* to_ns 0: to its end */
};

struct ss_window {
	struct ss_trace_reader *reader;
	struct ss_part part;
	uint64_t begin_ns;    /* of the recording, as soon as an event was read */
	uint64_t real_offset; /* plus a time: nanoseconds since 1970 */
	int state;
	struct ss_sites stacks;        /* a site for each stack, with its number */
	struct ss_trace_memory memory; /* what there is when the part begins */
	unsigned next_outside;
	struct ss_ranges_walk walk;
	const struct ss_range *at;
	struct ss_trace_item first; /* the first event of the part itself */
	bool has_first, failed;     /* failed: out of memory */
};

/* Is the part all of the recording? */
static inline bool ss_part_is_all(const struct ss_part *p)
{
	return p->from_ns == 0 && p->to_ns == 0;
}

void ss_window_begin(struct ss_window *w, struct ss_trace_reader *reader,
		     const struct ss_part *part);
/* The next event. False at the end, or with w->failed if memory is out. */
bool ss_window_next_slow(struct ss_window *w, struct ss_trace_item *out);
static inline bool ss_window_next(struct ss_window *w, struct ss_trace_item *out)
{
	return ss_part_is_all(&w->part) ? ss_trace_reader_next(w->reader, out) :
					  ss_window_next_slow(w, out);
}
/* Frees what it holds; the reader stays as it is. */
void ss_window_finish(struct ss_window *w);

#endif
