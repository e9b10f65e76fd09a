/* SPDX-License-Identifier: MIT */
/* Lets go of memory that a mapping left behind by the runtime keeps (quirk V7). */
#ifndef SS_ROCM_LEFT_MAPPING_H
#define SS_ROCM_LEFT_MAPPING_H

#include <stddef.h>

/* Call after [va, va + size) of `dev` was unmapped, and before anything else is mapped there. Any
 * thread; the range stays reserved. Makes no call of HIP. */
void ss_rocm_left_mapping_cover(int dev, void *va, size_t size);

#endif
