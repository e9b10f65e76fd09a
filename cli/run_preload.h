/* SPDX-License-Identifier: MIT */
/* Puts somashim's libraries into the environment of a program that is about to start. */
#ifndef SS_CLI_RUN_PRELOAD_H
#define SS_CLI_RUN_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/* Puts libsomashim.so in front of LD_PRELOAD and, if it is installed and of use with this glibc
 * (loader.h), the auditor in front of LD_AUDIT, and keeps what is there. `quiet`: nothing is
 * printed. False with the reason in `err`: a library was not
 * found, is preloaded already, or has a path that the loader would split. Not thread safe,
 * as it changes the environment. */
bool ss_preload_enter(bool quiet, char *err, size_t err_size);
/* The path of libsomashim.so that was put there; "" before. */
const char *ss_preload_library(void);
/* Removes libsomashim.so from LD_PRELOAD. */
void ss_preload_remove(void);

#endif
