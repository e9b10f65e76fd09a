/* SPDX-License-Identifier: MIT */
/* Releases memory that is kept by a mapping which the runtime left behind (quirk V7). */
#ifndef SS_ROCM_LEFT_MAPPING_H
#define SS_ROCM_LEFT_MAPPING_H

#include <stddef.h>

/* Call after [va, va + size) of `dev` was unmapped, and before new memory is mapped at these
 * addresses. Any thread; the range stays reserved. Makes no call of HIP. */
void ss_rocm_left_mapping_cover(int dev, void *va, size_t size);

#endif
