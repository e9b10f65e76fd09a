/* SPDX-License-Identifier: MIT */
/* Whole segments: the segment_* operations of core/driver.h. */
#ifndef SS_ROCM_SEGMENT_H
#define SS_ROCM_SEGMENT_H

#include "core/driver.h"

enum ss_status ss_rocm_segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
				     uint64_t peers, void **ptr);
enum ss_status ss_rocm_segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				    size_t size);
enum ss_status ss_rocm_segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
				      size_t size, uint64_t peers);

#endif
