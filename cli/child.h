/* SPDX-License-Identifier: MIT */
/* Runs a program as a child process that behaves as if the caller had become it. */
#ifndef SS_CLI_CHILD_H
#define SS_CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The path of this program, with links resolved. Without /proc it is the path that the kernel was
 * asked to execute, so call it before the working directory changes. */
bool ss_child_self(char *path, size_t size);
/* Call it first. It enables SIGCHLD, because our caller may ignore the signal, and then the kernel
 * would keep no child for us to wait for. It ignores SIGXFSZ, so a file that may not grow is an
 * error that we report. A program that we start or become has both signals as we found them. */
void ss_child_init(void);
/* Runs the program and waits for it, with signals passed on to it. Returns its status as
 * waitpid() gives it. *started is the process that it was, or 0 if it could not be executed. */
int ss_child_run(char **argv, pid_t *started);
/* Do processes run that the program started, after it has ended? */
bool ss_child_others(void);
/* Ends this process the way the child ended, by the same signal if need be. Otherwise it
 * returns the exit status for main(). */
int ss_child_exit(int status);
/* Becomes the program. If that fails, it says why and returns the exit status that a shell
 * uses: 127 if there is no such program, else 126. */
int ss_child_exec(char **argv);

#endif
