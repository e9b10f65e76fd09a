/* SPDX-License-Identifier: MIT */
/* Whether hipMemSetAccess takes a later part of a range, found out by trying. Any thread. */
#ifndef SS_ROCM_ACCESS_PROBE_H
#define SS_ROCM_ACCESS_PROBE_H

#include <stdbool.h>

/* Maps a few chunks in addresses of its own and opens one after the other. True: that works, or
 * virtual memory does not work at all. The answer is kept. Call it where virtual memory may be
 * used, with no lock held and no capture under way. */
bool ss_rocm_access_parts(int dev);
/* Unmaps and releases the chunks that trials on the device have left mapped. That may wait for the
 * device, so it is called where an unmap may wait anyway. No lock held. */
void ss_rocm_access_trial_end(int dev);

#endif
