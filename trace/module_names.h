/* SPDX-License-Identifier: MIT */
/*
 * The names of functions, source files and lines in one file. module_names.c finds them with
 * elfutils; no_module_names.c takes its place in a build without. Not thread safe.
 */
#ifndef SS_TRACE_MODULE_NAMES_H
#define SS_TRACE_MODULE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/symbolize.h"

#define SS_NAMES_MAX 32u /* functions that are inlined into each other */

struct ss_module_names;

/* Can this build read names at all? */
bool ss_module_names_can(void);
/* Takes the descriptor, also if it fails. `search` is the path for debug files in the form of
 * libdwfl, and stays the caller's. NULL: the file cannot be read, or memory is out. */
struct ss_module_names *ss_module_names_open(const char *path, int fd, char *search);
void ss_module_names_close(struct ss_module_names *m);
/* The start of the file's addresses: 0, unless the program is not position-independent. */
uint64_t ss_module_names_start(struct ss_module_names *m);
/* The names of an address, as from ss_symbolize(), but not yet readable. symbol[0] has its module,
 * and this function sets it in the others. Returns their number, at least 1, at most SS_NAMES_MAX.
 * The texts live as long as `m`. */
uint32_t ss_module_names_find(struct ss_module_names *m, uint64_t address,
			      struct ss_symbol *symbol);

#endif
