/* SPDX-License-Identifier: MIT */
/*
 * Lets shim/share know when the program has waited for a stream, an event or a device. Memory of
 * other processes that the program has freed is unmapped then, if the wait shows that it is idle.
 */
#ifndef SS_SHIM_SYNC_WATCH_H
#define SS_SHIM_SYNC_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "driver/rocm/guard.h"

struct ss_sync_watch {
	/* Before a call that waits for all of dev. */
	void (*before_device_sync)(int dev);
	/* After a wait of the program. joins_null: the program waited for a whole device, so a
	 * fence on a null stream may be recorded now. */
	void (*after_sync)(bool joins_null);
	/* Before the real hipDeviceReset of dev. */
	void (*before_reset)(int dev);
};

/* Sets the only watcher, which stays. A second call with the same watcher does nothing. */
void ss_sync_watch_set(const struct ss_sync_watch *watch);
/* The number of mappings that the watcher waits for. While 0, only resets are reported. */
extern atomic_int ss_sync_waiting __attribute__((visibility("hidden")));

static inline bool ss_sync_watched(void)
{
	return unlikely(atomic_load_explicit(&ss_sync_waiting, memory_order_relaxed));
}
void ss_sync_before_device(int dev);
void ss_sync_after_slow(bool joins_null);
static inline void ss_sync_after(bool joins_null)
{
	if (ss_sync_watched())
		ss_sync_after_slow(joins_null);
}
void ss_sync_before_reset(int dev);

#endif
