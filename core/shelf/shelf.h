/* SPDX-License-Identifier: MIT */
/*
 * The shelf: free ranges of one pool that belong to one stream, and that the stream divides by
 * itself. An allocation that the shelf can serve, and a free on the stream, take the shelf's own
 * lock and no other.
 *
 * A freed block merges with its free neighbours at once, and an allocation is cut from the best
 * fit. Every mark in the shelf is one of the stream's own timeline.
 */
#ifndef SS_SHELF_SHELF_H
#define SS_SHELF_SHELF_H

#include "core/backing/memory.h"
#include "core/base/lock.h"
#include "core/order/order.h"
#include "core/range/free_index.h"

/* At first, larger idle segments are cut only with the pool's consent, because they could be
 * released whole. */
#define SS_CUT_FREELY (4ull << 20)

/* Bytes in use as one thread or one stream counts them, and their peak. */
struct ss_count {
	_Atomic uint64_t used, peak;
};

struct ss_shelf {
	/* Used by hits: */
	struct ss_bias lock;
	uint64_t id, hits, frees; /* id: upper bits of the ids of its blocks */
	struct ss_count count;    /* its part of the pool's used bytes */
	struct ss_shelves *set;
	struct ss_timeline *tl; /* NULL: the shelf of completed blocks, which has no timeline */
	struct ss_spares spares;
	uint32_t slot;             /* of tl; UINT32_MAX without one */
	struct ss_free_index free; /* ranges that were freed on this stream, merged */
	/* Bytes of whole segments in the shelf; read without the lock */
	_Atomic uint64_t idle;
	_Atomic uint64_t cut_freely; /* bytes: a hit may cut idle segments up to this size */
	/* ms: the latest time since when all idle ranges that came here completed are idle */
	uint64_t completed_since;
	/* Guarded by the pool's lock: */
	uint64_t frees_fenced;              /* `frees` when the stream was asked last */
	struct ss_block *lists[SS_CLASSES]; /* of `free` */
};

/* The shelves of one pool. */
struct ss_shelves {
	struct ss_core *core;
	struct ss_memory *memory;
	_Atomic(struct ss_shelf_table *) table; /* by slot */
	struct ss_shelf *done;                  /* of blocks that have completed (hipMalloc) */
	/* The number of streams' shelves; memory->lock. */
	_Atomic uint32_t count;
	/* The first thread that uses the pool counts alone, in `alone`; from the second on every
	 * shelf counts for itself (used_bytes.c). */
	_Atomic uintptr_t counter;
	_Alignas(64) struct ss_count alone;
};

/* `memory` outlives it. False: host memory is out. */
bool ss_shelves_init(struct ss_shelves *set, struct ss_core *core, struct ss_memory *memory);
void ss_shelves_finish(struct ss_shelves *set);
/* The shelf of tl; made if there is none. Takes memory->lock for that. NULL: host memory is out. */
struct ss_shelf *ss_shelf_get(struct ss_shelves *set, struct ss_timeline *tl);
/* The shelf of a slot; NULL: there is none. */
struct ss_shelf *ss_shelf_of_slot(const struct ss_shelves *set, uint32_t slot);
/* The next stream's shelf after q, or the first one if q is NULL or set->done. NULL: no more. */
struct ss_shelf *ss_shelf_after(const struct ss_shelves *set, const struct ss_shelf *q);
/* The shelves of all streams. */
#define SS_SHELVES_EACH(q, set) \
	for (struct ss_shelf *q = ss_shelf_after(set, NULL); q; q = ss_shelf_after(set, q))
/* The shelf of completed blocks, and those of all streams. */
#define SS_SHELVES_ALL(q, set) \
	for (struct ss_shelf *q = (set)->done; q; q = ss_shelf_after(set, q))
/* A new range of block ids. */
uint64_t ss_shelf_new_ids(struct ss_core *core);
/* Forgets every range of the shelf. Lock not held. */
void ss_shelf_clear(struct ss_shelf *q);
/* Locks the shelves of all streams, or unlocks them, so that blocks can be walked. memory->lock
 * held; no other function ever holds two of these locks. */
void ss_shelves_freeze(struct ss_shelves *set, bool on);

/* ---- one block. q->lock not held. ------------------------------------------ */

/* From the shelf, in state QUEUED; *id: the id that the block gets. NULL: none. */
struct ss_block *ss_shelf_pop(struct ss_shelf *q, uint64_t size, uint64_t align, uint64_t *id);
/* b, which was claimed, with its mark set, goes into the shelf. */
void ss_shelf_push(struct ss_shelf *q, struct ss_block *b);
/* Takes the live block at addr from its owner, if q handed it out. *moved: q is no longer the
 * block's shelf. Of two threads that free one block only one succeeds. */
bool ss_shelf_claim(struct ss_shelf *q, struct ss_block *b, uint64_t addr, bool *moved);
/* b, QUEUED, is live from now on. `request`: bytes asked for. Returns as ss_used_add(). */
uint64_t ss_shelf_hand_out(struct ss_shelf *q, struct ss_block *b, uint64_t request, uint64_t id,
			   bool classic);

/* ---- the shelf: shelf.c. q->lock held. -------------------------------------- */

/* b, QUEUED, with a mark of q's timeline (n 0: completed), becomes free in the shelf. */
void ss_shelf_put(struct ss_shelf *q, struct ss_block *b);
/* `size` bytes at `align`, in state QUEUED. An idle segment above q->cut_freely is cut only with
 * `cut`. NULL: no such range, or host memory is out. */
struct ss_block *ss_shelf_take(struct ss_shelf *q, uint64_t size, uint64_t align, bool cut);
/* The smallest idle segment in the shelf from which such a block would be cut; NULL: none. */
struct ss_block *ss_shelf_idle(const struct ss_shelf *q, uint64_t size, uint64_t align);
/* b, which was taken out of the completed ranges, belongs to the shelf from now on.
 * memory->lock held. */
void ss_shelf_adopt(struct ss_shelf *q, struct ss_block *b);
/* Takes every range out of the shelf for which `may` is true. They are QUEUED and
 * linked by ->left, with their marks. */
typedef bool ss_range_test(const struct ss_block *b, const void *arg);
struct ss_block *ss_shelf_extract(struct ss_shelf *q, ss_range_test *may, const void *arg);
/* Free bytes in the shelf; without the lock: a hint. */
uint64_t ss_shelf_free_hint(const struct ss_shelf *q);

/* ---- bytes in use: used_bytes.c ---------------------------------------------- */

/* Adds `delta` (may be negative as two's complement) to the bytes in use. Returns the time of
 * the change, for the event of a recording, or 0. q->lock not held; while a recording runs it
 * may be. */
uint64_t ss_used_add(struct ss_shelf *q, uint64_t delta);
uint64_t ss_used(struct ss_shelves *set);
uint64_t ss_used_high(struct ss_shelves *set);
/* Starts the high-water mark again; `to_zero`: no block is live either. */
void ss_used_reset(struct ss_shelves *set, bool to_zero);

#endif
