/* SPDX-License-Identifier: MIT */
/*
 * Who else may look at a device. A hipFree that does not wait can only be noticed
 * by something besides one stream's own work; this is the record of it.
 */
#include "shim/shim.h"

static _Atomic unsigned seen[SS_MAX_DEVICES];

static void add(_Atomic unsigned *at, unsigned what)
{
	/* Nearly always set already: keep the line shared. */
	if ((atomic_load_explicit(at, memory_order_relaxed) & what) != what)
		atomic_fetch_or(at, what);
}

void ss_seen(int dev, unsigned what)
{
	if (dev >= 0 && dev < SS_MAX_DEVICES) {
		add(&seen[dev], what);
		return;
	}
	for (int i = 0; i < SS_MAX_DEVICES; i++)
		add(&seen[i], what);
}

unsigned ss_seen_on(int dev)
{
	return atomic_load(&seen[dev]);
}
