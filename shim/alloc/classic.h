/* SPDX-License-Identifier: MIT */
/* hipMalloc and hipFree for blocks of ours. */
#ifndef SS_SHIM_CLASSIC_H
#define SS_SHIM_CLASSIC_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

#include "core/core.h"

/* Serves hipMalloc, and every call that allocates as hipMalloc does. `guarded`: the call fails if a
 * capture forbids it, as the real call does. */
hipError_t ss_malloc(void **ptr, size_t size, bool guarded);
/* Serves hipFree of ptr, which lies in a live block of ours; `async`: the program called
 * hipFreeAsync. */
hipError_t ss_free_owned(void *ptr, const struct ss_found *f, bool async);
/* After exit() has begun: counts a block of ours as freed. The end of the process releases its
 * memory. */
void ss_free_at_exit(const struct ss_found *f);

#endif
