/* SPDX-License-Identifier: MIT */
/* Keeps and calls the one function that is told of synchronizations (sync_watch.h). No lock. */
#include <stddef.h>

#include "shim/stream/sync_watch.h"

atomic_int ss_sync_waiting;
static const struct ss_sync_watch *_Atomic watcher;

void ss_sync_watch_set(const struct ss_sync_watch *watch)
{
	atomic_store(&watcher, watch);
}

void ss_sync_before_device(int dev)
{
	const struct ss_sync_watch *w = atomic_load(&watcher);

	if (ss_sync_watched() && w)
		w->before_device_sync(dev);
}

void ss_sync_after_slow(bool joins_null)
{
	const struct ss_sync_watch *w = atomic_load(&watcher);

	if (w)
		w->after_sync(joins_null);
}

void ss_sync_before_reset(int dev)
{
	const struct ss_sync_watch *w = atomic_load(&watcher);

	if (w)
		w->before_reset(dev);
}
