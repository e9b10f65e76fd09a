/* SPDX-License-Identifier: MIT */
/* Repeats real calls that find no device memory. */
#ifndef SS_SHIM_RETRY_H
#define SS_SHIM_RETRY_H

#include "shim/process/real.h"

/* The runtime's last error of this thread, before a call that may be repeated. */
int ss_retry_before(void);
/* The call found no memory on dev (-1: the current device). True: idle memory of ours was released
 * there, and the thread's last error is `before` again. *end: state of the core, 0 at first. */
bool ss_retry(int dev, int before, uint64_t *end);

/* The call took memory, so the core's knowledge of the device's free bytes is old. */
void ss_retry_taken(void);

/* The result of `call`, a real call that asks for device memory. The call is repeated as long as it
 * finds no memory and our pools can release idle memory on `dev`. */
#define SS_RETRY(dev, call) __extension__({ \
	int before_ = ss_retry_before(); \
	uint64_t end_ = 0; \
	hipError_t retry_; \
	do { \
		ss_enter(); \
		retry_ = (call); \
		ss_leave(); \
	} while (unlikely(retry_ == hipErrorOutOfMemory) && ss_retry(dev, before_, &end_)); \
	if (retry_ == hipSuccess) \
		ss_retry_taken(); \
	retry_; })
#define REAL_RETRY(dev, name, ...) \
	SS_RETRY(dev, ss_real.name ? ss_real.name(__VA_ARGS__) : ss_real_missing())

#endif
