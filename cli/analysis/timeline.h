/* SPDX-License-Identifier: MIT */
/* Makes the time line of a device: few samples, of which each keeps the peaks of its span. */
#ifndef SS_ANALYSIS_TIMELINE_H
#define SS_ANALYSIS_TIMELINE_H

#include "cli/analysis/analysis.h"

/* False: out of memory. `room` is the number of samples at most, a power of two. */
bool ss_samples_begin(struct ss_timeline *t, size_t room, uint64_t begin_ns);
/* The level is `level` from the event on. Times do not decrease. */
void ss_samples_add(struct ss_timeline *t, const struct ss_level *level, uint64_t event,
		    uint64_t time_ns);
/* Memory outside of the pools is as in `outside` from `time_ns` on. */
void ss_samples_outside(struct ss_timeline *t, const struct ss_outside *outside, uint64_t time_ns);
void ss_samples_end(struct ss_timeline *t, uint64_t end_ns);

#endif
