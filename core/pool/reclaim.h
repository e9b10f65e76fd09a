/* SPDX-License-Identifier: MIT */
/* What was freed, until it is usable again: marks of many streams, and what has become of them. */
#ifndef SS_POOL_RECLAIM_H
#define SS_POOL_RECLAIM_H

#include "core/pool/pool_state.h"

/* ---- reclaim.c: what has become usable. Pool lock held. -------------------------- */

/* b, which nobody holds, with its mark (slot, n) set, goes where it belongs: into the stream's
 * arena, into an epoch's list, or among the completed ranges. */
void ss_reclaim_put(struct ss_pool *pool, struct ss_block *b);
/* The ranges of every epoch that has completed go to the completed ranges. */
void ss_reclaim_epochs(struct ss_pool *pool);
/* What has completed of every stream goes to the completed ranges, merged. */
void ss_reclaim_all(struct ss_pool *pool);
/* What x may use by event order, or by the null stream's joins, moves into x's arena, if `size`
 * bytes might come of it. */
enum { SS_RULE_EVENT = 1, SS_RULE_IMPLICIT = 2 };
unsigned ss_reclaim_ordered(struct ss_pool *pool, struct ss_timeline *x,
			    const struct ss_clock *clock, uint64_t size);
/* After x was made to wait for it: what tl freed up to n moves into x's arena. */
bool ss_reclaim_gated(struct ss_pool *pool, struct ss_timeline *x, struct ss_stream_cache *from,
		      uint64_t n);
/* Free bytes that no lock was taken for; an upper bound of what the pool could find. */
uint64_t ss_pool_free_hint(struct ss_pool *pool);

/* ---- epoch.c: marks of many timelines. Pool lock held. --------------------------- */

struct ss_epoch {
	struct ss_epoch *prev, *next;
	struct ss_block *blocks; /* by ->right, with ->left back */
	uint64_t bytes;
	uint64_t since;         /* ms */
	uint64_t by[SS_FREERS]; /* of bytes, as they were freed */
	uint64_t wide;          /* needs a device-wide wait; 0: no */
	uint32_t count;         /* at least 1 */
	/* Marks that were not reached, and had no fence, when somebody looked last */
	uint32_t open, unasked;
	struct ss_mark mark[];
};

/* Marks b with everything that may use the pool's memory. False: host memory is out, and b must
 * not be reused yet. */
bool ss_epoch_mark(struct ss_pool *pool, struct ss_block *b);
void ss_epoch_insert(struct ss_block *b);
bool ss_epoch_reached(struct ss_pool *pool, struct ss_epoch *e);
void ss_epoch_free(struct ss_pool *pool, struct ss_epoch *e);

/* ---- pressure.c, backpressure.c: what is on its way back -------------------------- */

/* Bytes were freed into e; all of e has completed. Pool lock held. */
void ss_pressure_freed(struct ss_pool *pool, struct ss_epoch *e, uint64_t size);
void ss_pressure_completed(struct ss_pool *pool, const struct ss_epoch *e);
/* The calling thread's place in `by`. */
unsigned ss_pressure_self(void);
/* Is a fence on its way for all that e waits for? Pool lock held. */
bool ss_pressure_asked(struct ss_pool *pool, struct ss_epoch *e);
/* Is it time to ask how far the streams are for the sake of epochs? Pool lock held. */
bool ss_pressure_due(struct ss_pool *pool);
/* Is so much of a classic pool under way that hipMalloc of `size` bytes would wait? No lock. */
bool ss_pressure_high(struct ss_pool *pool, uint64_t size);
/* hipFree has not waited, so hipMalloc may, for a bounded time. True: the device was found idle.
 * No lock held. */
bool ss_pressure_idle(struct ss_pool *pool);

/* ---- blocks of which bytes are kept: ../ipc.c, front.c ----------------------------- */

/* An exported block that was freed: never again anybody's. No lock held. */
void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b);
/* The same of one that waited for its marks, and was counted before. Pool lock held. */
void ss_ipc_gap(struct ss_block *b);
/* The block with its front, from b, which has one and was taken from its owner. No lock held. */
struct ss_block *ss_front_join(struct ss_pool *pool, struct ss_block *b);

#endif
