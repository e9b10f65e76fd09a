/* SPDX-License-Identifier: MIT */
/* The rank of this process in a parallel job, from the launcher's variables. */
#include <stddef.h>
#include <stdlib.h>

#include "trace/process_job.h"

/* The variables of the launchers. The more specific ones come first: mpirun inside a Slurm job sets
 * its own variables and passes Slurm's on unchanged. */
static const struct ss_process_job launchers[] = {
	{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	 "SLURM_JOB_ID"},
	{"mvapich2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
	 "SLURM_JOB_ID"},
	{"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_JOB_ID"},
	{"pmix", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "SLURM_JOB_ID"},
	{"flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_ID"},
	{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"},
};

int ss_process_number(const char *value)
{
	char *end;
	long n;

	if (!value || !*value)
		return -1;
	n = strtol(value, &end, 10);
	return *end || n < 0 || n > 1 << 30 ? -1 : (int)n;
}

bool ss_process_job(struct ss_process_job *out)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct ss_process_job *names = &launchers[i];
		if (ss_process_number(secure_getenv(names->rank)) >= 0) {
			*out = (struct ss_process_job){
				.launcher = names->launcher,
				.rank = secure_getenv(names->rank),
				.ranks = secure_getenv(names->ranks),
				.local_rank = secure_getenv(names->local_rank),
				.job = secure_getenv(names->job)};
			return true;
		}
	}
	return false;
}
