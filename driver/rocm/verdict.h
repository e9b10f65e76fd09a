/* SPDX-License-Identifier: MIT */
/*
 * Remembers from one process to the next that virtual memory passed the self-test, for this user,
 * runtime, kernel driver and device. Valid after ss_rocm_start(). Any thread.
 */
#ifndef SS_ROCM_VERDICT_H
#define SS_ROCM_VERDICT_H

#include <stdbool.h>

/* Is there such a verdict? The answer stays the same until it is changed by the calls below. */
bool ss_rocm_verdict_known(int dev);
/* 0, or an errno; then nothing is remembered. */
int ss_rocm_verdict_remember(int dev);
/* Call it when virtual memory has failed. Nothing, from the second time on. */
void ss_rocm_verdict_forget(int dev);

#endif
