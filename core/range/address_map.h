/* SPDX-License-Identifier: MIT */
/*
 * Address -> segment -> block, read without a lock.
 *
 * A radix tree over 2 MiB frames finds the segment; a table with one word per 512 byte grain
 * finds the block that starts at an address; a bitmap of block starts with summaries above it
 * finds the block that contains an address.
 */
#ifndef SS_RANGE_ADDRESS_MAP_H
#define SS_RANGE_ADDRESS_MAP_H

#include <pthread.h>

#include "core/base/state.h"
#include "core/range/block.h"

#define SS_ADDRESS_BITS 48
#define SS_FRAME_BITS 21
#define SS_LEAF_BITS 14
#define SS_BATCH 32u             /* descriptors that have one owner */
#define SS_SLAB 4096u            /* descriptors made at a time */
#define SS_MAX_SLABS (1u << 20)  /* four thousand million blocks */

struct ss_map {
	_Atomic(_Atomic(struct ss_segment *) *) *frames; /* root of the radix tree */
	struct ss_block **slabs;      /* block descriptors by index */
	/* The rest is guarded by `lock`, a leaf in the lock order: */
	pthread_mutex_t lock;
	uint32_t slab_count;
	struct ss_batch *whole;       /* batches that nobody has */
	struct ss_spares spares;      /* for descriptors that no pool or stream asks for */
	struct ss_segment *spare_segments;
};

/* False: host memory is out. */
bool ss_map_init(struct ss_core *core);
void ss_map_finish(struct ss_core *core);

/* The segment that holds addr; NULL: none of ours. It may be forgotten at any time unless the
 * caller knows better (a live block, the pool's lock). */
struct ss_segment *ss_map_segment(struct ss_core *core, uint64_t addr);
/* The block that starts at addr, which lies in seg; NULL: none does. */
struct ss_block *ss_block_at(const struct ss_core *core, const struct ss_segment *seg, uint64_t addr);
/* The block of the last start up to addr. If addr lies in a live block that stays live, it is that
 * one; otherwise any block of the segment, or NULL. */
struct ss_block *ss_block_last_start(const struct ss_core *core, const struct ss_segment *seg,
				     uint64_t addr);
static inline struct ss_block *ss_segment_first(const struct ss_core *core,
						const struct ss_segment *seg)
{
	return ss_block_at(core, seg, seg->base);
}

/* A descriptor and its tables for [base, base + size), entered in the map as one block in state
 * GAP. NULL: host memory is out. */
struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size);
/* Takes the segment and its blocks out of the map. Nobody else may hold a block of it. */
void ss_segment_forget(struct ss_core *core, struct ss_segment *seg);

/* A block starts at addr, `value` - 1 being its index; 0: none does any more. */
void ss_start_set(struct ss_segment *seg, uint64_t addr, uint32_t value);

/* ---- the same inlined, for the hot path ---------------------------------- */

/* Where in seg addr is; false: not in it. */
static inline bool ss_segment_has(const struct ss_segment *seg, uint64_t addr, uint64_t *off)
{
	*off = addr - __atomic_load_n(&seg->base, __ATOMIC_RELAXED);
	return *off < __atomic_load_n(&seg->size, __ATOMIC_RELAXED);
}

static inline struct ss_segment *ss_map_segment_inline(const struct ss_map *map, uint64_t addr)
{
	_Atomic(struct ss_segment *) *leaf;
	struct ss_segment *seg;
	uint64_t off;

	if (addr >> SS_ADDRESS_BITS)
		return NULL;
	leaf = atomic_load_explicit(&map->frames[addr >> (SS_FRAME_BITS + SS_LEAF_BITS)],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	seg = atomic_load_explicit(&leaf[addr >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)],
				   memory_order_acquire);
	/* A segment that was recycled meanwhile has another range. */
	return seg && ss_segment_has(seg, addr, &off) ? seg : NULL;
}

static inline struct ss_block *ss_block_by_index(const struct ss_map *map, uint32_t index)
{
	struct ss_block *slab = __atomic_load_n(&map->slabs[index / SS_SLAB], __ATOMIC_ACQUIRE);

	if (!slab)
		__builtin_unreachable(); /* so that the compiler checks nothing */
	return &slab[index % SS_SLAB];
}

static inline struct ss_block *ss_block_at_inline(const struct ss_map *map,
						  const struct ss_segment *seg, uint64_t off)
{
	uint32_t v;

	if (off % SS_GRAIN)
		return NULL;
	v = atomic_load_explicit(&seg->grains[off / SS_GRAIN], memory_order_acquire);
	return v ? ss_block_by_index(map, v - 1) : NULL;
}

#endif
