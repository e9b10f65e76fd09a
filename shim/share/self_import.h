/* SPDX-License-Identifier: MIT */
/* Blocks that this process has exported and imported itself. Each such block is open more than
 * once, and a free only lowers its count until the last. */
#ifndef SS_SHIM_SELF_IMPORT_H
#define SS_SHIM_SELF_IMPORT_H

#include <hip/hip_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "shim/share/handle.h"

extern atomic_int ss_self_imports __attribute__((visibility("hidden"))); /* open blocks */
/* `h` names a block of this process: *err, and *ptr on success. False: it names none. */
bool ss_self_import_add(const struct ss_handle *h, void **ptr, hipError_t *err);
/* A free of ptr. True: it was counted, and the block lives on. False: free the block. */
bool ss_self_import_release(void *ptr);

#endif
