/* SPDX-License-Identifier: MIT */
/* Files that somebody cuts while they are mapped, as log rotation does (copytruncate). */
#ifndef SS_TRACE_CUT_GUARD_H
#define SS_TRACE_CUT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `at` is in a mapping of a file that the caller writes to. If so, gives its page-aligned
 * bounds, and remembers that the file was cut. Runs in a signal handler. */
typedef bool ss_cut_found(const void *at, void **from, size_t *size);

/* From now on, an access to such a mapping behind the end of its file ends nobody: the mapping
 * becomes memory of this process alone, which starts as 0. Other bus errors take the way that they
 * took before. Again for the same function is once. A program that sets a handler of its own later
 * undoes this. */
void ss_cut_guard(ss_cut_found *found);

#endif
