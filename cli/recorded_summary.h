/* SPDX-License-Identifier: MIT */
/* What `somashim record` says at the end: where the recording is, its figures, and what to type
 * next. */
#ifndef SS_CLI_RECORDED_SUMMARY_H
#define SS_CLI_RECORDED_SUMMARY_H

#include <stddef.h>

/* Prints it on stderr. `path` are the recordings of this run, at least one, of which the process
 * with the highest reserved peak gets the line with figures. */
void ss_recorded_summary(char *const *path, size_t count);

#endif
