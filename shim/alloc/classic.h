/* SPDX-License-Identifier: MIT */
/* What hipMalloc and hipFree do with blocks of ours. */
#ifndef SS_SHIM_CLASSIC_H
#define SS_SHIM_CLASSIC_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

#include "core/core.h"

/* hipMalloc, and every call that is one inside. `guarded`: the real call fails beside captures
 * that forbid it, so this one does. */
hipError_t ss_malloc(void **ptr, size_t size, bool guarded);
/* hipFree of ptr, which lies in a live block of ours; `async`: the program called hipFreeAsync. */
hipError_t ss_free_owned(void *ptr, const struct ss_found *f, bool async);
/* After exit() has begun: counts a block of ours as freed. Its memory goes with the process. */
void ss_free_at_exit(const struct ss_found *f);

#endif
