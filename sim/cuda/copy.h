/* SPDX-License-Identifier: MIT */
/* Copies of boxes. All other shapes are boxes, too: lines, rows, and arrays, which are rows
 * here. */
#ifndef SIM_CUDA_COPY_H
#define SIM_CUDA_COPY_H

#include <hip/hip_runtime_api.h>

#include "cuda/driver.h"

struct box {
	void *dst;
	const void *src;
	size_t dst_pitch, dst_rows; /* bytes of a row, rows of a slice */
	size_t src_pitch, src_rows;
	size_t width, rows, slices; /* what is copied; width in bytes */
};

/* False: a side is missing, or a pitch is smaller than the width. */
bool box_valid(const struct box *b);

/* The box as the driver takes it. A context is current. */
CUDA_MEMCPY3D box_for_driver(const struct box *b);

/* The box that is described. A side that is missing is NULL. */
struct box box_of(const hipMemcpy3DParms *p);
struct box box_of_driver(const HIP_MEMCPY3D *p);

/* Copies on a stream, and waits if `wait` is set. Nothing to copy is success. A context is
 * current. */
hipError_t box_copy(const struct box *b, hipStream_t s, bool wait);

/* Bytes per row of an array. */
size_t array_pitch(const hipArray *a);

static inline bool copy_kind_known(hipMemcpyKind kind)
{
	return (unsigned)kind <= hipMemcpyDefault;
}

#endif
