/* SPDX-License-Identifier: MIT */
/* The kinds of allocation logs that `somashim generate` can write. */
#ifndef SS_WRITERS_WORKLOADS_H
#define SS_WRITERS_WORKLOADS_H

#include <stddef.h>

#include "cli/writers/generator.h"

struct ss_workload {
	const char *name;
	void (*run)(struct ss_gen *g);
	unsigned rounds; /* default length */
	const char *help;
};

extern const struct ss_workload ss_workloads[];
extern const size_t ss_workload_count;

#endif
