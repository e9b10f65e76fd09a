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

/* Does that file hold just this text? */
bool ss_verdict_file_holds(const char *name, const char *text);
/* Writes the file as a whole, or not at all; makes its directory. 0, or an errno. */
int ss_verdict_file_write(const char *name, const char *text);
void ss_verdict_file_remove(const char *name);
/* Removes all of them. Their number, or -1 and errno. */
int ss_verdict_files_remove(void);

#endif
