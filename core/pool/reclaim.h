/* SPDX-License-Identifier: MIT */
/* What was freed, until it is usable again: marks of many streams, and what has become of them. */
#ifndef SS_POOL_RECLAIM_H
#define SS_POOL_RECLAIM_H

#include "core/pool/pool_state.h"

/* ---- reclaim.c: what has become usable. Pool lock held. -------------------------- */

/* b, which nobody holds, with its mark (slot, n) set, goes where it belongs: into the stream's
 * shelf, into the list of what has a mark of ALL, or among the completed ranges. */
void ss_reclaim_put(struct ss_pool *pool, struct ss_block *b);
/* What has completed of every stream goes to the completed ranges, merged. */
void ss_reclaim_all(struct ss_pool *pool);
/* What x may use by event order, or by the null stream's joins, moves into x's shelf, if `size`
 * bytes might come of it. */
enum { SS_RULE_EVENT = 1, SS_RULE_IMPLICIT = 2 };
unsigned ss_reclaim_ordered(struct ss_pool *pool, struct ss_timeline *x,
			    const struct ss_clock *clock, uint64_t size);
/* After x was made to wait for it: what tl freed up to n moves into x's shelf. */
bool ss_reclaim_gated(struct ss_pool *pool, struct ss_timeline *x, struct ss_shelf *from,
		      uint64_t n);
/* Free bytes that no lock was taken for; an upper bound of what the pool could find. */
uint64_t ss_pool_free_hint(struct ss_pool *pool);

/* ---- growth_wait.c ------------------------------------------------------------------ */

/* Has so much of a classic pool a mark of ALL that hipMalloc of `size` bytes would wait? No
 * lock. */
bool ss_much_pending(struct ss_pool *pool, uint64_t size);

/* ---- blocks of which bytes are kept: ../ipc.c, front.c ----------------------------- */

/* An exported block that was freed: never again anybody's. No lock held. */
void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b);
/* The same of one that waited for its marks, and was counted before. Pool lock held. */
void ss_ipc_gap(struct ss_block *b);
/* The block with its front, from b, which has one and was taken from its owner. No lock held. */
struct ss_block *ss_front_join(struct ss_pool *pool, struct ss_block *b);

#endif
