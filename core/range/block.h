/* SPDX-License-Identifier: MIT */
/*
 * Blocks are the ranges that tile a segment, live or free.
 *
 * The state of a block and the slot of its mark say which lock guards it:
 *   LIVE             none. A free claims it under the lock of the stream cache that handed it out,
 *                    which has the block's slot;
 *   FREE, COMPLETED  the pool's lock. Every access has completed, so any stream may take it;
 *   FREE, EPOCH      the pool's lock. It waits for an epoch, the marks of many timelines;
 *   FREE, other      the lock of the stream cache with that slot. It lies in the cache's arena;
 *   QUEUED           the lock of the stream cache in whose bin it lies; or none, if one thread has
 *                    taken it out of all structures;
 *   GAP              the pool's lock.
 * Neighbours may have different holders. So the link to the next block is not stored but found
 * through the address map, and only the holder of the left neighbour writes `prev`, because only it
 * can change which block that is. A reader may find a neighbour that is just being changed. That is
 * harmless: the reader only asks whether the neighbour is free with the reader's own slot, and no
 * other thread can make it so.
 */
#ifndef SS_RANGE_BLOCK_H
#define SS_RANGE_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arithmetic.h"
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
#define SS_SLOT_COMPLETED UINT32_MAX   /* no mark: every access has completed */
#define SS_SLOT_EPOCH (UINT32_MAX - 1) /* marks of many timelines: block->epoch */

enum ss_block_state {
	SS_BLOCK_UNUSED = 0, /* the descriptor describes nothing */
	SS_BLOCK_LIVE,       /* handed out */
	SS_BLOCK_QUEUED,     /* free, in a bin or held by one thread */
	SS_BLOCK_FREE,       /* free, in an index or in an epoch's list */
	SS_BLOCK_GAP,        /* addresses without memory (VMM), or exported bytes after the free */
};

/* Descriptors are recycled but never given back to the host allocator. So a stale pointer to one may
 * be read at any time, and is then recognized as stale. */
struct ss_block {
	/* Searches and hits use these, so they lie side by side: */
	uint64_t addr, size;
	struct ss_block *left, *right; /* neighbours in a list of a free index, or of an epoch; ->left alone
				        * chains bins and temporary lists */
	union {
		/* FREE with a slot: position of the mark. FREE and completed: time (ms) since which it
		 * has been idle, or earlier; 0: it was never in use. */
		uint64_t n;
		struct ss_epoch *epoch; /* FREE with SS_SLOT_EPOCH */
		uint64_t id;            /* LIVE: unique among all blocks ever handed out */
	};
	uint32_t slot;                 /* of the mark; LIVE: of the cache that handed it out */
	atomic_uchar state;
	bool classic;                  /* LIVE: hipMalloc handed it out */
	bool exported;                 /* another process may map it, so it is never reused */
	uint8_t bin;                   /* LIVE or QUEUED: bin of its size */
	uint64_t request;              /* LIVE: bytes as requested */
	_Atomic(struct ss_block *) prev; /* left neighbour; NULL: first of its segment */
	struct ss_segment *seg;
	uint32_t index;                /* of the descriptor */
	/* Slot + 1 of the stream cache whose arena the block was cut from; 0: none. Neighbours with
	 * one home merge as soon as they are free on its stream; others when they are completed. */
	_Atomic uint32_t home;
};

/* One allocation from the driver, or one reservation of addresses. The lock of the pool's memory
 * guards it, except for what the address map reads. Recycled, never freed. */
