/* SPDX-License-Identifier: MIT */
/* Processes of one user that wake on the same devices take their memory one after another. */
#ifndef SS_SHIM_SLEEP_WAKE_TURN_H
#define SS_SHIM_SLEEP_WAKE_TURN_H

#include <stdbool.h>

/* Waits for the turn on all devices that the process uses, but not for long: whoever has it may be
 * stopped. The turn only saves attempts that fail, so without it waking goes on as well. Both are
 * called by one thread. */
void ss_wake_turn_begin(void);
void ss_wake_turn_end(void);

#endif
