/* SPDX-License-Identifier: MIT */
/* The rank of this process in a parallel job. Needs nothing else of the recording. */
#ifndef SS_TRACE_PROCESS_JOB_H
#define SS_TRACE_PROCESS_JOB_H

#include <stdbool.h>

/* What the launcher of a parallel job says about this process. The strings are those of the
 * environment: only the rank is checked, and they live as long as the program leaves them alone. */
struct ss_process_job {
	const char *launcher; /* "openmpi", "mvapich2", "mpich", "pmix", "flux" or "slurm" */
	const char *rank;     /* a number, never NULL */
	const char *ranks, *local_rank, *job; /* NULL: the launcher did not say */
};
/* False: this process is not part of a job, and *out is unchanged. */
bool ss_process_job(struct ss_process_job *out);
/* The number that such a string (NULL: none) is; -1 if it is none from 0 to 2^30. */
int ss_process_number(const char *value);

#endif
