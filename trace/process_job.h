/* SPDX-License-Identifier: MIT */
/* The rank of this process in a parallel job. Needs nothing else of the recording. */
#ifndef SS_TRACE_PROCESS_JOB_H
#define SS_TRACE_PROCESS_JOB_H

#include <stdbool.h>

/* The launcher's description of this process in a parallel job. The strings lie in the environment:
 * only the rank is checked, and they stay valid until the program changes the environment. */
struct ss_process_job {
	const char *launcher; /* "openmpi", "mvapich2", "mpich", "pmix", "flux" or "slurm" */
	const char *rank;     /* a number, never NULL */
	const char *ranks, *local_rank, *job; /* NULL: not set by the launcher */
};
/* False: this process is not part of a job, and *out is unchanged. */
bool ss_process_job(struct ss_process_job *out);
/* The number in such a string (NULL: none); -1 if it is no number from 0 to 2^30. */
int ss_process_number(const char *value);

#endif
