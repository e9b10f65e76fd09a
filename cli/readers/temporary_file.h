/* SPDX-License-Identifier: MIT */
/* Temporary files and folders of the command. */
#ifndef SS_READERS_TEMPORARY_FILE_H
#define SS_READERS_TEMPORARY_FILE_H

#include <limits.h>
#include <stdbool.h>

/* Creates the file `name`.XXXXXX in TMPDIR, or in /tmp if TMPDIR is not set or cannot be written
 * to. `path` gets its name. Returns its descriptor, or -1 with errno set. */
int ss_temporary_file(const char *name, char path[PATH_MAX]);
/* Creates a folder in the same way. False with errno set. */
bool ss_temporary_folder(const char *name, char path[PATH_MAX]);
/* The paths of the files in a folder, sorted, with NULL at the end; for ss_temporary_files_free().
 * NULL: it cannot be read, or there is no memory. */
char **ss_temporary_files(const char *folder);
void ss_temporary_files_free(char **paths);
/* Removes the folder and the files in it. */
void ss_temporary_folder_remove(const char *folder);

#endif
