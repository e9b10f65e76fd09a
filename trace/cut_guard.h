/* SPDX-License-Identifier: MIT */
/* Files that somebody cuts while they are mapped, as log rotation does (copytruncate). */
#ifndef SS_TRACE_CUT_GUARD_H
#define SS_TRACE_CUT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* From now on, an access to the mapping behind the end of its file ends nobody: the mapping becomes
 * memory of this process alone, which starts as 0. Other bus errors take the way that they took
 * before. For this the process handles SIGBUS; a program that sets a handler of its own later
 * undoes it. Eight mappings at a time, the next one has no guard. Any thread. */
void ss_cut_guard_mapping(void *at, size_t size);
/* Before the mapping is undone. Does nothing for a mapping without a guard. */
void ss_cut_guard_end(const void *at);

/* Whether `at` is in a mapping of a file that the caller writes to. If so, gives its page-aligned
 * bounds, and remembers that the file was cut. Runs in a signal handler. */
typedef bool ss_cut_found(const void *at, void **from, size_t *size);

/* The same for mappings that change: the guard asks `found`. Again for the same function is
 * once. */
void ss_cut_guard(ss_cut_found *found);

#endif
