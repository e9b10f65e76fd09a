/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_LIMIT for memory of the runtime: arrays, hipMemCreate, fine-grained memory, graphs and
 * the runtime's own pools count against it as our pools do, and are refused beyond it.
 */
#ifndef SS_SHIM_LIMIT_H
#define SS_SHIM_LIMIT_H

#include "shim/alloc/retry.h"
#include "shim/process/service.h"

static inline bool ss_limited(void)
{
	return unlikely(ss_options.limit.set);
}

/* dev, or the current device for -1. Its pools exist then. -1: there is none. */
int ss_limit_device(int dev);
/* Counts `bytes` of dev. False: the bytes are beyond the limit, and not counted. */
bool ss_limit_begin(int dev, uint64_t bytes);
/* The result of the call was `err`: after an error the bytes no longer count. Returns err. */
hipError_t ss_limit_end(hipError_t err, int dev, uint64_t bytes);
/* The memory that was counted is known by `key`, a pointer or a handle. */
void ss_limit_keep(const void *key, int dev, uint64_t bytes);
/* The memory of this key was freed. An unknown key has no effect. */
void ss_limit_drop(const void *key);
/* dev is reset. */
void ss_limit_reset(int dev);

/* Bytes of an array, at least: the runtime rounds up. 0 if it cannot exist. Sizes of 0 count as
 * 1. */
uint64_t ss_limit_array(const hipChannelFormatDesc *desc, size_t width, size_t height, size_t depth,
			unsigned levels);
uint64_t ss_limit_driver_array(unsigned format, unsigned channels, size_t width, size_t height,
			       size_t depth, unsigned levels);

/* The result of `call`, which takes `bytes` of dev (-1: the current device) and then knows the
 * memory by `key`, an expression that is evaluated after success. A call beyond the limit is
 * repeated as long as our pools can release idle memory, like a call that finds no memory. */
#define SS_LIMITED(dev, bytes, key, call) __extension__({ \
	uint64_t bytes_ = ss_limited() ? (bytes) : 0; \
	int dev_ = bytes_ ? ss_limit_device(dev) : (dev); \
	hipError_t limited_ = \
		SS_RETRY(dev_, !ss_limit_begin(dev_, bytes_) ? \
				       hipErrorOutOfMemory : \
				       ss_limit_end(call, dev_, bytes_)); \
	if (bytes_ && limited_ == hipSuccess) \
		ss_limit_keep((const void *)(uintptr_t)(key), dev_, bytes_); \
	limited_; })

#endif
