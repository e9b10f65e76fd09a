/* SPDX-License-Identifier: MIT */
/* A pool on virtual memory, inside: its reservation and its chunks (chunk.c), which of them are
 * to be had (donor.c) and which holes to be filled (hole.c), and what lies apart (stays.c), as
 * vmm.c uses them. */
#ifndef SS_CORE_VMM_H
#define SS_CORE_VMM_H

#include "core/grow.h"

#define SS_MAX_CHUNK (64ull << 20)

struct ss_chunk {
	void *handle;
	uint64_t size;
	uint64_t idle_since; /* ms; 0: not seen idle yet */
	struct ss_chunk *next; /* in the lists of one operation */
	uint64_t va;
};

struct ss_stay {
	uint64_t size, first, last; /* when it was asked for, in allocations of the pool */
	uint32_t count;
	bool freed;
};

#define SS_STAYS 512 /* sizes looked at (stays.c) */

#define SS_FATE_BITS 14

/* What recurs in a pool (recur.c). */
struct ss_recur {
	bool on;                 /* sizes are followed, */
	uint64_t from;           /* and not before so many allocations of the pool */
	uint64_t moved;          /* allocations when chunks moved last: */
	uint64_t held;           /* so many later its stream may be kept fast */
	uint64_t sizes;          /* asked for of late */
	unsigned known, novel;   /* of late: what came before them was known, or not */
	uint32_t peaks;          /* allocations near the peak; */
	bool at_peak;            /* it was, and is not away yet, */
	bool left;               /* but has been */
	uint64_t line;           /* address below which what stays should lie; 0: not known */
	uint32_t fate[1u << SS_FATE_BITS]; /* by key: the key with its lowest bit, 1: it stayed */
};

struct ss_vmm {
	struct ss_segment *seg;
	uint64_t unit;           /* smallest chunk */
	struct ss_heap holes;
	struct ss_chunk **frame; /* chunk at each unit of the reservation */
	uint64_t frames;
	uint64_t end[2];         /* of the frames that ever had one, below what stays and in it */
	uint32_t chunks;
	/* What the driver would not take, to be tried again: chunks that were not released, by
	 * ->next, and holes with chunks that were not unmapped, or where it refused them, by
	 * ->right. */
	struct ss_chunk *unreleased;
	struct ss_block *stuck;
	bool apart;              /* blocks that stay have memory of their own */
	bool stays_nothing;      /* nothing stands in `stay` */
	struct ss_recur *recur;  /* NULL: nothing moved so far */
	struct ss_stay stay[SS_STAYS];
};

static inline struct ss_chunk **ss_frame_at(struct ss_vmm *v, uint64_t va)
{
	return &v->frame[(va - v->seg->base) / v->unit];
}

/* A hole that may be filled: not one whose memory would not go (`exported`). */
static inline bool ss_is_gap(const struct ss_block *b)
{
	return b && ss_is_state(b, SS_BLOCK_HOLE) && !b->exported;
}

/* One thread at a time changes what a pool maps, from claim to unclaim. With `wait`
 * claim waits for its turn (*waited: it had to), but not for its own thread. False:
 * another has it. No lock held. */
bool ss_vmm_claim(struct ss_pool *pool, bool wait, bool *waited);
void ss_vmm_unclaim(struct ss_pool *pool);

/* The reservation of a pool that has none yet, and its end. Claimed, no lock held. */
enum ss_status ss_vmm_reserve(struct ss_pool *pool);
void ss_vmm_unreserve(struct ss_pool *pool, void *va, uint64_t size);
/* b becomes a hole, one with the holes beside it. Pool lock held. */
void ss_hole_place(struct ss_pool *pool, struct ss_block *b);

/* stays.c. Pool lock held. A block of `size` was asked for that was no hit; those of the list by
 * ->left were freed; what was freed of late was not seen. */
void ss_stays_asked(struct ss_pool *pool, uint64_t size);
void ss_stays_freed(struct ss_pool *pool, const struct ss_block *list);
void ss_stays_forget(struct ss_pool *pool);
/* Are blocks of `size` asked for to be kept? */
bool ss_stays(const struct ss_pool *pool, uint64_t size);
/* Where the addresses of blocks that stay begin. */
uint64_t ss_stays_from(const struct ss_vmm *v);
/* vmm.c: is a block of `size` to lie there? Pool lock held. */
bool ss_stays_apart(struct ss_pool *pool, uint64_t size);

/* recur.c. Pool lock held. The pool grew for `size` bytes that q's stream asks for; with `moved` by
 * chunks that moved: from now on what is asked for is followed. The end of that. */
