/* SPDX-License-Identifier: MIT */
/* The functions behind the exported hip* calls: i_ and the name, one per E row of
 * hip_entries.h. Only files that hold such functions, or call them, include this. */
#ifndef SIM_HIP_ENTRY_POINTS_H
#define SIM_HIP_ENTRY_POINTS_H

#include <hip/hip_runtime_api.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Hidden, so that a library in which one is missing does not link. */
#pragma GCC visibility push(hidden)
#define E(name, node, params, args) hipError_t i_##name params;
#define S(name, node, params, args)
#define N(name, node, params)
#define X(name, node)
#include "hip/hip_entries.h"
#undef E
#undef S
#undef N
#undef X
#pragma GCC visibility pop

#endif
