/* SPDX-License-Identifier: MIT */
/* The names of phases in a recording, each once, with numbers from 1. Internal to the reader. */
#ifndef SS_TRACE_PHASE_NAMES_H
#define SS_TRACE_PHASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

#define SS_PHASE_NAMES_MAX 65535u /* number of names that get a number; later names get none */

struct ss_phase_names {
	char **name; /* without control characters */
	uint32_t count, room;
	uint32_t *table; /* numbers, by hash */
	uint32_t slots;
};

/* The number of the record's name; 0: the record has no name, or there is no room for another
 * one. */
uint32_t ss_phase_names_find(struct ss_phase_names *n, const struct ss_trace_phase *r);
void ss_phase_names_finish(struct ss_phase_names *n);

#endif
