/* SPDX-License-Identifier: MIT */
/* The end of service in a process: exit() and fork(). */
#ifndef SS_SHIM_EXIT_H
#define SS_SHIM_EXIT_H

#include <stdbool.h>

/* Registers with atexit() and pthread_atfork(). Once, when the core exists. */
void ss_exit_register(void);
/* `fn` runs when exit() begins, after the state has become EXITING; it may call HIP. One
 * function only; may be set again to the same. */
void ss_exit_set_hook(void (*fn)(void));
/* Has exit() begun, with the HIP runtime certainly not torn down? Then hipFree can wait. */
bool ss_exit_waits(void);
/* Streams are destroyed without a report to the core, because exit() has begun. */
void ss_exit_streams_unknown(void);

#endif
