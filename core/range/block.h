/* SPDX-License-Identifier: MIT */
/*
 * Blocks are the ranges that tile a segment, live or free.
 *
 * The state of a block and the slot of its mark say which lock guards it:
 *   LIVE             none. A free claims it under the lock of the shelf that handed it out,
 *                    which has the block's slot;
 *   FREE, COMPLETED  the pool's lock. Every access has completed, so any stream may take it;
 *   FREE, ALL        the pool's lock. hipFree did not wait, so any stream may still use it;
 *   FREE, other      the lock of the shelf with that slot. The block lies in that shelf;
 *   QUEUED           none: one thread has taken it out of all structures;
 *   GAP              the pool's lock;
 *   FRONT            none: the holder of the live block after it holds this, too.
 * Neighbours may have different holders. The holder of a block writes its `next`, and the `prev` of
 * the block that lies there: only the holder can change the end of the block. A reader may find a
 * neighbour that is just being changed. That is harmless: the reader only asks whether the
 * neighbour is free with the reader's own slot, and no other thread can make it so.
 *
 * Borders. Two threads that each divide their own shelf must not write to each other's descriptors.
 * So if neighbours belong to two shelves (their homes), the holder of the left one draws a border
 * between them, a bit in its `next` and in the other's `prev` (ss_border_draw). Then neither holder
 * reads or writes the other's descriptor. `next` stays true across a border, since a block vanishes
 * only if its left neighbour merges with it; `prev` may become stale. A range that gets another
 * home has no border on its right (ss_rehome). A border on its left is removed if both neighbours
 * are in one shelf then.
 */
#ifndef SS_RANGE_BLOCK_H
#define SS_RANGE_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arithmetic.h"
#include "core/base/compiler.h"
#include "core/driver.h"

struct ss_core;
struct ss_pool;

#define SS_MAX_REQUEST (1ull << 46)
#define SS_GRAIN 512ull           /* every block is a multiple of this */
#define SS_FRAME (2ull << 20)     /* segments start and end on multiples of this */
/* hipMalloc aligns blocks of 64 KiB and more to pages, and users of RDMA count on it. */
#define SS_CLASSIC_LARGE 65536
#define SS_CLASSIC_ALIGN 4096
#define SS_SLOT_COMPLETED UINT32_MAX   /* no mark: every access has completed */
#define SS_SLOT_ALL (UINT32_MAX - 1)   /* a mark of ALL, which counts every stream */

enum ss_block_state {
	SS_BLOCK_UNUSED = 0, /* the descriptor describes nothing */
	SS_BLOCK_LIVE,       /* handed out */
	SS_BLOCK_QUEUED,     /* free, held by one thread */
	SS_BLOCK_FREE,       /* free, in an index or in the list of ALL */
	SS_BLOCK_GAP,        /* addresses without memory (VMM), or exported bytes after the free */
	SS_BLOCK_FRONT,      /* bytes before a live block, which are freed with it */
};

/* Descriptors are recycled but never returned to the host allocator. So a stale pointer to one
 * may be read at any time, and is then recognized as stale. Each descriptor has cache lines of
 * its own, since neighbours may have different holders. */
struct ss_block {
	/* Used by a hit, a cut and a merge, so they are one cache line: */
	uint64_t addr, size;
	union {
		struct ss_block *left; /* chains temporary lists */
		struct ss_block **at;  /* in a free index: address of the pointer to this block */
	};
	struct ss_block *right; /* next in a list of a free index, or in the list of ALL */
	union {
		/* FREE with a slot: position of the mark. FREE and completed: time (ms) since
		 * which the block has been idle, or earlier; 0: it was never in use. */
		uint64_t n;
		uint64_t id; /* LIVE: unique among all blocks ever handed out */
	};
	/* Written whole when the block becomes free or live (ss_set_word), and read whole. */
	union {
		_Atomic uint64_t word;
		struct {
			uint32_t slot; /* of the mark; LIVE: of the shelf that handed it out */
			atomic_uchar state;
			bool classic;  /* LIVE: hipMalloc handed it out */
			bool exported; /* another process may map it, so it is never reused */
		};
	};
	/* The neighbours, perhaps with SS_BORDER; NULL: first or last of its segment */
	_Atomic(struct ss_block *) prev, next;
	/* The second line: */
	uint64_t request; /* LIVE: bytes as requested */
	struct ss_segment *seg;
	uint32_t index; /* of the descriptor */
	/* Slot + 1 of the stream whose shelf has the block, or had it last; 0: none. */
	_Atomic uint32_t home;
	uint64_t front; /* LIVE: bytes of the FRONT that lies before it; else 0 */
} __attribute__((aligned(128)));

/* One allocation from the driver, or one reservation of addresses. The lock of the pool's memory
 * guards it, except for the members that the address map reads. Recycled, never freed. */
