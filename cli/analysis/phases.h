/* SPDX-License-Identifier: MIT */
/*
 * The phases of a program, which it names by ranges of roctx: how long each took, and how much
 * memory was in use meanwhile. Ranges may nest and overlap; an event counts for all ranges that are
 * open. Times are CLOCK_BOOTTIME in nanoseconds.
 */
#ifndef SS_ANALYSIS_PHASES_H
#define SS_ANALYSIS_PHASES_H

#include "cli/analysis/trace_memory.h"

#define SS_PHASE_SPANS 4096u /* most ranges of the timeline; the longest are kept */
#define SS_PHASE_MARKS 1000u
#define SS_PHASES_OPEN 256u  /* most ranges open at once; more are not followed */

struct ss_phase { /* all ranges of one name */
	char *name;
	uint64_t count;          /* of ranges */
	uint64_t ns, longest_ns; /* in all */
	uint64_t allocs, frees;
	double grew; /* used bytes at the ends of the ranges minus those at their begins */
	/* On the device with the highest peak: bytes, and the time */
	uint64_t used_peak, used_peak_ns, reserved_peak;
	int device; /* of the used peak; SS_NO_DEVICE */
	/* The range with that peak: its times, and its number among the ranges of this name */
	uint64_t best_begin_ns, best_end_ns, best_number;
};

struct ss_phase_span {
	uint32_t phase, tid, depth; /* depth: ranges of the thread that were open */
	uint64_t begin_ns, end_ns;
};

struct ss_phase_mark {
	uint32_t phase, tid;
	uint64_t time_ns;
};

struct ss_phases {
	struct ss_phase *phase; /* by the number of the name, less 1 */
	size_t count;
	struct ss_phase_span *span; /* by begin */
	size_t spans, spans_all;
	struct ss_phase_mark *mark;
	size_t marks, marks_all;
	uint64_t unmatched; /* ends whose begin was before the recording */
	/* The range to look for: its name, its number from 1, and its times; 0: not found */
	const char *wanted;
	uint64_t wanted_number, wanted_begin_ns, wanted_end_ns;

	struct ss_phase_open *open; /* only while the events are read */
	size_t opens;
	uint64_t least_ns; /* shorter ranges are left out of the timeline */
};

/* The memory figures of one moment, of which a phase takes the highest. */
struct ss_phase_totals {
	uint64_t used; /* bytes over all devices */
	uint64_t allocs, frees;
	const struct ss_level *level; /* by device; SS_DEVICES */
};

/* A PHASE event. False: out of memory. */
bool ss_phases_event(struct ss_phases *p, const struct ss_trace_reader *r,
		     const struct ss_trace_item *e, const struct ss_phase_totals *now);
/* The level of a device has changed. */
void ss_phases_level(struct ss_phases *p, int device, const struct ss_level *level,
		     uint64_t now_ns);
/* Ends the ranges that are open. */
void ss_phases_end(struct ss_phases *p, const struct ss_phase_totals *now, uint64_t end_ns);
void ss_phases_finish(struct ss_phases *p);

#endif