struct ss_segment {
	uint64_t base, size;            /* the usable part, whole frames */
	struct ss_pool *pool;           /* its owner; opaque here */
	enum ss_backing backing;
	_Atomic(uint32_t) *grains;      /* per grain: 1 + index of the block that starts there */
	_Atomic uint64_t *level[5];     /* where blocks may start (address_map.h) */
	int levels;
	size_t table_bytes;
	void *native;                   /* address that the driver returned; base may be above it */
	uint64_t native_size;
	uint64_t idle_since;            /* ms: when the last byte of it became free */
	uint64_t serial;                /* number for IPC handles, never used twice; 0: none yet */
	bool opening;                   /* a device is being given access; it must not go meanwhile */
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

/* Is b (NULL: no) live? What its owner wrote before it handed the block out can then be read. */
static inline bool ss_is_live(const struct ss_block *b)
{
	return b && atomic_load_explicit(&b->state, memory_order_acquire) == SS_BLOCK_LIVE;
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

/* Is b (NULL: no) a free range of the arena of that slot, at home there? Nobody else can make it one. */
static inline bool ss_is_own(const struct ss_block *b, uint32_t slot)
{
	return ss_is_free_on(b, slot) && ss_home(b) == slot + 1;
}

static inline struct ss_block *ss_block_prev(const struct ss_block *b)
{
	return atomic_load_explicit(&b->prev, memory_order_relaxed);
}

/* Does b cover its whole segment? */
static inline bool ss_is_whole(const struct ss_block *b)
{
	return b->size == b->seg->size;
}

/* Lowest aligned address in b. `align` is a power of two. */
static inline uint64_t ss_start_in(const struct ss_block *b, uint64_t align)
{
	return (b->addr + align - 1) & ~(align - 1);
}

static inline bool ss_fits(const struct ss_block *b, uint64_t size, uint64_t align)
{
	return ss_start_in(b, align) + size <= b->addr + b->size;
}

/* A list of free ranges by ->request, which only live blocks use otherwise. For who walks an index and must
 * not change its links meanwhile. */
static inline void ss_picked_push(struct ss_block **list, struct ss_block *b)
{
	b->request = (uintptr_t)*list;
	*list = b;
}

/* NULL: the list is empty. */
static inline struct ss_block *ss_picked_pop(struct ss_block **list)
{
	struct ss_block *b = *list;

	if (b) {
		*list = (struct ss_block *)(uintptr_t)b->request;
		b->request = 0;
	}
	return b;
}

/* ---- descriptors: descriptor.c ------------------------------------------ */

/* Descriptors kept for splitting. The owner's lock guards them. Those of two
 * owners never share a cache line. */
struct ss_spares {
	struct ss_block *head;     /* of the owner's own batches */
	struct ss_block *away;     /* of other owners' batches, to be returned */
	uint32_t count, away_count;
	struct ss_batch *mine;     /* own batches with unused descriptors; map->lock */
};

/* NULL: host memory is out. */
struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own);
void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b);
/* Does b's descriptor belong to one of own's batches? The caller holds b. */
bool ss_descriptor_owned(const struct ss_core *core, const struct ss_spares *own,
			 const struct ss_block *b);
/* Returns the descriptors of other owners, and all but `keep` of its own, to their batches. */
void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep);

/* ---- splitting and merging: block.c. The caller holds the blocks. --------- */

/* Splits b after `size` bytes and returns the right part, which inherits mark, state and home. NULL:
 * host memory is out, and nothing changed. */
struct ss_block *ss_block_split(struct ss_core *core, struct ss_spares *own, struct ss_block *b,
				uint64_t size);
/* Merges b, the right neighbour of a, into a. The caller sets the mark. */
void ss_block_merge(struct ss_core *core, struct ss_spares *own, struct ss_block *a,
		    struct ss_block *b);
/* The mark of a and b merged: the later of their marks on `slot`; a completed range has none. */
uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b, uint32_t slot);
/* Replaces b's descriptor by one of `own`; the old one goes to `theirs`. Returns b itself if its
 * descriptor is one of `own` already, host memory is out, or another thread may hold the left neighbour. That may only be
 * a completed range, whose lock the caller has, or a free one of the caller's own arena, that of `slot`. */
struct ss_block *ss_block_rehome(struct ss_core *core, struct ss_spares *own,
				 struct ss_spares *theirs, struct ss_block *b, uint32_t slot);

#endif
