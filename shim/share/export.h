/* SPDX-License-Identifier: MIT */
/* Handles of our blocks for other processes. */
#ifndef SS_SHIM_EXPORT_H
#define SS_SHIM_EXPORT_H

#include <hip/hip_runtime_api.h>

#include "core/core.h"
#include "shim/share/handle.h"

/* Fills *h for the block at `place`. The runtime is asked once per segment. */
hipError_t ss_export_handle(const struct ss_ipc_place *place, struct ss_handle *h);
/* The address of the segment of this process that `h` names, which may have been released, and its
 * number. NULL: `h` names no segment of this process. */
void *ss_export_segment(const struct ss_handle *h, uint64_t *serial);

#endif
