/* SPDX-License-Identifier: MIT */
/* The file that a command writes, or standard output. */
#ifndef SS_WRITERS_OUTPUT_H
#define SS_WRITERS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ss_output {
	FILE *file;
	const char *path; /* not copied; NULL: standard output */
	bool made;        /* there was no such file before */
};

/* Makes the file or empties it, so call it after all else that can fail. None of the `count` files
 * of `input` can be the output. False and a line in `err`: nothing was changed. */
bool ss_output_open(struct ss_output *o, const char *path, const char *const *input, size_t count,
		    char *err, size_t err_size);
/* Closes the file, and removes it if it is not `good` and was made here. Returns `good`; false and
 * a line in `err` if it could not be written. */
bool ss_output_close(struct ss_output *o, bool good, char *err, size_t err_size);

#endif
