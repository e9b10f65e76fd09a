/* SPDX-License-Identifier: MIT */
/* The allocation log: RMM's CSV, written line by line. */
#ifndef SS_CORE_JOURNAL_H
#define SS_CORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ss_journal;

/* Expands %p (process id) and %% in `pattern`. Returns false if it doesn't fit. */
bool ss_path_expand(const char *pattern, char *out, size_t size);
/* NULL with errno set. Every line reaches the kernel before the call returns
 * (one write of one line on an O_APPEND descriptor), so a log is whole however
 * the process ends, and lines of threads never mix. */
struct ss_journal *ss_journal_open(const char *pattern);
/* Where it is said that lines are lost (a full disk, a reader that went). */
void ss_journal_set_log(struct ss_journal *j, FILE *log);
void ss_journal_close(struct ss_journal *j);
void ss_journal_alloc(struct ss_journal *j, const void *ptr, size_t size, const void *stream);
void ss_journal_free(struct ss_journal *j, const void *ptr, size_t size, const void *stream);

#endif
