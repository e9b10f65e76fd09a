/* SPDX-License-Identifier: MIT */
/* Who the process is: its rank in a job; program, arguments, host and options for a recording. */
#ifndef SS_TRACE_PROCESS_INFO_H
#define SS_TRACE_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/record.h"

/* What the launcher of a parallel job says about this process. The strings are those of the
 * environment: they are not checked, and they live as long as the program leaves them alone. */
struct ss_process_job {
	const char *launcher; /* "openmpi", "flux", "mpich" or "slurm" */
	const char *rank;     /* never NULL */
	const char *ranks, *local_rank, *job; /* NULL: the launcher did not say */
};
/* False: this process is not part of a job, and *out is unchanged. */
bool ss_process_job(struct ss_process_job *out);

/* Writes all of it. Not thread safe. */
void ss_trace_process_info(struct ss_trace_context *c);
/* One INFO record. Text beyond SS_TRACE_TEXT_MAX is cut. */
void ss_trace_info_text(struct ss_trace_context *c, enum ss_trace_info_key key,
			const char *text, size_t length);

#endif
