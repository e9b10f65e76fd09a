/* SPDX-License-Identifier: MIT */
/*
 * Compares the processes of a job: the smallest, mean and largest figure of each pool and call
 * site over all of them. Call sites are the same if the names of all their frames are.
 */
#ifndef SS_ANALYSIS_RANK_COMPARISON_H
#define SS_ANALYSIS_RANK_COMPARISON_H

#include "cli/analysis/analysis.h"
#include "cli/analysis/shared_gpu.h"

/* A process that has no such pool or site counts as 0. */
struct ss_spread {
	double min, mean, max;
	size_t max_at;    /* index of the process that has the most */
	double imbalance; /* max / mean; 0 if mean is 0 */
};

enum ss_over_figure {
	SS_OVER_ALLOCS,
	SS_OVER_FREES,
	SS_OVER_MEAN,     /* bytes, over the time of the recording */
	SS_OVER_PEAK,     /* bytes; of a pool: used */
	SS_OVER_RESERVED, /* bytes at the peak; only of pools */
	SS_OVER_LIVE,     /* bytes that were never freed */
	SS_OVER_FIGURES,
};

struct ss_over {
	char *name;     /* of a pool: "default, GPU 0"; of a site: "" */
	size_t in;      /* processes that have it */
	size_t process; /* the first that has it ... */
	uint32_t site;  /* ... and its site there */
	struct ss_spread figure[SS_OVER_FIGURES];
};

/* One process. Bytes are sums over its devices. */
struct ss_rank_row {
	size_t process; /* its index */
	uint64_t used_peak, reserved_peak, end, failures;
	uint64_t growing; /* bytes at the end of call sites that hold more and more */
};

struct ss_over_ranks {
	struct ss_analysis *const *process; /* sorted by rank; not owned */
	size_t processes;
	struct ss_over *pool, *site; /* the largest peak first */
	size_t pools, sites;
	/* One row for each process, the worst first: by failures, then by reserved bytes */
	struct ss_rank_row *row;
	struct ss_shared_gpu *gpu; /* the GPUs that several processes use */
	size_t gpus;
};

/* A row for each process, the worst first. The caller frees it. NULL: out of memory. */
struct ss_rank_row *ss_rank_rows(struct ss_analysis *const *process, size_t count);

/* The list is kept, and must stay valid. False: out of memory. */
bool ss_over_ranks(struct ss_over_ranks *o, struct ss_analysis *const *process, size_t count);
void ss_over_ranks_finish(struct ss_over_ranks *o);

#endif
