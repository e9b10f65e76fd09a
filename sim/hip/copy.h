/* SPDX-License-Identifier: MIT */
/* Makes the commands that copy, and submits them to a stream. */
#ifndef SIM_HIP_COPY_H
#define SIM_HIP_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include <hip/hip_runtime_api.h>

struct sim_command;

/* NULL with *e set: the parameters are wrong. */
struct sim_command *copy_command(void *dst, const void *src, size_t n);
struct sim_command *copy3d_command(const hipMemcpy3DParms *p, hipError_t *e);
struct sim_command *driver_copy3d_command(const HIP_MEMCPY3D *p);

hipError_t check_copy(const void *dst, const void *src, size_t n, hipMemcpyKind kind);

/* Checks both sides against their allocations and submits the copy. Takes c over. */
hipError_t submit_copy(hipStream_t h, struct sim_command *c, hipMemcpyKind kind, bool wait);

/* A copy of rows: w bytes of each; dp and sp are the pitches. */
hipError_t submit_rows(hipStream_t h, void *dst, size_t dp, const void *src, size_t sp, size_t w,
		       size_t rows, hipMemcpyKind kind, bool wait);

/* A copy as hipMemcpy3D describes it. */
hipError_t submit_copy3d(const hipMemcpy3DParms *p, hipStream_t h, bool wait);

/* Bytes per row of an array. */
size_t array_pitch(const hipArray *a);

#endif
