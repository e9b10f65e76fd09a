/* SPDX-License-Identifier: MIT */
/*
 * Remembers from one process to the next whether virtual memory passed the self-test, for this
 * user, runtime, kernel driver and device. Valid after ss_rocm_start(). Any thread.
 */
#ifndef SS_ROCM_VERDICT_H
#define SS_ROCM_VERDICT_H

#include <stdbool.h>

enum ss_verdict {
	SS_VERDICT_NONE,  /* it was not tried, as far as is known */
	SS_VERDICT_BEGUN, /* a self-test has begun, and did not end yet, or never */
	SS_VERDICT_AGAIN, /* and so has a second one */
	SS_VERDICT_PASSED,
	SS_VERDICT_FAILED, /* in the self-test, or later */
	SS_VERDICTS
};

/* The answer stays the same until it is changed by the calls below. */
enum ss_verdict ss_rocm_verdict(int dev);
/* The same, but another process may have found out meanwhile. */
enum ss_verdict ss_rocm_verdict_again(int dev);
/* 0, or an errno; then nothing is remembered. */
int ss_rocm_verdict_remember(int dev, enum ss_verdict verdict);
/* Can a verdict be remembered? */
bool ss_rocm_verdict_possible(int dev);
/* Call it when virtual memory has failed: ends the trust that there was. */
void ss_rocm_verdict_distrust(int dev);

#endif
