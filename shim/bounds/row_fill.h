/* SPDX-License-Identifier: MIT */
/* Memsets in rows that the runtime refuses (raw HSA memory), or that would go beyond the block. */
#ifndef SS_SHIM_ROW_FILL_H
#define SS_SHIM_ROW_FILL_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

struct ss_row_fill {
	void *dst;
	size_t pitch, slice, depth; /* bytes, rows per slice, slices */
	size_t element;             /* bytes */
	int value;
	size_t width, height; /* elements, rows */
};

/* False: the real call can do this memset. `sync`: the call makes the host wait. */
bool ss_row_fill_needed(const struct ss_row_fill *r, bool sync);
hipError_t ss_row_fill(const struct ss_row_fill *r, hipStream_t stream);

#endif
