/* SPDX-License-Identifier: MIT */
/*
 * Stores for later processes whether virtual memory passed the self-test, for this user, runtime,
 * kernel driver and device. Valid after ss_rocm_start(). Any thread.
 */
#ifndef SS_ROCM_VERDICT_H
#define SS_ROCM_VERDICT_H

#include <stdbool.h>

enum ss_verdict {
	SS_VERDICT_NONE,  /* no test is known */
	SS_VERDICT_BEGUN, /* a self-test has begun, and has not ended, or never will */
	SS_VERDICT_AGAIN, /* a second self-test has begun */
	SS_VERDICT_PASSED,
	SS_VERDICT_FAILED, /* in the self-test, or later */
	SS_VERDICTS
};

/* The answer stays the same until it is changed by the calls below. */
enum ss_verdict ss_rocm_verdict(int dev);
/* As ss_rocm_verdict(), but reads the file again, because another process may have stored a verdict
 * meanwhile. */
enum ss_verdict ss_rocm_verdict_again(int dev);
/* Stores the verdict. 0, or an errno; then nothing is stored. */
int ss_rocm_verdict_remember(int dev, enum ss_verdict verdict);
/* Can a verdict be stored? */
bool ss_rocm_verdict_possible(int dev);
/* Call it when virtual memory has failed: the stored verdict is no longer trusted. */
void ss_rocm_verdict_distrust(int dev);

#endif
