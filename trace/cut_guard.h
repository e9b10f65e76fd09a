/* SPDX-License-Identifier: MIT */
/* Guards mapped files that another process cuts, as log rotation does (copytruncate). */
#ifndef SS_TRACE_CUT_GUARD_H
#define SS_TRACE_CUT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* From now on, an access to the mapping beyond the end of its file does not end the process: the
 * mapping becomes private memory of this process, which starts as 0. Other bus errors reach the
 * earlier handler. For this the process handles SIGBUS; a program that sets a handler of its own
 * later undoes the guard. Eight mappings at a time have a guard, a ninth has none. Any thread. */
void ss_cut_guard_mapping(void *at, size_t size);
/* Call it before the mapping is undone. Does nothing for a mapping without a guard. */
void ss_cut_guard_end(const void *at);

/* Is `at` in a mapping of a file that the caller writes to? If so, the function gives the mapping's
 * page-aligned bounds, and remembers that the file was cut. Runs in a signal handler. */
typedef bool ss_cut_found(const void *at, void **from, size_t *size);

/* The same for mappings that change: the guard asks `found`. A second call with the same function
 * does nothing. */
void ss_cut_guard(ss_cut_found *found);

#endif
