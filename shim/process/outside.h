/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program takes outside of our pools, as far as calls show: managed memory, host
 * memory that a device reaches, arrays, and memory that the runtime itself serves. The memory is
 * counted by kind and device, and recorded. Any thread may call these functions.
 */
#ifndef SS_SHIM_OUTSIDE_H
#define SS_SHIM_OUTSIDE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/format.h"

/* Counts memory that a call has allocated. `key`, a pointer or a handle, identifies the memory. dev
 * -1: the current device. Nothing happens for 0 bytes or no key. */
void ss_outside_keep(enum ss_trace_outside_kind kind, const void *key, int dev, uint64_t bytes);

/* Memory that is about to be freed. The count shrinks before the real call, because another thread
 * may get the same address at once after the call. */
struct ss_outside_free {
	const void *key;
	enum ss_trace_outside_kind kind;
	int dev;
	uint64_t bytes; /* 0: the key is unknown */
};
struct ss_outside_free ss_outside_free_begin(const void *key);
/* The result of the call was `err`: after an error the memory counts again. Returns err. */
hipError_t ss_outside_free_end(const struct ss_outside_free *f, hipError_t err);

/* Counted bytes now. */
uint64_t ss_outside_bytes(int dev, enum ss_trace_outside_kind kind);
/* dev is reset: its memory is gone, except host memory. */
void ss_outside_reset(int dev);

#endif
