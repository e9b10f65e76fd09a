/* SPDX-License-Identifier: MIT */
/* Room for the thread-local variables of a program that is started with an auditor. */
#ifndef SS_CLI_RUN_STATIC_TLS_H
#define SS_CLI_RUN_STATIC_TLS_H

/* Adds to GLIBC_TUNABLES what the program's libraries need, unless the user has set it. `program`:
 * as for execvp(). LD_PRELOAD is as the program will have it. Not thread safe, as it changes the
 * environment. */
void ss_static_tls_make_room(const char *program);

#endif
