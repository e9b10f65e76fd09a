/* SPDX-License-Identifier: MIT */
/* Finds out by a trial whether hipMemSetAccess accepts a later part of a range. Any thread. */
#ifndef SS_ROCM_ACCESS_PROBE_H
#define SS_ROCM_ACCESS_PROBE_H

#include <stdbool.h>

/* Maps a few chunks in addresses of its own and gives access to one after the other. True: this
 * works, or virtual memory does not work at all. The answer is kept. Call it when virtual memory
 * may be used, with no lock held and no live capture. */
bool ss_rocm_access_parts(int dev);
/* Unmaps and releases the chunks that trials on the device have left mapped. The unmap may wait for
 * the device, so call this function only when an unmap may wait anyway. No lock held. */
void ss_rocm_access_trial_end(int dev);

#endif
