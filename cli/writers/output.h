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
	/* The name of the file until it is whole; NULL: it is written where it is */
	char *part;
};

/* Does an option of this value ask for standard output? "-", or NULL: it was not given. */
bool ss_output_is_stdout(const char *path);
/* Opens `path` for writing. None of the `count` files of `input` can be the output. A regular file
 * is written beside its place and moved there when it is closed, where that is possible; anything
 * else is written in place, and emptied now. The process ends without the unfinished file if exit()
 * or a signal ends it, except SIGKILL. At most four are open at a time, of one thread. False and a
 * line in `err`: nothing was changed. */
bool ss_output_open(struct ss_output *o, const char *path, const char *const *input, size_t count,
		    char *err, size_t err_size);
/* Closes the file. One that is not `good`, or could not be written, does not take its name. Returns
 * `good`; false and a line in `err` if it could not be written. */
bool ss_output_close(struct ss_output *o, bool good, char *err, size_t err_size);

#endif
