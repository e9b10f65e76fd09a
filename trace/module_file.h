/* SPDX-License-Identifier: MIT */
/* Finds the file of a module that a trace names, also if the trace comes from another machine. */
#ifndef SS_TRACE_MODULE_FILE_H
#define SS_TRACE_MODULE_FILE_H

#include <stddef.h>

#include "trace/reader.h"

/* Opens the file of the module, or a file with its symbols: at its own path, then in each of the
 * directories by build id, by path and by name, then in /usr/lib/debug. A file of another build id
 * is never taken. Returns the descriptor and its path, or -1. *rebuilt: no file was found, and the
 * file at the module's own path is another build. */
int ss_module_file_open(const struct ss_trace_module_def *def, char *const *dirs, size_t count,
			char *path, size_t size, bool *rebuilt);

#endif
