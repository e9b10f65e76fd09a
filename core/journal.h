/* SPDX-License-Identifier: MIT */
/* The allocation log: RMM's CSV, written line by line and read back. */
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
void ss_journal_close(struct ss_journal *j);
void ss_journal_alloc(struct ss_journal *j, const void *ptr, size_t size, const void *stream);
void ss_journal_free(struct ss_journal *j, const void *ptr, size_t size, const void *stream);

/* ---- reading ---- */
struct ss_log_entry {
	bool is_free;
	uint64_t thread, pointer, size, stream;
	uint64_t time_us; /* since midnight */
	unsigned long long line; /* where it stands */
};
struct ss_log;
/* Opens an RMM CSV (plain; .xz through xz -dc); NULL and a message in `err`. */
struct ss_log *ss_log_open(const char *path, char *err, size_t err_size);
/* 1: an entry; 0: the end; -1: malformed, `err` names the line and the reason. */
int ss_log_next(struct ss_log *log, struct ss_log_entry *out, char *err, size_t err_size);
void ss_log_close(struct ss_log *log);

#endif
