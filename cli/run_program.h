/* SPDX-License-Identifier: MIT */
/* Reads from the file of a program how the program is started. */
#ifndef SS_CLI_RUN_PROGRAM_H
#define SS_CLI_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The file that the loader starts for this program (as for execvp(); of a script, its interpreter),
 * and its dynamic loader. False: there is none. */
bool ss_program_loader(const char *program, char path[PATH_MAX], char loader[PATH_MAX]);
/* Has the program another C library than glibc, so that it would not start with the preload? */
bool ss_program_other_libc(const char *program);
/* Why a program was started without the library that LD_PRELOAD names, as far as its file shows it:
 * it is linked statically, for another machine or another libc, or has more rights than its caller.
 * False: it shows nothing of the kind. */
bool ss_program_obstacle(const char *program, char *reason, size_t size);

#endif
