/* SPDX-License-Identifier: MIT */
/* The journal: a log of allocations and frees in RMM's CSV format. */
#ifndef SS_SHIM_JOURNAL_H
#define SS_SHIM_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

struct ss_journal;

/* Opens a journal under the first free name for `pattern` (trace/file_name.h); NULL with errno set
 * on failure. Each line is one write(2) on an O_APPEND descriptor. So the log is complete even if
 * the process is killed, and lines of several threads never mix. `say` is called with one line,
 * without its newline, when the log ends early (a full disk, a reader that went). */
struct ss_journal *ss_journal_open(const char *pattern, void (*say)(const char *line));
/* The name of the journal if the first name was taken, or NULL. The name lives as long as the
 * journal. */
const char *ss_journal_other_name(const struct ss_journal *j);
void ss_journal_close(struct ss_journal *j);
/* Writes the line of an allocation, or of a free. */
void ss_journal_line(struct ss_journal *j, bool allocated, const void *ptr, size_t size,
		     const void *stream);

#endif
