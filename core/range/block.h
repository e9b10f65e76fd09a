/* SPDX-License-Identifier: MIT */
/*
 * Blocks: the ranges that tile a segment, live or free.
 *
 * Who may touch a block follows from its state and its slot:
 *   LIVE             nobody but the free that claims it (under the lock of the stream cache that
 *                    handed it out, whose slot it names);
 *   FREE, CLEAN      the pool's lock: every access has completed, anybody may have it;
 *   FREE, EPOCH      the pool's lock: it waits for an epoch of many timelines;
 *   FREE, other      the lock of the stream cache with that slot, in whose arena it lies;
 *   QUEUED           whoever took it out of where it was, or the stream cache in whose bin it is;
 *   GAP              the pool's lock.
 * Neighbours may belong to different holders. So the link to the next block is not stored but
 * found through the address map, and `prev` of a block is written by the holder of its left
 * neighbour only, who alone can change which block that is. A reader may find a neighbour that
 * is just being changed; it only asks whether the neighbour is free and its own, and nobody else
 * can make it that.
 */
#ifndef SS_RANGE_BLOCK_H
#define SS_RANGE_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/driver.h"

struct ss_core;
struct ss_epoch;
struct ss_pool;

#define SS_MAX_REQUEST (1ull << 46)
#define SS_GRAIN 512ull           /* every block is a multiple of this */
#define SS_FRAME (2ull << 20)     /* segments start and end on multiples of this */
/* hipMalloc aligns blocks of 64 KiB and more to pages, and users of RDMA count on it. */
#define SS_CLASSIC_LARGE 65536
#define SS_CLASSIC_ALIGN 4096
#define SS_SLOT_CLEAN UINT32_MAX       /* no mark: every access has completed */
#define SS_SLOT_EPOCH (UINT32_MAX - 1) /* marks of many timelines: block->epoch */

