/* SPDX-License-Identifier: MIT */
/* Functions of Python in recordings. Functions of several recordings are one if name and file are
 * the same. */
#ifndef SS_TRACE_PYTHON_FUNCTION_H
#define SS_TRACE_PYTHON_FUNCTION_H

#include <stddef.h>

#include "core/base/hash_or_end.h"
#include "trace/reader.h"

struct ss_python_function {
	UT_hash_handle hh;
	const char *name, *file; /* NULL if not known */
	size_t key_size;
	char key[]; /* the name and the file, each with its end */
};

/* The function of a definition, which may be NULL, in a table that starts as NULL. The result is
 * valid until ss_python_functions_finish(). NULL: out of memory. */
const struct ss_python_function *ss_python_function(struct ss_python_function **table,
						    const struct ss_trace_python_def *def);
void ss_python_functions_finish(struct ss_python_function **table);

#endif
