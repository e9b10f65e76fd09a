/* SPDX-License-Identifier: MIT */
/* Real calls that are made again when they find no device memory. */
#ifndef SS_SHIM_RETRY_H
#define SS_SHIM_RETRY_H

#include "shim/process/real.h"

/* The runtime's last error of this thread, before a call that may be made again. */
int ss_retry_before(void);
/* The call found no memory on dev (-1: the current device). True: idle memory of ours was
 * given back there, and the thread's last error is `before` again. *end: state of the core,
 * 0 at first. */
bool ss_retry(int dev, int before, uint64_t *end);

/* The call took memory: what the core knew of how much is left is old. */
void ss_retry_taken(void);

/* The result of `call`, a real call that asks for device memory. It is made again as long as it
 * finds none and idle memory of ours can be given back on `dev`. */
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