static inline uint64_t ss_round(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

enum ss_block_state {
	SS_BLOCK_UNUSED = 0, /* the descriptor describes nothing */
	SS_BLOCK_LIVE,       /* handed out */
	SS_BLOCK_QUEUED,     /* free, in a bin, or in the hands of one thread */
	SS_BLOCK_FREE,       /* free, in an index or in an epoch's list */
	SS_BLOCK_GAP,        /* no memory behind it (VMM), or kept for another process */
};

/* Descriptors are recycled but never given back to the host allocator, so that a stale pointer
 * to one can be read, and then rejected, at any time. */
struct ss_block {
	/* What a search reads, and what a hit does, side by side: */
	uint64_t addr, size;
	struct ss_block *left, *right; /* index tree; ->left also chains bins and lists */
	union {
		/* FREE on a slot: position of the mark. FREE and clean: milliseconds since when
		 * it is idle at the latest, 0 if nobody ever had it. */
		uint64_t n;
		struct ss_epoch *epoch; /* FREE with SS_SLOT_EPOCH */
		uint64_t id;            /* LIVE: unique among all blocks ever handed out */
	};
	uint32_t slot;                 /* of the mark; LIVE: of the cache that handed it out */
	atomic_uchar state;
	bool classic;                  /* LIVE: hipMalloc handed it out */
	bool exported;                 /* another process may map it: never reused */
	uint8_t bin;                   /* LIVE or QUEUED: bin of its size */
	uint64_t request;              /* LIVE: bytes asked for */
	_Atomic(struct ss_block *) prev; /* left neighbour; NULL: first of its segment */
	struct ss_segment *seg;
	uint32_t index;                /* of the descriptor */
	/* Slot + 1 of the stream cache whose arena the block was cut from; 0: none. Blocks of one
	 * home merge as soon as they are free, others only when they have completed. */
	_Atomic uint32_t home;
};

/* One allocation from the driver, or one reservation of addresses. Guarded by the lock of the
 * pool's memory, but for what the address map reads. Recycled, never freed. */
struct ss_segment {
	uint64_t base, size;            /* the usable part, whole frames */
	struct ss_pool *pool;           /* whose it is; opaque here */
	enum ss_backing backing;
	_Atomic(uint32_t) *grains;      /* per grain: 1 + index of the block that starts there */
	_Atomic uint64_t *level[6];     /* bitmap of block starts, and summaries of it */
	int levels;
	size_t table_bytes;
	void *native;                   /* what the driver gave; base may lie above it */
	uint64_t native_size;
	uint64_t idle_since;            /* ms: when the last byte of it became free */
	uint64_t serial;                /* number among the segments that got a handle; 0: none */
	bool opening;                   /* a device is being given access: it must not go now */
	struct ss_segment *prev, *next; /* list of the pool; next: also the spare list */
};

static inline void ss_set_state(struct ss_block *b, enum ss_block_state state)
{
	atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

static inline bool ss_is_state(const struct ss_block *b, enum ss_block_state state)
{
	return b && atomic_load_explicit(&b->state, memory_order_relaxed) == state;
}

static inline void ss_set_slot(struct ss_block *b, uint32_t slot)
{
	__atomic_store_n(&b->slot, slot, __ATOMIC_RELAXED);
}

/* Is b (NULL: no) free with a mark on that slot? */
static inline bool ss_is_free_on(const struct ss_block *b, uint32_t slot)
{
	return ss_is_state(b, SS_BLOCK_FREE) && __atomic_load_n(&b->slot, __ATOMIC_RELAXED) == slot;
}

static inline uint32_t ss_home(const struct ss_block *b)
{
	return atomic_load_explicit(&b->home, memory_order_relaxed);
}

static inline void ss_set_home(struct ss_block *b, uint32_t home)
{
	atomic_store_explicit(&b->home, home, memory_order_relaxed);
}

static inline struct ss_block *ss_block_prev(const struct ss_block *b)
{
	return atomic_load_explicit(&b->prev, memory_order_relaxed);
}

/* Is b all of its segment? */
static inline bool ss_is_whole(const struct ss_block *b)
{
	return b->size == b->seg->size;
}

/* Where a block of this alignment, a power of two, would start in b. */
static inline uint64_t ss_start_in(const struct ss_block *b, uint64_t align)
{
	return (b->addr + align - 1) & ~(align - 1);
}

static inline bool ss_fits(const struct ss_block *b, uint64_t size, uint64_t align)
{
	return ss_start_in(b, align) + size <= b->addr + b->size;
}

/* ---- descriptors: descriptor.c ------------------------------------------ */

/* Descriptors kept for splitting, under the lock of whoever keeps them. No two owners of spares
 * ever write to one cache line of descriptors. */
struct ss_spares {
	struct ss_block *head;     /* of the owner's own batches */
	struct ss_block *away;     /* of others' batches, on their way home */
	uint32_t count, away_count;
	struct ss_batch *mine;     /* own batches that have descriptors at home; map->lock */
};

/* NULL: host memory is out. */
struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own);
void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b);
/* Does b's descriptor belong to one of own's batches? The caller holds b. */
bool ss_descriptor_owned(const struct ss_core *core, const struct ss_spares *own,
			 const struct ss_block *b);
/* Gives back the descriptors of others, and all but `keep` of its own. */
void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep);

/* ---- splitting and merging: block.c. The caller holds the blocks. --------- */

/* The right neighbour; NULL: b is the last of its segment. */
struct ss_block *ss_block_next(const struct ss_core *core, const struct ss_block *b);
/* Cuts b after `size` bytes. The new right part inherits mark, state and home. NULL: host
 * memory is out and nothing changed. */
struct ss_block *ss_block_split(struct ss_core *core, struct ss_spares *own, struct ss_block *b,
				uint64_t size);
/* a swallows b, its right neighbour. The caller sets the mark. */
void ss_block_merge(struct ss_core *core, struct ss_spares *own, struct ss_block *a,
		    struct ss_block *b);
/* The mark on `slot` of what a and b become together: the later one; clean ranges have none. */
uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b, uint32_t slot);
/* Another descriptor for b, one of `own`; the old one goes to `theirs`. Returns b itself if it
 * is one of own's already, or host memory is out. */
struct ss_block *ss_block_rehome(struct ss_core *core, struct ss_spares *own,
				 struct ss_spares *theirs, struct ss_block *b);

#endif
