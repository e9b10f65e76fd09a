/* SPDX-License-Identifier: MIT */
/*
 * What was freed on one stream of one pool (queue.c), and what a stream divides by itself
 * (lease.c). Guarded by the queue's lock, the part below its bins by its pool's.
 */
#ifndef SS_CORE_QUEUE_H
#define SS_CORE_QUEUE_H

#include "core/block.h"
#include "core/lock.h"

struct ss_core;
struct ss_pool;
struct ss_timeline;

#define SS_BINS 256
#define SS_NEAR 1024
#define SS_QUEUE_MAX_BLOCKS 4096 /* beyond this a queue goes to the heap */

/* Bytes in use as somebody counts them (core/hit.h), and the most that was. */
struct ss_count {
	_Atomic uint64_t used, peak;
};

/* What was freed on one stream of one pool. Bins hold blocks of one size each,
 * newest first; `own` holds what was merged. */
struct ss_queue {
	/* Two cache lines, written by whoever uses the stream: */
	struct ss_bias lock;
	uint32_t blocks;                /* in bins and overflow, */
	uint32_t most;                  /* until it is full */
	uint64_t bytes;                 /* in bins and overflow */
	uint64_t id, hits, frees;
	struct ss_count count;          /* what it counts of the pool's used bytes */
	struct ss_block *overflow;
	struct ss_lease *lease;         /* what it divides by itself; NULL: nothing so far */
	uint8_t filled[SS_BINS];        /* 1: this bin may hold something */
	struct ss_bin { uint64_t size; struct ss_block *head; } bin[SS_BINS];
	/* What hits handed out of late, by address: of its pool, and the one live block
	 * that starts there if its state, slot and address say so, unless segments have
	 * gone since, whose addresses may be another pool's now: then every thread's record
	 * is void, and who renews its own calls ss_near_renew. */
	struct ss_near { uint64_t addr; struct ss_block *b; } near[SS_NEAR];
	uint64_t near_gone;
	uint64_t assigned;              /* times that a bin got a size */
	uint64_t asked;                 /* allocations that were no hit */
	bool merging;                   /* though sizes come again: as the slow path found last */
	uint64_t novel, novel_from;     /* of late, since so many allocations: of sizes that
	                                 * no bin had */
	struct ss_spares spares;
	struct ss_pool *pool;
	struct ss_timeline *tl;         /* NULL: the queue of completed blocks */
	uint32_t slot;                  /* its place in the table; before all, without a stream */
	/* guarded by the pool's lock: */
	uint64_t hits_counted;
	uint64_t fences, frees_fenced;  /* fences asked for; frees at the last one */
	uint32_t lease_in, lease_wait;  /* misses until the next lease is made */
	struct ss_demand {              /* steady.c: the peak of used bytes (0: to be seen), */
		uint64_t peak, at, took; /* allocations when it was, and that it took */
		uint64_t misses;        /* of them no hits */
		int64_t low;            /* the fewest bytes in use; negative: see ss_peak_of */
		unsigned waves, returns; /* since: it was almost reached; it was reached again */
		bool near_peak, at_peak;
		bool fast, costly;      /* it is kept fast; that costs calls of the driver */
	} demand;
	bool unbinned;                  /* it is full with one: ss_queue_unbin */
	struct ss_heap own;
};

/* What is known of a stream's demand (steady.c). */
enum ss_demand_state {
	SS_GROWING, /* nothing: its pool is kept tight */
	SS_MERGING, /* how much, but bins do not serve it well: tight, and divided by itself */
	SS_STEADY,  /* what it was will be again: it is kept fast */
};

/* What a queue divides by itself (lease.c, divide.c). Guarded by its lock. */
struct ss_lease {
	struct ss_heap heap;
	struct ss_block *runs;          /* in state LEASED, by ->right; NULL: no lease */
	uint64_t taken, blocks;         /* allocations it served; blocks it was made of */
	bool merges;                    /* at once, what no bin has a place for */
	uint64_t torn;                  /* blocks that came alone or went: runs that could be one */
	uint64_t clean;                 /* since when all is, at the latest, that came clean */
	uint64_t assigned;              /* when `order` was made: */
	uint8_t order[SS_BINS];         /* the bins that have a size, by that */
	bool sorted[SS_BINS];           /* these */
	unsigned count;
};

/* With q->lock or the pool's held. */
static inline bool ss_leases(const struct ss_queue *q)
{
	return q->lease && q->lease->runs;
}

/* Has it a lease of long runs, still? With the pool's lock held. */
static inline bool ss_lease_whole(const struct ss_queue *q)
{
	return ss_leases(q) && q->lease->torn <= 8 + q->lease->blocks / 8;
}

struct ss_queue *ss_queue_new(struct ss_pool *pool, struct ss_timeline *tl);
void ss_queue_free(struct ss_core *core, struct ss_queue *q); /* at the core's end */
struct ss_queue *ss_queue_slow(struct ss_pool *pool, struct ss_timeline *tl);
/* False: the queue is full and should be settled. */
bool ss_queue_push(struct ss_queue *q, struct ss_block *b);
/* NULL: no block of this size. *id: what the block is to be called. */
struct ss_block *ss_queue_pop(struct ss_queue *q, uint64_t size, uint64_t align, uint64_t *id);
/* What its bins hold goes to where it can be merged: it is full. No lock held. */
void ss_queue_empty(struct ss_queue *q);
/* From now on its bins hold nothing (or as much as they can): each free goes to where it can be
 * merged. The pool's lock held. */
void ss_queue_unbin(struct ss_queue *q, bool on);
/* The blocks of `size` bytes and more, as a list by ->left; 0: everything. q->lock held. */
struct ss_block *ss_queue_drain(struct ss_queue *q, uint64_t size);
/* Forgets what it holds. q->lock not held. */
void ss_queue_clear(struct ss_queue *q);
/* Forgets what hits handed out of late if segments have gone. q->lock not held. */
void ss_near_renew(struct ss_queue *q);
/* Counts an allocation of `size` bytes that is no hit. True: see ss_varied. */
bool ss_queue_asked(struct ss_queue *q, uint64_t size);

#endif
