/* SPDX-License-Identifier: MIT */
/*
 * Two recordings, or two runs of a job, beside each other: what grew, by call site. Sites are the
 * same if the names and lines of all their frames are. Of the others, those with the same functions
 * are taken for the same: lines move when a program is changed. Figures are means over the
 * processes of a side.
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
	bool in[2]; /* which sides have it */
};

struct ss_difference_side {
	size_t processes;
	double used_peak, reserved_peak, end; /* bytes over all devices */
	double allocs, failures;
};

struct ss_difference {
	struct ss_difference_side side[2];
	/* Those that differ: what grew most comes first, what shrank most last */
	struct ss_difference_site *site;
	size_t count;
};

/* list[0..first) is the one side, list[first..count) the other; both have members. The list must
 * stay valid. False: out of memory. */
bool ss_difference(struct ss_difference *d, struct ss_analysis *const *list, size_t first,
		   size_t count);
void ss_difference_finish(struct ss_difference *d);

#endif