struct ss_segment {
	uint64_t base, size;  /* the usable part, whole frames */
	struct ss_pool *pool; /* its owner; opaque here */
	enum ss_backing backing;
	_Atomic(uint32_t) *grains;   /* per grain: 1 + index of the block that starts there */
	_Atomic uint64_t *starts;    /* per group of 64 grains a bit: a block may start there */
	_Atomic uint64_t *used;      /* per frame a bit: one of its groups has a bit */
	_Atomic uint32_t correcting; /* odd: bits are being taken away (address_map.c) */
	uint64_t span;               /* bytes for which these tables are made */
	size_t table_bytes;
	void *native; /* address that the driver returned; base may be above it */
	uint64_t native_size;
	uint64_t idle_since; /* ms: when the last byte of it became free */
	uint64_t serial;     /* number for IPC handles, never used twice; 0: none yet */
	void *chunk;         /* guarded (backing/guard.c): its memory; else NULL */
	/* A device is being given access; the segment must not end meanwhile */
	bool opening;
	struct ss_segment *prev, *next; /* list of the pool; next: also the spare list */
};

static inline void ss_set_state(struct ss_block *b, enum ss_block_state state)
{
	atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

/* Slot, state and flags as one word, of a block that is not exported. */
static inline uint64_t ss_word(uint32_t slot, enum ss_block_state state, bool classic)
{
	_Static_assert(offsetof(struct ss_block, state) == offsetof(struct ss_block, word) + 4 &&
			       offsetof(struct ss_block, classic) ==
				       offsetof(struct ss_block, word) + 5 &&
			       offsetof(struct ss_block, request) == 64 &&
			       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
		       "the word");
	return (uint64_t)classic << 40 | (uint64_t)state << 32 | slot;
}

static inline void ss_set_word(struct ss_block *b, uint64_t word)
{
	atomic_store_explicit(&b->word, word, memory_order_relaxed);
}

/* Makes b free with a mark on that slot, or completed. */
static inline void ss_set_free(struct ss_block *b, uint32_t slot)
{
	ss_set_word(b, ss_word(slot, SS_BLOCK_FREE, false));
}

/* The holder of the block may be another thread, which writes parts of the word under another
 * lock. Whichever parts the caller sees, they never make a word of the caller's own slot. (The
 * thread sanitizer cannot know that.) */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread, noinline, unused)) static
#else
static inline
#endif
	uint64_t
	ss_block_word(const struct ss_block *b)
{
	return atomic_load_explicit(&b->word, memory_order_relaxed);
}

static inline bool ss_is_state(const struct ss_block *b, enum ss_block_state state)
{
	return b && atomic_load_explicit(&b->state, memory_order_relaxed) == state;
}

/* Is b (NULL: no) live? If so, the owner's writes before it handed the block out are visible. */
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

/* In a pointer to a neighbour: a border lies between. The bit makes the value negative, so that
 * one test recognizes a neighbour without a border. */
#define SS_BORDER ((uintptr_t)1 << 63)

/* A value of `prev` or `next`, if it is a neighbour without a border; else NULL. */
static inline struct ss_block *ss_this_side(struct ss_block *b)
{
	return (intptr_t)b > 0 ? b : NULL;
}

/* The left neighbour; NULL: there is none, or a border before it. */
static inline struct ss_block *ss_block_prev(const struct ss_block *b)
{
	return ss_this_side(atomic_load_explicit(&b->prev, memory_order_relaxed));
}

/* `next` unchanged, with its border bit. The caller holds b. */
static inline struct ss_block *ss_right_of(const struct ss_block *b)
{
	return atomic_load_explicit(&b->next, memory_order_relaxed);
}

/* The right neighbour, also across a border. The caller holds b, or b cannot change. */
static inline struct ss_block *ss_block_next(const struct ss_block *b)
{
	return (struct ss_block *)((uintptr_t)ss_right_of(b) & ~SS_BORDER);
}

/* Does b start its segment? The caller holds b. */
static inline bool ss_is_first(const struct ss_block *b)
{
	return !atomic_load_explicit(&b->prev, memory_order_relaxed);
}

/* Does b cover its whole segment? The caller holds b. */
static inline bool ss_is_whole(const struct ss_block *b)
{
	return ss_is_first(b) && !ss_right_of(b);
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

/* A list of free ranges by ->request, which otherwise only live blocks use. For a caller that
 * walks an index and must not change its links meanwhile. */
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

/* ---- descriptors: address_map.c ----------------------------------------- */

/* Descriptors kept for splitting. The owner's lock guards them. */
struct ss_spares {
	struct ss_block *head; /* the last one used first, by ->left */
	uint32_t count;
};
#define SS_SPARES_MOST 256

/* The slow half of ss_block_new(). */
struct ss_block *ss_block_new_slow(struct ss_core *core, struct ss_spares *own);
/* Returns all but `keep` to the core. */
void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep);

/* NULL: host memory is out. */
static inline struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own)
{
	struct ss_block *b = own->head;

	if (unlikely(!b))
		return ss_block_new_slow(core, own);
	own->head = b->left;
	own->count--;
	return b;
}

static inline void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b)
{
	ss_set_state(b, SS_BLOCK_UNUSED);
	b->left = own->head;
	own->head = b;
	if (unlikely(++own->count > SS_SPARES_MOST))
		ss_spares_return(core, own, SS_SPARES_MOST / 2);
}

#endif
