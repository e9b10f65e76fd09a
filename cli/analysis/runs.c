/* SPDX-License-Identifier: MIT */
/* Finds the recordings that belong to one run of a job. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/runs.h"

struct member {
	const struct ss_analysis *process;
	size_t index;
};

static int earlier_first(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	uint64_t tx = ss_analysis_begin(x->process), ty = ss_analysis_begin(y->process);

	return tx != ty ? (tx > ty) - (tx < ty) : (x->index > y->index) - (x->index < y->index);
}

/* May both be ranks of one run? */
static bool together(const struct ss_analysis *x, const struct ss_analysis *y)
{
	return x->rank < 0 ?
		       y->rank < 0 :
		       x->rank != y->rank && x->ranks == y->ranks && strcmp(x->job, y->job) == 0 &&
			       strcmp(x->launcher, y->launcher) == 0;
}

size_t ss_runs_split(struct ss_analysis *const *list, size_t count, size_t *run)
{
	struct member *member = calloc(count + 1, sizeof(*member));
	/* Runs that the process does not belong to */
	bool *taken = calloc(count + 1, sizeof(*taken));
	size_t runs = 0;

	for (size_t i = 0; member && i < count; i++)
		member[i] = (struct member){list[i], i};
	if (member && taken)
		qsort(member, count, sizeof(*member), earlier_first);
	for (size_t i = 0; member && taken && i < count; i++) {
		size_t r = runs;

		memset(taken, 0, runs);
		for (size_t k = 0; k < i; k++) {
			taken[run[member[k].index]] |= !together(member[k].process,
								 member[i].process);
		}
		while (r > 0 && taken[r - 1]) /* the newest first */
			r--;
		run[member[i].index] = r ? r - 1 : runs++;
	}
	free(member);
	free(taken);
	return runs;
}
