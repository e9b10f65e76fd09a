/* SPDX-License-Identifier: MIT */
/* The trace files that the arguments of a command name: files, and all traces in directories. */
#ifndef SS_CLI_TRACE_FILES_H
#define SS_CLI_TRACE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_trace_files {
	char **path; /* sorted within a directory */
	size_t count;
};

/* A regular file that begins as a trace does. */
bool ss_is_trace(const char *path);
/* When the recording began, CLOCK_REALTIME in ns; 0: it is no trace. */
uint64_t ss_trace_start(const char *path);
/* The end of a message about a file that cannot be read as a trace: ": " and the kind of the file
 * if it is known, else "". A log is read to its end. */
const char *ss_no_trace_hint(const char *path);
/* Adds a file, or the files of a directory that begin as a trace does. False with a line in
 * `err`: there is no such file, or no trace in the directory. */
bool ss_trace_files_add(struct ss_trace_files *f, const char *path, char *err, size_t err_size);
void ss_trace_files_finish(struct ss_trace_files *f);

#endif
