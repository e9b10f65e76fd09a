/* SPDX-License-Identifier: MIT */
/* Temporary files and folders of the command. */
#ifndef SS_READERS_TEMPORARY_FILE_H
#define SS_READERS_TEMPORARY_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Creates the file `name`.XXXXXX with `size` bytes for which the disk has room, in the first of
 * TMPDIR, /tmp and /dev/shm where that can be. It is locked as long as it is open or mapped; files
 * of this name that nobody has locked are removed first. `path` gets its name. Returns its
 * descriptor, or -1 with errno set. */
int ss_temporary_file(const char *name, size_t size, char path[PATH_MAX]);
/* Creates a folder in the same way, where there is some room. It is locked until this process ends.
 * False with errno set. */
bool ss_temporary_folder(const char *name, char path[PATH_MAX]);
/* The paths of the files in a folder, sorted, with NULL at the end; for ss_temporary_files_free().
 * NULL: it cannot be read, or there is no memory. */
char **ss_temporary_files(const char *folder);
void ss_temporary_files_free(char **paths);
/* Removes the folder and the files in it. */
void ss_temporary_folder_remove(const char *folder);

#endif
