/* SPDX-License-Identifier: MIT */
/* Puts somashim's libraries into the environment of a program that is about to start. */
#ifndef SS_CLI_RUN_PRELOAD_H
#define SS_CLI_RUN_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/* An option of the commands that start programs, as an entry of their struct argp_option. */
#define SS_RUN_AUDIT_KEY 'A'
#define SS_RUN_AUDIT { "audit", SS_RUN_AUDIT_KEY, NULL, 0, \
	"Also see objects that are loaded with RTLD_DEEPBIND (by LD_AUDIT)", 0 }

/* Puts libsomashim.so into LD_PRELOAD: in the place of a libsomashim.so that is there, or else in
 * front. `program`: the program that will be started; NULL: this one. If it has another C library,
 * it would not start with libsomashim.so, which is therefore left out (and said by
 * ss_program_obstacle()). `audit`: the auditor is put into LD_AUDIT as well, where it is of use
 * with this glibc (run_loader.h). Other entries of these variables stay. AddressSanitizer is told
 * that a library may stand before it. `quiet`: nothing is printed. False with the reason in `err`:
 * a library was not found, or has a path that the loader would split. Not thread safe, as it
 * changes the environment. */
bool ss_preload_enter(const char *program, bool audit, bool quiet, char *err, size_t err_size);
/* The path of libsomashim.so that was put there; "" before. */
const char *ss_preload_library(void);

#endif
