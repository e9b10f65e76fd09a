/* SPDX-License-Identifier: MIT */
/* Prints the summary at the end of `somashim record`: the path of the recording, its figures, and
 * the next command. */
#ifndef SS_CLI_RECORDED_SUMMARY_H
#define SS_CLI_RECORDED_SUMMARY_H

#include <stddef.h>

/* Prints it on stderr. `path` are the recordings of this run, at least one, of which the process
 * with the highest reserved peak gets the line with figures. */
void ss_recorded_summary(char *const *path, size_t count);

#endif
