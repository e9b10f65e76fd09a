/* SPDX-License-Identifier: MIT */
/* Fences: the fence_* and stream_idle operations of core/driver.h. */
#ifndef SS_ROCM_FENCE_H
#define SS_ROCM_FENCE_H

#include "core/driver.h"

enum ss_status ss_rocm_fence_record(void *ctx, int dev, void *native, struct ss_fence *out);
enum ss_status ss_rocm_fence_query(void *ctx, const struct ss_fence *fence);
enum ss_status ss_rocm_fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence);
void ss_rocm_fence_release(void *ctx, struct ss_fence *fence);
enum ss_status ss_rocm_stream_idle(void *ctx, int dev, void *native);
/* The device is about to be reset: every fence on it counts as completed. */
void ss_rocm_fence_reset(int dev);
/* The stream is about to be destroyed, and a new stream may get its handle. */
void ss_rocm_fence_stream_destroyed(void *native);

#endif
