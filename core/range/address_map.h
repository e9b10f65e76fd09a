/* SPDX-License-Identifier: MIT */
/*
 * The address map finds the segment and the block of an address without taking a lock.
 *
 * A radix tree over frames of 2 MiB finds the segment. A table with one word for each grain of 512
 * bytes finds the block that starts at an address. Two bitmaps find the block that contains an
 * address: one says which groups of 64 grains have a start, the other which frames have one. The
 * search reads one word for each 128 MiB between the address and the block's start.
 */
#ifndef SS_RANGE_ADDRESS_MAP_H
#define SS_RANGE_ADDRESS_MAP_H

#include <pthread.h>

#include "core/base/state.h"
#include "core/range/block.h"

#define SS_ADDRESS_BITS 48
#define SS_FRAME_BITS 21
#define SS_LEAF_BITS 14
#define SS_BATCH 32u             /* descriptors that an owner takes at a time */
#define SS_SLAB 4096u            /* descriptors whose memory is taken at a time */
#define SS_SLAB_BYTES (SS_SLAB * sizeof(struct ss_block))
#define SS_MAX_SLABS (1u << 20)  /* enough for 2^32 blocks */

struct ss_map {
	_Atomic(_Atomic(struct ss_segment *) *) *frames; /* root of the radix tree */
	struct ss_block **slabs;                         /* block descriptors by index */
	/* `lock` guards the rest. The lock is a leaf in the lock order. It has cache lines of
	 * its own, since hits read the members above. */
	_Alignas(128) pthread_mutex_t lock;
	uint32_t slab_count, made; /* made: descriptors that were ever used */
	struct ss_block *unused;   /* descriptors without an owner, by ->left */
	struct ss_segment *spare_segments;
};

/* False: host memory is out. */
bool ss_map_init(struct ss_core *core);
void ss_map_finish(struct ss_core *core);

/* The segment that contains addr; NULL: the address is not ours. The segment may end at any
 * time, unless the caller holds a live block of it or the lock of its pool. */
static inline struct ss_segment *ss_map_segment(const struct ss_core *core, uint64_t addr);
/* The block that starts at addr; NULL: no block of seg starts there. Like the next function it
 * may be called with a segment that has ended, and become another one, since it was found. */
static inline struct ss_block *ss_block_at(const struct ss_core *core, const struct ss_segment *seg,
					   uint64_t addr);
/* The block with the last start at or below addr. If addr lies in a block that stays live during
 * the call, the result is that block; otherwise any block of the segment, or NULL. */
struct ss_block *ss_block_last_start(const struct ss_core *core, struct ss_segment *seg,
				     uint64_t addr);

/* Makes a segment of [base, base + size) and enters it in the map as one block in state GAP. NULL:
 * host memory is out. */
struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size);
/* Removes the segment and its blocks from the map. No other thread may hold a block of it. */
void ss_segment_forget(struct ss_core *core, struct ss_segment *seg);

/* ---- inlined, for the hot path --------------------------------------------- */

/* *off: offset of addr in seg. False: addr is not in seg. */
static inline bool ss_segment_has(const struct ss_segment *seg, uint64_t addr, uint64_t *off)
{
	*off = addr - __atomic_load_n(&seg->base, __ATOMIC_RELAXED);
	return *off < __atomic_load_n(&seg->size, __ATOMIC_RELAXED);
}

/* The segment of the frame in which addr lies, and the offset of addr in it; NULL as
 * ss_map_segment(). */
static inline struct ss_segment *ss_map_offset(const struct ss_core *core, uint64_t addr,
					       uint64_t *off)
{
	_Atomic(struct ss_segment *) *leaf;
	struct ss_segment *seg;

	if (addr >> SS_ADDRESS_BITS)
		return NULL;
	leaf = atomic_load_explicit(&core->map->frames[addr >> (SS_FRAME_BITS + SS_LEAF_BITS)],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	seg = atomic_load_explicit(&leaf[addr >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)],
				   memory_order_acquire);
	/* The segment may have been recycled meanwhile; then its range does not match. */
	return seg && ss_segment_has(seg, addr, off) ? seg : NULL;
}

static inline struct ss_segment *ss_map_segment(const struct ss_core *core, uint64_t addr)
{
	uint64_t off;

	return ss_map_offset(core, addr, &off);
}

static inline struct ss_block *ss_block_by_index(const struct ss_map *map, uint32_t index)
{
	struct ss_block *slab = __atomic_load_n(&map->slabs[index / SS_SLAB], __ATOMIC_ACQUIRE);

	if (!slab)
		__builtin_unreachable(); /* spares a test for NULL */
	return &slab[index % SS_SLAB];
}

#define SS_FRAME_GRAINS (SS_FRAME / SS_GRAIN)

/* Notes in the bitmaps that a block starts in that group of 64 grains of a frame. */
void ss_start_note(struct ss_segment *seg, uint64_t frame, unsigned group);

/* Enters the block with that index as starting at addr. A search that clears a bit of the
 * bitmaps makes all threads execute a full barrier before it searches again. So here a compiler
 * barrier is enough: either this thread sees the cleared bit, or the search sees the block. */
static inline void ss_start_set(struct ss_segment *seg, uint64_t addr, uint32_t index)
{
	uint64_t g = (addr - seg->base) / SS_GRAIN;

	atomic_store_explicit(&seg->grains[g], index + 1, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(!(
		    atomic_load_explicit(&seg->starts[g / SS_FRAME_GRAINS], memory_order_relaxed) >>
			    g / 64 % 64 &
		    1)))
		ss_start_note(seg, g / SS_FRAME_GRAINS, g / 64 % 64);
}

/* No block starts at addr any more. The bits stay set: a search that finds no start corrects
 * them. */
static inline void ss_start_clear(struct ss_segment *seg, uint64_t addr)
{
	atomic_store_explicit(&seg->grains[(addr - seg->base) / SS_GRAIN], 0, memory_order_release);
}

/* The block that starts at an offset in seg; NULL: none. */
static inline struct ss_block *ss_block_at_offset(const struct ss_core *core,
						  const struct ss_segment *seg, uint64_t off)
{
	uint32_t v = atomic_load_explicit(&seg->grains[off / SS_GRAIN], memory_order_acquire);

	return v ? ss_block_by_index(core->map, v - 1) : NULL;
}

static inline struct ss_block *ss_block_at(const struct ss_core *core, const struct ss_segment *seg,
					   uint64_t addr)
{
	uint64_t off;

	return ss_segment_has(seg, addr, &off) && off % SS_GRAIN == 0 ?
		       ss_block_at_offset(core, seg, off) :
		       NULL;
}

static inline struct ss_block *ss_segment_first(const struct ss_core *core,
						const struct ss_segment *seg)
{
	return ss_block_at_offset(core, seg, 0);
}

#endif
