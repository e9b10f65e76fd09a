/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a hit, inlined where they are used: bins of a queue, bytes in
 * use, an address's block. Tens of instructions, three atomic ones for an
 * allocation and its free together.
 *
 * Bytes in use. The first thread that uses a pool counts alone, in the pool, with
 * plain stores: its high-water mark is exact however many streams it uses. From
 * the first use by another thread on, every queue counts for itself under its own
 * lock, and only when a queue passes its own peak are they summed. (So a peak of
 * several threads at once that is made of hits alone may go unseen.) The sum is
 * always exact; nothing that two streams share is written on a hit.
 */
#ifndef SS_CORE_HIT_H
#define SS_CORE_HIT_H

#include "core/internal.h"

#define SS_COUNTER_SHARED ((uintptr_t)1)

/* What a thread used last: valid while gen is the core's stream_gen and pool the
 * device's current pool. Generations differ between cores. */
struct ss_recent {
	uint64_t gen;
	void *native;
	struct ss_timeline *tl;
	struct ss_device_state *dev;
	struct ss_pool *pool;
	struct ss_pool *frees; /* the same, where a free is no more than a push */
	struct ss_queue *q;
	uint64_t max;          /* sizes from here on have an alignment of their own */
	uint32_t slot;
};

/* Initial-exec, as in driver/guard.h. */
extern _Thread_local struct ss_recent ss_recent
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline uintptr_t ss_self(void)
{
	return (uintptr_t)&ss_recent;
}

/* ---- bytes in use ------------------------------------------------------- */

static inline uint64_t ss_get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline void ss_put(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, n, memory_order_relaxed);
}

/* Adds `delta`, which may be negative, if `self` counts for the pool alone. */
static inline bool ss_used_alone(struct ss_pool *pool, uintptr_t self, uint64_t delta)
{
	uint64_t used;

	if (atomic_load_explicit(&pool->counter, memory_order_relaxed) != self)
		return false;
	used = ss_get(&pool->alone_used) + delta;
	ss_put(&pool->alone_used, used);
	if ((int64_t)used > (int64_t)ss_get(&pool->peak))
		ss_put(&pool->peak, used);
	return true;
}

/* The same for what is given back, which makes no new peak. */
static inline bool ss_used_less(struct ss_pool *pool, uintptr_t self, uint64_t size)
{
	if (atomic_load_explicit(&pool->counter, memory_order_relaxed) != self)
		return false;
	ss_put(&pool->alone_used, ss_get(&pool->alone_used) - size);
	return true;
}

/* For any thread, with q->lock held; unlocks it. (Never inlined: what a hit does not need
 * must not cost it registers.) */
__attribute__((noinline)) enum ss_status ss_used_shared(struct ss_pool *pool, struct ss_queue *q,
							uint64_t delta);
/* The same, with q->lock not held. */
void ss_used_add(struct ss_pool *pool, struct ss_queue *q, uint64_t delta);
__attribute__((noinline)) enum ss_status ss_hit_full(struct ss_queue *q, uint64_t size);

/* ---- bins --------------------------------------------------------------- */

static inline unsigned ss_bin(uint64_t size)
{
	return (unsigned)((size / SS_GRAIN * 0x9e3779b97f4a7c15ull) >> 56) % SS_BINS;
}

/* q->lock held, here and below. */
static inline struct ss_block *ss_bin_pop(struct ss_queue *q, uint64_t size, uint64_t align)
{
	struct ss_bin *bin = &q->bin[ss_bin(size)];
	struct ss_block *b;

	if (__builtin_expect(bin->size != size, 0)) {
		bin = &q->bin[(ss_bin(size) + 1) % SS_BINS];
		if (bin->size != size)
			return NULL;
	}
	b = bin->head;
	/* Same size does not mean same alignment where that is an option. */
	if (!b || (b->addr & (align - 1)))
		return NULL;
	bin->head = b->left;
	q->blocks--;
	q->bytes -= size;
	q->hits++;
	return b;
}

static inline bool ss_bin_push(struct ss_queue *q, struct ss_block *b)
{
	unsigned i = b->bin;
	struct ss_block **head = &q->bin[i].head;

	if (__builtin_expect(q->bin[i].size != b->size, 0)) {
		if (*head) {
			i = (i + 1) % SS_BINS;
			head = &q->bin[i].head;
		}
		if (q->bin[i].size == b->size || !*head)
			q->bin[i].size = b->size;
		else
			head = &q->overflow; /* until the next allocation empties it */
	}
	q->filled[i] = 1;
	b->left = *head;
	*head = b;
	q->bytes += b->size;
	q->frees++;
	return ++q->blocks < SS_QUEUE_MAX_BLOCKS;
}

/* ---- blocks ------------------------------------------------------------- */

#define SS_ADDRESS_BITS 48
#define SS_FRAME_BITS 21
#define SS_LEAF_BITS 14
#define SS_CHUNK 4096u

static inline struct ss_segment *ss_map_segment_inline(struct ss_core *core, uint64_t addr)
{
	_Atomic(struct ss_segment *) *leaf;
	struct ss_segment *seg;

	if (addr >> SS_ADDRESS_BITS)
		return NULL;
	leaf = atomic_load_explicit(&core->frames[addr >> (SS_FRAME_BITS + SS_LEAF_BITS)],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	seg = atomic_load_explicit(&leaf[addr >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)],
				   memory_order_acquire);
	/* Recycled under our feet? Then the range does not match. */
	return seg && addr - seg->base < seg->size ? seg : NULL;
}

static inline struct ss_block *ss_block_by_index(struct ss_core *core, uint32_t index)
{
	struct ss_block *chunk = __atomic_load_n(&core->chunks[index / SS_CHUNK],
						 __ATOMIC_ACQUIRE);

	if (!chunk)
		__builtin_unreachable(); /* so that nobody asks */
	return &chunk[index % SS_CHUNK];
}

static inline struct ss_block *ss_block_at_inline(struct ss_core *core,
						  struct ss_segment *seg, uint64_t addr)
{
	uint64_t off = addr - seg->base;
	uint32_t v;

	if (off % SS_GRAIN)
		return NULL;
	v = atomic_load_explicit(&seg->grains[off / SS_GRAIN], memory_order_acquire);
	return v ? ss_block_by_index(core, v - 1) : NULL;
}

/* Of two threads that free one block, one wins: a live block names the queue it was
 * handed out by, and is claimed under that queue's lock. */
static inline bool ss_claim_locked(struct ss_block *b, uint32_t slot)
{
	if (atomic_load_explicit(&b->state, memory_order_acquire) != SS_BLOCK_LIVE ||
	    b->slot != slot)
		return false;
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	return true;
}

#endif
