/* SPDX-License-Identifier: MIT */
/*
 * The pools that the hot path may serve by itself, as the pool layer sets them. The entry points of
 * the hot path are in core/core.h.
 */
#ifndef SS_SHELF_FAST_PATH_H
#define SS_SHELF_FAST_PATH_H

#include "core/shelf/shelf.h"

struct ss_fast_path {
	/* The shelves of each device's current pool, and of its pool for hipMalloc; NULL: the slow
	 * path. After a change ss_hits_end() is called. */
	_Atomic(struct ss_shelves *) current[SS_MAX_DEVICES], classic[SS_MAX_DEVICES];
	/* The current pool is a default pool, so a free of its last block ends no pool. */
	atomic_bool frees[SS_MAX_DEVICES];
	/* The next free wakes the watcher of idle memory (ss_decay_notify), so frees take the
	 * slow path. After a change ss_hits_end() is called. */
	atomic_bool notifies;
	bool slow;                 /* an option, or a watcher of blocks, needs the slow path */
	const _Atomic int *shut;   /* ss_hits_gate(); NULL: never */
	_Atomic uint64_t next_ids; /* ss_shelf_new_ids() */
};

/* False: host memory is out. */
bool ss_fast_path_init(struct ss_core *core);
void ss_fast_path_finish(struct ss_core *core);

#endif
