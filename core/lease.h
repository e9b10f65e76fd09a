/* SPDX-License-Identifier: MIT */
/* What a stream divides by itself (lease.c, divide.c). */
#ifndef SOMASHIM_CORE_LEASE_H
#define SOMASHIM_CORE_LEASE_H

#include "core/internal.h"

/* ---- lease.c: pool->lock held --------------------------------------------- */

/* Leases what q's stream alone uses of the pool to it, and b, which it is about to be
 * given. */
void ss_lease_make(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b, bool merges);
/* Everything is the pool's again; its free ranges are placed. */
void ss_lease_end(struct ss_pool *pool, struct ss_queue *q);
/* The same, but for the placing: a list by ->left. q->lock held, too. */
struct ss_block *ss_lease_undo(struct ss_pool *pool, struct ss_queue *q);
void ss_lease_end_all(struct ss_pool *pool);
/* Has q leased free memory that would serve another stream? *out: `size` bytes at `align`
 * of it, in state QUEUED; NULL: a large segment would be cut, or its bins hold such a block,
 * or host memory is out. */
enum ss_offer {
	SS_OFFER_NONE,
	SS_OFFER_LATER, /* when its mark has completed */
	SS_OFFER_NOW,
};
enum ss_offer ss_lease_give(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
			    uint64_t align, struct ss_block **out);
/* b, which q's stream is about to be given, belongs to its lease, too. */
void ss_lease_add(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b);
/* Nobody divides what is leased until the same with `on` false. */
void ss_lease_freeze(struct ss_pool *pool, bool on);
/* The queue that `lessee` of a block names. */
struct ss_queue *ss_lessee_queue(struct ss_pool *pool, uint32_t lessee);

/* ---- divide.c: q->lock held ------------------------------------------------ */

/* `size` bytes at `align` of what q holds by lease, in state QUEUED; NULL: it has no
 * such run. */
struct ss_block *ss_lease_take(struct ss_queue *q, uint64_t size, uint64_t align);
/* b, which was freed, goes back into its run at once. False: that is not q's, which has a
 * lease that merges. */
bool ss_lease_return(struct ss_queue *q, struct ss_block *b);
/* Takes what is in q's bins back into its lease. False: that is not much. */
bool ss_lease_collect(struct ss_queue *q);
/* b becomes free in its run, and one with its free neighbours. */
void ss_lease_put(struct ss_queue *q, struct ss_block *b);
/* Cuts [start, start + size) out of b, which is in no heap. NULL: host memory is out. */
struct ss_block *ss_lease_cut(struct ss_queue *q, struct ss_block *b, uint64_t start,
			      uint64_t size);
/* What bin i holds of the run goes there: all, or one block that is no whole segment
 * (which could go back instead). True: any did. */
bool ss_lease_empty(struct ss_queue *q, unsigned i, bool all);
/* Is b an idle segment that is larger than what the pool would grow by? Where sizes do not come
 * again, and for other streams, whether that is cut is to be weighed (ss_slab_wasteful). */
bool ss_lease_keeps(const struct ss_block *b, uint64_t size);

#endif
