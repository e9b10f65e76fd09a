/* SPDX-License-Identifier: MIT */
/*
 * Names of files that processes write, and exclusive files of such names. Containers share folders
 * and process ids, a process runs another program, a job has ranks. So a name is a pattern, and if
 * the name is taken, the next one is tried.
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

/* The name for `pattern`. A `number` from 2 on is put before the extension: log.2.csv. False: the
 * name does not fit (ENAMETOOLONG). */
bool ss_file_name(const char *pattern, unsigned number, char *out, size_t size);
/* Appends text to the pattern in `pattern`, which has room for `size` bytes; a % in the text stands
 * for itself. False: the text does not fit, and nothing was appended. */
bool ss_file_name_append(char *pattern, size_t size, const char *text);
/* A pattern for glob(3) that matches all names of `pattern`, of every process. False: the result
 * does not fit. */
bool ss_file_glob(const char *pattern, char *out, size_t size);

/* Opens or makes an empty file that only this process uses, and locks it (flock) as long as it is
 * open or mapped. The name is the first one for `pattern` that has no file with contents and no
 * file of a running process. A file that is not regular is opened as it is, and so are names in
 * /dev and /proc. `flags`: O_WRONLY or O_RDWR, and O_APPEND. `path` gets the name, *number the
 * number in it. -1 with errno set. */
int ss_file_new(const char *pattern, int flags, char *path, size_t size, unsigned *number);
/* The same for a file that is replaced repeatedly by rename(): the first name that no running
 * process has opened in this way. The file of a process that has ended is overwritten. ENODEV: the
 * file is not regular, or its name is in /dev or /proc. */
int ss_file_hold(const char *pattern, char *path, size_t size, unsigned *number);
/* Could a process make a regular file for `pattern`? Leaves no file. False with errno set, ENODEV
 * if the name has a file of another kind. A folder that does not exist may have another name in
 * another process, if its name has a %. */
bool ss_file_possible(const char *pattern);

/* Moves the descriptor to a high number, above the inherited descriptors that programs close. */
int ss_file_move_up(int fd);

#endif
