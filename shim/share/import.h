/* SPDX-License-Identifier: MIT */
/* Opening and closing memory of other processes. */
#ifndef SS_SHIM_IMPORT_H
#define SS_SHIM_IMPORT_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

#include "shim/share/handle.h"

/* Opens a block of another process on `dev`, for a pool. */
hipError_t ss_import_pointer(const struct ss_handle *h, int dev, void **ptr);

/* hipFree and hipFreeAsync of a pointer that is no block of ours. True: it was imported,
 * and *err is the answer. False: nothing was done. */
bool ss_import_free(void *ptr, hipError_t *err);
bool ss_import_free_async(void *ptr, int dev, hipError_t *err);

/* Called before any memory is opened. Registers with stream/sync_watch.h, so that mappings are
 * closed when they are idle and forgotten when their device is reset. */
void ss_import_watch(void);

#endif
