/* SPDX-License-Identifier: MIT */
/*
 * Finds the recordings that belong to one run of a job. Processes with the same rank, or with
 * different jobs, belong to different runs. Processes outside of a job are one run.
 */
#ifndef SS_ANALYSIS_RUNS_H
#define SS_ANALYSIS_RUNS_H

#include "cli/analysis/analysis.h"

/* Fills run[i] with the number of the run of list[i], from 0 in the order of their beginnings.
 * Returns the number of runs, 0 if memory is out. Runs that share a job and were under way at the
 * same time can be mixed up: a recording does not say which process started it. */
size_t ss_runs_split(struct ss_analysis *const *list, size_t count, size_t *run);

/* When the recording began, in nanoseconds since 1970. */
static inline uint64_t ss_analysis_begin(const struct ss_analysis *a)
{
	return a->first_ns + a->real_offset;
}

#endif
