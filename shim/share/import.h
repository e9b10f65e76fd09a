/* SPDX-License-Identifier: MIT */
/* Memory of other processes, as the rest of the shim meets it. */
#ifndef SS_SHIM_IMPORT_H
#define SS_SHIM_IMPORT_H

#include "shim/share/handle.h"
#include "shim/shim.h"

/* Names a block that is being exported; the runtime is asked once per segment. */
hipError_t ss_export_handle(const struct ss_ipc_place *place, struct ss_handle *h);
/* Where the segment of this very process that `h` names is or was, and its number; NULL: it
 * names none. */
void *ss_export_segment(const struct ss_handle *h, uint64_t *serial);

/* Opens a block of another process on `dev`, for a pool. */
hipError_t ss_import_pointer(const struct ss_handle *h, int dev, void **ptr);

/* Does ptr lie in an imported block that does not start its mapping? A handle that the
 * runtime makes for it would open somewhere else. */
bool ss_import_inside(const void *ptr);

/* A free of what may have been imported. False: it was not, and nothing was done. */
bool ss_import_free(void *ptr, hipError_t *err);
bool ss_import_free_async(void *ptr, int dev, hipError_t *err);

/* A block that was exported here and imported here too is open more than once; a free
 * then only counts. False: this is the last. */
extern atomic_int ss_self_imports SS_HIDDEN;
bool ss_self_import_release(void *ptr);
/* dev was reset, and pools of the runtime's with it. */
void ss_share_reset(int dev);

/* At a synchronization point: mappings go whose last use has ended. */
extern atomic_int ss_sync_waiting;
static inline bool ss_import_ending(void)
{
	return unlikely(atomic_load_explicit(&ss_sync_waiting, memory_order_relaxed));
}
void ss_import_settle_slow(bool joins_null);
/* Before a call that waits for `dev` anyway. */
void ss_import_close_one(int dev);
static inline void ss_import_settle(bool joins_null)
{
	if (ss_import_ending())
		ss_import_settle_slow(joins_null);
}

#endif
