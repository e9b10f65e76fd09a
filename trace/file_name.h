/* SPDX-License-Identifier: MIT */
/*
 * Names of files that processes write, and files of such names that are nobody else's. Containers
 * share folders and process ids, a process runs another program, a job has ranks: so a name is a
 * pattern, and if it is taken, the next one is tried.
 *
 * In a pattern %p is the process id, %h the host, %r the rank in the job (0 outside of a job),
 * %q{VAR} the environment variable VAR (nothing if there is none) and %% is %. Any other % stands
 * for itself.
 *
 * Needs libc only, takes no lock and no memory. Any thread may call these functions.
 */
#ifndef SS_TRACE_FILE_NAME_H
#define SS_TRACE_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The name for `pattern`. A `number` from 2 on stands before its extension: log.2.csv. False: it
 * does not fit (ENAMETOOLONG). */
bool ss_file_name(const char *pattern, unsigned number, char *out, size_t size);
/* Appends text to the pattern in `pattern`, which has room for `size` bytes; a % in the text stands
 * for itself. False: it does not fit, and nothing was appended. */
bool ss_file_name_append(char *pattern, size_t size, const char *text);
/* A pattern for glob(3) that matches all names of `pattern`, whatever process has them. False: it
 * does not fit. */
bool ss_file_glob(const char *pattern, char *out, size_t size);

/* Opens a file that is empty and this process's alone, or makes it, and locks it (flock) as long as
 * it is open or mapped: the first name for `pattern` of which there is no file with contents and no
 * file of a process that runs. What is no regular file is opened as it is, and so are names in /dev
 * and /proc. `flags`: O_WRONLY or O_RDWR, and O_APPEND. `path` gets the name, *number the number in
 * it. -1 with errno set. */
int ss_file_new(const char *pattern, int flags, char *path, size_t size, unsigned *number);
/* The same for a file that is written anew again and again by rename(): the first name that no
 * running process has opened in this way. What a process left there that has ended is not kept.
 * ENODEV: it is no regular file, or a name in /dev or /proc. */
int ss_file_hold(const char *pattern, char *path, size_t size, unsigned *number);
/* Could a process make a regular file for `pattern`? None is left. False with errno set, ENODEV if
 * there is something else. A folder that does not exist may have another name in another process,
 * if there is a % in it. */
bool ss_file_possible(const char *pattern);

/* The descriptor under a high number, above what programs close because they inherited it. */
int ss_file_move_up(int fd);

#endif
