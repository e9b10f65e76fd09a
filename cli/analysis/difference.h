/* SPDX-License-Identifier: MIT */
/*
 * Compares two recordings, or two runs of a job: the growth of each call site. Two sites are the
 * same if the names and lines of all their frames are the same. Among the other sites, those with
 * the same functions count as the same, because lines move when a program is changed. Figures are
 * means over the processes of a side.
 */
#ifndef SS_ANALYSIS_DIFFERENCE_H
#define SS_ANALYSIS_DIFFERENCE_H

#include "cli/analysis/analysis.h"

enum ss_difference_figure {
	SS_DIFFERENCE_PEAK, /* bytes that were live at once, at most */
	SS_DIFFERENCE_LIVE, /* bytes at the end */
	SS_DIFFERENCE_ALLOCS,
	SS_DIFFERENCE_BYTES, /* of all allocations */
	SS_DIFFERENCE_FIGURES,
};

struct ss_difference_site {
	const struct ss_sites *sites; /* names: those of the second side, if it has the site */
	uint32_t site;
	double figure[2][SS_DIFFERENCE_FIGURES];
	bool in[2]; /* the sides that have the site */
};

struct ss_difference_side {
	size_t processes;
	double used_peak, reserved_peak, end; /* bytes over all devices */
	double allocs, failures;
};

struct ss_difference {
	struct ss_difference_side side[2];
	/* The sites that differ: the one that grew most comes first, the one that shrank most
	 * last */
	struct ss_difference_site *site;
	size_t count;
};

/* list[0..first) is the first side, list[first..count) the second one; neither is empty. The list
 * must stay valid. False: out of memory. */
bool ss_difference(struct ss_difference *d, struct ss_analysis *const *list, size_t first,
		   size_t count);
void ss_difference_finish(struct ss_difference *d);

#endif
