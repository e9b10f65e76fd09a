/* SPDX-License-Identifier: MIT */
/* Prints, for `somashim run`, the last figures of a program that a signal ended. */
#ifndef SS_CLI_KILLED_SUMMARY_H
#define SS_CLI_KILLED_SUMMARY_H

#include <sys/types.h>

/* Prints what the live page of the process said last, or nothing if there is none. */
void ss_killed_summary(pid_t pid);

#endif
