/* SPDX-License-Identifier: MIT */
/* GPUs that several processes used: the sum of their reserved memory over time. The host and the
 * PCI address identify a GPU. */
#ifndef SS_ANALYSIS_SHARED_GPU_H
#define SS_ANALYSIS_SHARED_GPU_H

#include "cli/analysis/analysis.h"

struct ss_shared_step {
	uint64_t time_ns;  /* since 1970 */
	uint64_t reserved; /* bytes of all processes from then on */
};

struct ss_shared_gpu {
	const char *host, *pci; /* of the analyses */
	size_t processes;
	uint64_t peak, peak_ns; /* the most at once, and when (since 1970) */
	uint64_t sum_of_peaks;  /* the peak if all processes had theirs at the same time */
	struct ss_shared_step *step;
	size_t steps;
};

/* The GPUs that more than one of the processes reserved memory on; *count is how many. NULL: out of
 * memory. The analyses must stay valid. */
struct ss_shared_gpu *ss_shared_gpus(struct ss_analysis *const *list, size_t count, size_t *gpus);
void ss_shared_gpus_free(struct ss_shared_gpu *gpu, size_t gpus);

#endif
