/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program takes outside of our pools, as far as calls tell: managed memory, host
 * memory that a device reaches, arrays, and what the runtime gives by itself. It is counted by kind
 * and device, and recorded. Any thread may call these functions.
 */
#ifndef SS_SHIM_OUTSIDE_H
#define SS_SHIM_OUTSIDE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"

/* The memory that a call has given is known by `key`, a pointer or a handle. dev -1: the current
 * device. Nothing happens for 0 bytes or no key. */
void ss_outside_keep(enum ss_trace_outside_kind kind, const void *key, int dev, uint64_t bytes);

/* Memory that is about to be freed. The count is taken back before the real call, because another
 * thread may get the same address at once after it. */
struct ss_outside_free {
	const void *key;
	enum ss_trace_outside_kind kind;
	int dev;
	uint64_t bytes; /* 0: nobody knows the key */
};
struct ss_outside_free ss_outside_free_begin(const void *key);
/* The result of the call was `err`: after an error it counts again. Returns err. */
hipError_t ss_outside_free_end(const struct ss_outside_free *f, hipError_t err);

/* Bytes that count now. */
uint64_t ss_outside_bytes(int dev, enum ss_trace_outside_kind kind);
/* dev is reset: what was on it is gone, but for host memory. */
void ss_outside_reset(int dev);

#endif
