/* SPDX-License-Identifier: MIT */
/* Puts the process to sleep, and wakes it. Only the thread of shim/sleep/ does either. */
#ifndef SS_SHIM_SLEEP_ATTEMPT_H
#define SS_SHIM_SLEEP_ATTEMPT_H

#include <stdbool.h>

#include "live/page.h"

enum ss_attempt {
	SS_ATTEMPT_DONE,
	SS_ATTEMPT_LATER, /* not now: the same may succeed later */
	SS_ATTEMPT_FAILED,
};

/* Puts the process to sleep. `hold_ms`: the longest time for which threads are held until the
 * devices are idle. `dir`: where contents are kept, "" = in memory. Fills *out, with the reason if
 * the process stays awake. FAILED is also returned if no memory came free: the process is awake
 * then, unless the runtime refuses to map again what it has unmapped. */
enum ss_attempt ss_attempt_sleep(unsigned hold_ms, const char *dir, struct ss_live_slept *out);
/* Wakes the process. LATER: a device has no room; *why, static, gives the reason. */
enum ss_attempt ss_attempt_wake(const char **why);
/* Is any device at work, as far as can be told without holding anybody? */
bool ss_attempt_would_wait(void);

#endif
