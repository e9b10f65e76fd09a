/* SPDX-License-Identifier: MIT */
/* Repeats real calls that find no device memory. */
#ifndef SS_SHIM_RETRY_H
#define SS_SHIM_RETRY_H

#include "shim/alloc/last_error.h"
#include "shim/process/real.h"
#include "shim/process/submit_gate.h"

/* The runtime's last error of this thread, before a call that may be repeated. */
int ss_retry_before(void);
/* The call found no memory on dev (-1: the current device). True: idle memory of ours was released
 * there, and the thread's last error is `before` again. *end: state of the core, 0 at first. */
bool ss_retry(int dev, int before, uint64_t *end);

/* The call took memory, so the core's knowledge of the device's free bytes is old. */
void ss_retry_taken(void);

/* The result of `call`, which takes memory of a device. While the process sleeps the call waits. */
#define SS_TAKING(call) __extension__({ \
	const enum ss_gate taking_ = ss_gate_enter_taking(); \
	const hipError_t taken_ = unlikely(taking_ < SS_GATE_OPEN) ? ss_gate_error(taking_) : \
								     (call); \
	ss_gate_leave(taking_); \
	taken_; })

/* The result of `call`, a real call that asks for device memory. The call is repeated as long as it
 * finds no memory and our pools can release idle memory on `dev`. */
#define SS_RETRY(dev, call) SS_TAKING(SS_RETRY_AWAKE(dev, call))
#define SS_RETRY_AWAKE(dev, call) __extension__({ \
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
