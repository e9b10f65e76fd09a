/* SPDX-License-Identifier: MIT */
/* CUDA's boxes as HIP has them. */
#ifndef SIM_LIBCUDA_COPY_H
#define SIM_LIBCUDA_COPY_H

#include <hip/hip_runtime_api.h>

#include "cuda/driver_types.h"

hipMemcpy3DParms box_of(const CUDA_MEMCPY3D *c);

#endif
