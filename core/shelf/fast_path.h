/* SPDX-License-Identifier: MIT */
/*
 * Which pools the hot path may serve by itself. The pool layer says so; the entry points of the
 * hot path are in core/core.h.
 */
#ifndef SS_SHELF_FAST_PATH_H
#define SS_SHELF_FAST_PATH_H

#include "core/shelf/shelf.h"

struct ss_fast_path {
	/* Caches of each device's current pool, and of its pool for hipMalloc; NULL: the long way.
	 * Whoever changes one calls ss_hits_end(). */
	_Atomic(struct ss_shelves *) current[SS_MAX_DEVICES], classic[SS_MAX_DEVICES];
	/* The current pool is a default one, so that a free of its last block ends nothing. */
	atomic_bool frees[SS_MAX_DEVICES];
	/* The next free is to wake the watcher of idle memory (ss_decay_notify), so frees take the
	 * slow path. Whoever changes it calls ss_hits_end(). */
	atomic_bool notifies;
	bool slow;                 /* an option, or who watches blocks, wants the long way */
	const _Atomic int *shut;   /* ss_hits_gate(); NULL: never */
	_Atomic uint64_t next_ids; /* ss_shelf_new_ids() */
};

/* False: host memory is out. */
bool ss_fast_path_init(struct ss_core *core);
void ss_fast_path_finish(struct ss_core *core);

#endif