void ss_recur_begin(struct ss_pool *pool, struct ss_queue *q, uint64_t size, bool moved);
void ss_recur_end(struct ss_pool *pool);
/* Has the peak been left since, so that it says where what recurs belongs? */
bool ss_recur_places(const struct ss_pool *pool);
/* Is it of use, so that the pool is kept tight? */
bool ss_recur_serves(const struct ss_pool *pool);
/* `size` bytes are asked for. Those of the list by ->left were freed. */
struct ss_past ss_recur_asked(struct ss_pool *pool, uint64_t size);
void ss_recur_freed(struct ss_pool *pool, struct ss_block *list);
/* The range where a block with that past belongs, and at which address; NULL: anywhere. */
struct ss_block *ss_recur_spot(struct ss_pool *pool, struct ss_queue *q, const struct ss_past *past,
			       uint64_t size, uint64_t align, uint64_t *start);

/* keeps.c: what to give back of a pool (`idle`: all of it could be), as far as is known
 * whether the runtime keeps it; and the device's figures round a release. */
enum ss_giving { SS_GIVE_NOTHING, SS_GIVE_ONE, SS_GIVE_PARTS, SS_GIVE_WHOLE };
struct ss_witness { uint64_t left, reserved, taken; };
enum ss_giving ss_keeps_how(struct ss_pool *pool, bool idle);
bool ss_keeps_all(struct ss_pool *pool);
void ss_keeps_begin(struct ss_pool *pool, struct ss_witness *w);
void ss_keeps_end(struct ss_pool *pool, const struct ss_witness *w, uint64_t given,
		  enum ss_giving how);
/* The same of segments that were exported: does it keep them? */
bool ss_keeps_exports(struct ss_pool *pool);
void ss_keeps_exports_end(struct ss_pool *pool, const struct ss_witness *w, uint64_t given);

/* hole.c. A run that is long enough once memory is where it lacks some. */
struct ss_gap {
	uint32_t slot;         /* of the asking timeline, */
	uint64_t size, align;  /* of what it asks for */
	uint64_t step;         /* bytes come in multiples of it, where they fit */
	struct ss_block *hole; /* the first to be filled; NULL: there is no such run */
	uint64_t start, bytes; /* which part of it; */
	uint64_t total;        /* bytes that lack in all its holes */
	uint64_t from, to;     /* the addresses of the run: its chunks are to stay */
};
enum ss_gap_kind {
	SS_GAP_ANY,    /* the cheapest, */
	SS_GAP_MOVING, /* if free chunks move there as well, */
	SS_GAP_APART,  /* among what stays, */
	SS_GAP_LOWEST  /* or the lowest */
};
/* Pool lock held. */
void ss_gap_find(struct ss_pool *pool, struct ss_gap *gap, enum ss_gap_kind kind);
/* What of the hole b is behind its first `bytes`, now a hole of its own. NULL: host memory is out. */
struct ss_block *ss_hole_split(struct ss_pool *pool, struct ss_block *b, uint64_t bytes);

/* Chunks. The pool is claimed, no lock held. */
/* False: the driver would not take it. */
bool ss_chunk_destroy(struct ss_pool *pool, struct ss_chunk *c);
/* Tries again what the driver would not take. Returns the bytes given back. */
uint64_t ss_chunks_retry(struct ss_pool *pool);
/* Memory behind all of `target`, which is QUEUED: the chunks of the list, then new
 * ones of up to `unit` bytes. It becomes a clean range, or if that fails the hole
 * that it was. */
enum ss_status ss_chunk_fill(struct ss_pool *pool, struct ss_block *target,
			     struct ss_chunk *list, uint64_t unit);
/* Unmaps the chunk behind b, which was detached; b becomes a hole. */
enum ss_status ss_chunk_unmap(struct ss_pool *pool, struct ss_block *b, struct ss_chunk *c);

/* donor.c. Bytes of the chunks that lie wholly in the range b and could move; in all clean
 * ranges. Pool lock held. */
uint64_t ss_chunks_movable(const struct ss_vmm *v, const struct ss_block *b);
uint64_t ss_chunks_movable_all(const struct ss_pool *pool);
/* Free chunks from other runs than `gap`, of which the target, QUEUED, is to be filled, until
 * `want` bytes are gathered, and no more than the target holds; unmapped when this returns. The
 * target becomes as long as what was gathered, or wanted, and `extra`. */
struct ss_chunk *ss_chunks_gather(struct ss_pool *pool, struct ss_block *target,
				  const struct ss_gap *gap, uint64_t want, uint64_t extra,
				  bool fine);
/* What is behind the first `size` bytes of b becomes a hole. False: host memory is out. Pool lock
 * held. */
bool ss_hole_shorten(struct ss_pool *pool, struct ss_block *b, uint64_t size);

#endif
