/* SPDX-License-Identifier: MIT */
/* Temporary files of the command. */
#ifndef SS_READERS_TEMPORARY_FILE_H
#define SS_READERS_TEMPORARY_FILE_H

#include <limits.h>

/* Creates the file `name`.XXXXXX in TMPDIR, or in /tmp if TMPDIR is not set or cannot be written
 * to. `path` gets its name. Returns its descriptor, or -1 with errno set. */
int ss_temporary_file(const char *name, char path[PATH_MAX]);

#endif
