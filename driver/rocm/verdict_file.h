/* SPDX-License-Identifier: MIT */
/*
 * Files that remember what a self-test proved: $XDG_STATE_HOME/somashim/NAME, else
 * ~/.local/state/somashim/NAME. They are trusted only if they are the user's own and nobody else
 * can write them. Needs libc only. Any thread.
 */
#ifndef SS_ROCM_VERDICT_FILE_H
#define SS_ROCM_VERDICT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define SS_VERDICT_TEXT 1024

#define SS_VERDICT_RESULT 32

/* Reads a file that holds `key`, and behind it one line, which becomes `result`. False: there is no
 * such file, or it holds something else. */
bool ss_verdict_file_read(const char *name, const char *key, char result[SS_VERDICT_RESULT]);
/* Writes the file as a whole, or not at all; makes its directory. 0, or an errno. */
int ss_verdict_file_write(const char *name, const char *text);
/* Could one be written? Makes the directory. */
bool ss_verdict_file_possible(void);
/* Waits until no other process of the user has this lock, which ends with the descriptor that it
 * returns; `waiting` is called now and then meanwhile. -1 and errno: it cannot be had. */
int ss_verdict_file_lock(void (*waiting)(void));
/* Removes all of them. Their number, or -1 and errno. */
int ss_verdict_files_remove(void);

#endif
