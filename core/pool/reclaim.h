/* SPDX-License-Identifier: MIT */
/* Freed ranges until they are usable again: marks of many streams, and how they complete. */
#ifndef SS_POOL_RECLAIM_H
#define SS_POOL_RECLAIM_H

#include "core/pool/pool_state.h"

/* ---- reclaim.c: usable ranges. Pool lock held. ----------------------------------- */

/* b has a mark (slot, n) and no owner. Puts b into the stream's shelf, the list of ALL, or the
 * completed ranges, as its mark says. */
void ss_reclaim_put(struct ss_pool *pool, struct ss_block *b);
/* Moves the completed ranges of every stream to the pool's completed ranges, and merges them. */
void ss_reclaim_all(struct ss_pool *pool);
/* Moves ranges that x may use by event order, or by the null stream's joins, into x's shelf, if
 * `size` bytes might come of it. */
enum { SS_RULE_EVENT = 1, SS_RULE_IMPLICIT = 2 };
unsigned ss_reclaim_ordered(struct ss_pool *pool, struct ss_timeline *x,
			    const struct ss_clock *clock, uint64_t size);
/* After x was made to wait for tl: moves ranges that tl freed up to n into x's shelf. */
bool ss_reclaim_gated(struct ss_pool *pool, struct ss_timeline *x, struct ss_shelf *from,
		      uint64_t n);
/* Free bytes, read without a lock; an upper bound of the bytes that the pool could find. */
uint64_t ss_pool_free_hint(struct ss_pool *pool);

/* ---- growth_wait.c ------------------------------------------------------------------ */

/* Would hipMalloc of `size` bytes wait, because so many bytes of a classic pool have a pending
 * mark of ALL? No lock. */
bool ss_much_pending(struct ss_pool *pool, uint64_t size);

/* ---- blocks of which bytes are kept: ../ipc.c, front.c ----------------------------- */

/* Keeps an exported block that was freed: its bytes are never handed out again. No lock held. */
void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b);
/* The same for a block that waited for its marks, and was counted before. Pool lock held. */
void ss_ipc_gap(struct ss_block *b);
/* Joins b, which has a front and was taken from its owner, with that front. No lock held. */
struct ss_block *ss_front_join(struct ss_pool *pool, struct ss_block *b);

#endif
