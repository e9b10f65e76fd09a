/* SPDX-License-Identifier: MIT */
/* Has the loader added an object since the last look? */
#ifndef SS_SHIM_LOADER_H
#define SS_SHIM_LOADER_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "driver/rocm/guard.h"

/* Prepares for ss_loader_unchanged(); it may load a library, so call it with no lock held.
 * A second call does nothing. */
void ss_loader_start(void);
/* The caller has just looked at all loaded objects. `before`: what ss_loader_mark() returned before
 * that. */
struct link_map *ss_loader_mark(void);
void ss_loader_seen(struct link_map *before);

/* The last entry of the loader's list at the last look; NULL: unknown. */
extern struct link_map *_Atomic ss_loader_last __attribute__((visibility("hidden")));

/* True: no object was loaded since the last look. False: perhaps one was. Two loads, no call. */
static inline bool ss_loader_unchanged(void)
{
	const struct link_map *map = atomic_load_explicit(&ss_loader_last, memory_order_acquire);

	return likely(map && !__atomic_load_n(&map->l_next, __ATOMIC_RELAXED) &&
		      __atomic_load_n(&_r_debug.r_version, __ATOMIC_RELAXED) == 1);
}

#endif
