/* SPDX-License-Identifier: MIT */
/* The journal: a log of allocations and frees in RMM's CSV format. */
#ifndef SS_CORE_JOURNAL_H
#define SS_CORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ss_journal;

/* The number of a stream in a log. Every thread has a stream of its own behind the one handle
 * hipStreamPerThread (2). Its number is no handle that a runtime gives out, because those are
 * addresses, which are multiples of 8. */
static inline uint64_t ss_journal_stream(uint64_t handle, uint64_t thread)
{
	return handle == 2 ? thread << 8 | handle : handle;
}

/* Opens a journal, whose name is the first for `pattern` that is free (trace/file_name.h); NULL
 * with errno set on failure. Each line is one write(2) on an O_APPEND descriptor. So the log is
 * complete however the process ends, and lines of several threads never mix. */
struct ss_journal *ss_journal_open(const char *pattern);
/* The name of the journal if the first one was taken, or NULL. It lives as long as the journal. */
const char *ss_journal_other_name(const struct ss_journal *j);
/* Sets where the end of the log is reported (a full disk, a reader that went); NULL: on stderr. */
void ss_journal_set_log(struct ss_journal *j, FILE *log);
/* NULL is allowed, here and below. */
void ss_journal_close(struct ss_journal *j);
void ss_journal_alloc(struct ss_journal *j, const void *ptr, size_t size, const void *stream);
void ss_journal_free(struct ss_journal *j, const void *ptr, size_t size, const void *stream);

#endif
