/* SPDX-License-Identifier: MIT */
/* Memsets. */
#ifndef SIM_HIP_MEMSET_H
#define SIM_HIP_MEMSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

/* A memset in up to three dimensions; w counts elements of elem bytes, the pitches bytes. The
 * synchronous form returns early if dst is the start of an allocation, and waits elsewhere:
 * programs that divide allocations run into this. */
hipError_t submit_fill(hipStream_t h, void *dst, uint32_t v, int elem, size_t w, size_t rows,
		       size_t depth, size_t pitch, size_t slice, bool async);

#endif
