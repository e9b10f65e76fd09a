/* SPDX-License-Identifier: MIT */
/*
 * Files that store the results of self-tests: $XDG_STATE_HOME/somashim/NAME, else
 * ~/.local/state/somashim/NAME. A file is trusted only if it belongs to the user and no other user
 * can write it. Needs libc only. Any thread.
 */
#ifndef SS_ROCM_VERDICT_FILE_H
#define SS_ROCM_VERDICT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define SS_VERDICT_TEXT 1024

#define SS_VERDICT_RESULT 32

/* Reads a file that holds `key`, and after it one line, which becomes `result`. False: there is no
 * such file, or its contents differ. */
bool ss_verdict_file_read(const char *name, const char *key, char result[SS_VERDICT_RESULT]);
/* Writes the file as a whole, or not at all; makes its directory. 0, or an errno. */
int ss_verdict_file_write(const char *name, const char *text);
/* Could a file be written? Makes the directory. */
bool ss_verdict_file_possible(void);
/* Takes the lock that excludes other processes of the user, and waits for it; `waiting` is called
 * now and then during the wait. Closing the returned descriptor ends the lock. -1 and errno: the
 * lock failed. */
int ss_verdict_file_lock(void (*waiting)(void));
/* Removes all files. Returns their number, or -1 and errno. */
int ss_verdict_files_remove(void);

#endif
