/* SPDX-License-Identifier: MIT */
/*
 * Which pools the hot path may serve by itself. The pool layer says so; the entry points of the
 * hot path are in core/core.h.
 */
#ifndef SS_CACHE_FAST_PATH_H
#define SS_CACHE_FAST_PATH_H

#include "core/cache/stream_cache.h"

/* Frees on a stream after which one takes the long way, which drives decay. */
#define SS_FREES_PER_LOOK 128

struct ss_fast_path {
	/* Caches of each device's current pool, and of its pool for hipMalloc; NULL: the long way.
	 * Whoever changes one calls ss_hits_end(). */
	_Atomic(struct ss_caches *) current[SS_MAX_DEVICES], classic[SS_MAX_DEVICES];
	/* The current pool is a default one, so that a free of its last block ends nothing. */
	atomic_bool frees[SS_MAX_DEVICES];
	/* Nobody looks after memory that becomes idle, so every free takes the long way, and the
	 * first one calls for somebody (ss_decay_watch). Whoever changes it calls
	 * ss_hits_end(). */
	atomic_bool unwatched;
	bool slow;                 /* an option, or who watches blocks, wants the long way */
	const _Atomic int *shut;   /* ss_hits_gate(); NULL: never */
	_Atomic uint64_t next_ids; /* ss_cache_new_ids() */
};

/* Is the next free on q one that drives decay? q->lock not held. */
bool ss_cache_looks(struct ss_stream_cache *q);
/* False: host memory is out. */
bool ss_fast_path_init(struct ss_core *core);
void ss_fast_path_finish(struct ss_core *core);

#endif
