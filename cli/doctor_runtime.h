/* SPDX-License-Identifier: MIT */
/* Finds the HIP runtimes of this machine, for `somashim doctor`. */
#ifndef SS_CLI_DOCTOR_RUNTIME_H
#define SS_CLI_DOCTOR_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SS_RUNTIMES_MAX 32

struct ss_runtime_file {
	char path[PATH_MAX]; /* without a slash: a name, which the loader has to find */
	const char *from;    /* the place where it was found; static, or passed in */
};

/* Fills `out` with the runtimes that exist, in the order in which programs would get them. Each
 * file is in it once. `asked`, if it is not NULL, names a file or a directory, and then only that
 * is looked at; else the places are LD_PRELOAD, LD_LIBRARY_PATH, ROCM_PATH, the loader's
 * directories, /opt/rocm and wheels. `root` stands in front of absolute places; "" but in tests.
 * Returns their number. No state. */
size_t ss_runtimes_find(const char *root, const char *asked,
			struct ss_runtime_file out[SS_RUNTIMES_MAX]);
/* Are both the same file? */
bool ss_runtime_same(const char *a, const char *b);

#endif
