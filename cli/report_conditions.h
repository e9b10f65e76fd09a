/* SPDX-License-Identifier: MIT */
/* The conditions of `somashim report --fail-if`, for a pipeline that has to stop when a program
 * needs more memory than it should. */
#ifndef SS_CLI_REPORT_CONDITIONS_H
#define SS_CLI_REPORT_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/analysis/analysis.h"
#include "cli/analysis/difference.h"

enum ss_condition_figure {
	SS_CONDITION_PEAK,     /* bytes in use at most, on the device where it is most */
	SS_CONDITION_RESERVED, /* ... reserved */
	SS_CONDITION_LEAKS,    /* bytes at the end */
	SS_CONDITION_GROWING,  /* ... of call sites that hold more and more */
	SS_CONDITION_FAILURES, /* allocations that failed */
	SS_CONDITION_ALLOCATIONS,
	SS_CONDITION_FIGURES,
};

struct ss_condition {
	enum ss_condition_figure figure;
	bool or_equal;
	uint64_t limit; /* bytes or a count, or */
	double percent; /* that much more than before; 0: it is no percentage */
	char text[64];  /* as it was given */
};
#define SS_CONDITIONS_MAX 32

struct ss_conditions {
	struct ss_condition at[SS_CONDITIONS_MAX];
	size_t count;
};

/* Reads "peak>8G", "leaks" (more than 0), "allocations>=1000" or, for a difference, "peak>5%".
 * NULL, or a text that says what is wrong. */
const char *ss_condition_add(struct ss_conditions *c, const char *text);
/* Prints on stderr each condition that a process fulfils, and returns whether there is any. */
bool ss_conditions_hold(const struct ss_conditions *c, struct ss_analysis *const *list,
			size_t count);
/* The same of what grew from the first side to the second. */
bool ss_conditions_hold_difference(const struct ss_conditions *c, const struct ss_difference *d);

#endif
