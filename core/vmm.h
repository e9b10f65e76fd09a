/* SPDX-License-Identifier: MIT */
/* A pool on virtual memory, inside: its reservation and its chunks (chunk.c) as
 * vmm.c uses them. */
#ifndef SS_CORE_VMM_H
#define SS_CORE_VMM_H

#include "core/internal.h"

#define SS_MAX_CHUNK (64ull << 20)

struct ss_chunk {
	void *handle;
	uint64_t size;
	uint64_t idle_since; /* ms; 0: not seen idle yet */
	struct ss_chunk *next; /* in the lists of one operation */
	uint64_t va;
};

struct ss_vmm {
	struct ss_segment *seg;
	uint64_t unit;           /* smallest chunk */
	struct ss_heap holes;
	struct ss_chunk **frame; /* chunk at each unit of the reservation */
	uint64_t frames;
	uint32_t chunks;
};

static inline struct ss_chunk **ss_frame_at(struct ss_vmm *v, uint64_t va)
{
	return &v->frame[(va - v->seg->base) / v->unit];
}

static inline void ss_set_state(struct ss_block *b, enum ss_block_state state)
{
	atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

static inline bool ss_is_state(const struct ss_block *b, enum ss_block_state state)
{
	return b && atomic_load_explicit(&b->state, memory_order_relaxed) == state;
}

/* The reservation of a pool that has none yet. No lock held. */
enum ss_status ss_vmm_reserve(struct ss_pool *pool);
/* b becomes a hole, one with the holes beside it. Pool lock held. */
void ss_hole_place(struct ss_pool *pool, struct ss_block *b);

/* Chunks. No lock held.
 * Physical memory that is mapped nowhere; NULL: *s says why. */
struct ss_chunk *ss_chunk_make(struct ss_pool *pool, uint64_t size, enum ss_status *s);
void ss_chunk_destroy(struct ss_pool *pool, struct ss_chunk *c);
/* Maps the chunks at [va, ..) one after the other; those that fail stay in the
 * list. Returns the bytes mapped. */
uint64_t ss_chunk_map(struct ss_pool *pool, uint64_t va, struct ss_chunk **list);
/* Unmaps the chunk behind b, which was detached; b becomes a hole. */
enum ss_status ss_chunk_unmap(struct ss_pool *pool, struct ss_block *b, struct ss_chunk *c);

#endif
