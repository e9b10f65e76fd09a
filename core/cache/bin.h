/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a hit, inlined where they are used: bins, bytes in use, an address's block. Tens
 * of instructions, no atomic exchange for the thread that owns the lock. Only cache/ includes this.
 *
 * Bytes in use. The first thread that uses a pool counts alone, with plain stores: its high-water
 * mark is exact however many streams it uses. From the first use by another thread on, every
 * cache counts for itself under its own lock, and only when one passes its own peak are they
 * summed; a peak of several threads at once that is made of hits alone may go unseen. The sum is
 * always exact.
 */
#ifndef SS_CACHE_BIN_H
#define SS_CACHE_BIN_H

#include <string.h>

#include "core/cache/stream_cache.h"

static inline uint64_t ss_get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline void ss_put(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, n, memory_order_relaxed);
}

/* False: that is more than there ever was. */
static inline bool ss_count_add(struct ss_count *c, uint64_t delta)
{
	uint64_t used = ss_get(&c->used) + delta;

	ss_put(&c->used, used);
	return (int64_t)used <= (int64_t)ss_get(&c->peak);
}

static inline void ss_count_less(struct ss_count *c, uint64_t size)
{
	ss_put(&c->used, ss_get(&c->used) - size);
}

/* Where the calling thread counts: for the pool, if it counts alone, else for q. */
struct ss_count *ss_count_of(struct ss_stream_cache *q);
/* What *c counts is a new peak of it. q->lock held; unlocks it. */
SS_NOINLINE enum ss_status ss_count_peak(struct ss_stream_cache *q, struct ss_count *c);

/* ---- bins. q->lock held. ----------------------------------------------------- */

/* The middle bits of a product depend on all bits of a size, or of an address. */
#define SS_FACTOR 0x61c88647

static inline uint64_t ss_bin(uint64_t size)
{
	return (size * SS_FACTOR >> 32) % SS_BINS;
}

/* The same bin by its offset in bytes, which is two instructions shorter. */
static inline struct ss_bin *ss_bin_of(struct ss_stream_cache *q, uint64_t size)
{
	uint64_t off = size * SS_FACTOR >> 28 & (SS_BINS - 1) << 4;
	struct ss_bin *bin = (struct ss_bin *)(void *)((char *)q->bin + off);

	_Static_assert(sizeof(*bin) == 16, "the shift");
	__asm__("" : "+r"(bin)); /* computed once */
	return bin;
}

/* Where a size goes whose bin holds another size. */
static inline uint64_t ss_bin_next(uint64_t i)
{
	return (i + 1) % SS_BINS;
}

/* Blocks of one size have one alignment, unless SOMASHIM_ALIGN_LARGE is set. */
static inline struct ss_block *ss_bin_pop(struct ss_stream_cache *q, uint64_t size, uint64_t align)
{
	struct ss_bin *bin = ss_bin_of(q, size);
	struct ss_block *b;

	if (unlikely(bin->size != size)) {
		bin = &q->bin[ss_bin_next((uint64_t)(bin - q->bin))];
		if (bin->size != size)
			return NULL;
	}
	b = bin->head;
	if (unlikely(!b || (b->addr & (align - 1))))
		return NULL;
	bin->head = b->left;
	q->blocks--;
	q->bytes -= size;
	q->hits++;
	return b;
}

/* The first bin from i on that may hold something; SS_BINS: there is none. */
static inline unsigned ss_filled_from(const struct ss_stream_cache *q, unsigned i)
{
	const uint8_t *at = memchr(q->filled + i, 1, SS_BINS - i);

	return at ? (unsigned)(at - q->filled) : SS_BINS;
}

/* False: the bins hold as much as they may. */
static inline bool ss_bin_put(struct ss_stream_cache *q, struct ss_block *b,
			      struct ss_block **head, uint64_t size)
{
	b->left = *head;
	*head = b;
	q->bytes += size;
	q->frees++;
	return ++q->blocks < SS_CACHE_MOST;
}

/* The bin that holds blocks of that size; NULL: none does. */
static inline struct ss_bin *ss_bin_holding(struct ss_stream_cache *q, uint64_t size)
{
	uint64_t i = ss_bin(size);

	if (q->bin[i].size != size)
		i = ss_bin_next(i);
	return q->bin[i].size == size ? &q->bin[i] : NULL;
}

/* Gives the size a bin, if one of its two is empty. */
void ss_bin_claim(struct ss_stream_cache *q, uint64_t size);
/* Into the bin of its size, else into the arena. */
enum ss_push ss_bin_push_slow(struct ss_stream_cache *q, struct ss_block *b);

/* ---- blocks ------------------------------------------------------------------ */

/* q->lock held, here and below: where an address's entry of what was handed out lately is. */
static inline struct ss_handed *ss_handed(struct ss_stream_cache *q, uint64_t addr)
{
	return &q->handed[(addr * SS_FACTOR >> 32) % SS_HANDED];
}

static inline void ss_handed_put(struct ss_stream_cache *q, struct ss_block *b, uint64_t addr)
{
	struct ss_handed *at = ss_handed(q, addr);

	at->addr = addr;
	at->b = b;
}

/* False: the address was not handed out lately. *b is never NULL. */
static inline bool ss_handed_get(struct ss_stream_cache *q, uint64_t addr, struct ss_block **b)
{
	const struct ss_handed *at = ss_handed(q, addr);

	*b = at->b;
	return likely(at->addr == addr);
}

/* Empties that memory if segments have gone since it was filled. */
void ss_handed_renew(struct ss_stream_cache *q);

/* Slot, state and flags in one word. The descriptor may be another block's by now, whose holder
 * writes parts of the word under another lock; then it is not a live block of ours, whichever
 * part of that is seen. (The thread sanitizer cannot know that.) */
#ifdef __SANITIZE_THREAD__
#define SS_ACQUIRED(b) (void)atomic_load_explicit(&(b)->state, memory_order_acquire)
__attribute__((no_sanitize_thread, noinline, unused)) static
#else
#define SS_ACQUIRED(b) atomic_thread_fence(memory_order_acquire)
static inline
#endif
uint64_t ss_block_word(const struct ss_block *b)
{
	return *(const volatile uint64_t *)(const void *)&b->slot;
}

/* The word of a block that is live, handed out by the cache of `slot`, and not exported. */
static inline uint64_t ss_live_word(uint32_t slot, bool classic)
{
	_Static_assert(offsetof(struct ss_block, slot) % 8 == 0 &&
		       offsetof(struct ss_block, state) == offsetof(struct ss_block, slot) + 4 &&
		       offsetof(struct ss_block, classic) == offsetof(struct ss_block, slot) + 5 &&
		       offsetof(struct ss_block, exported) == offsetof(struct ss_block, slot) + 6 &&
		       offsetof(struct ss_block, bin) == offsetof(struct ss_block, slot) + 7 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the word");
	return (uint64_t)classic << 40 | (uint64_t)SS_BLOCK_LIVE << 32 | slot;
}

/* b is live from now on. Written as one word because it is read as one soon after: a load wider
 * than the last store would have to wait for the cache. */
static inline void ss_live(struct ss_block *b, uint64_t live)
{
	__atomic_store_n((uint64_t *)(void *)&b->slot, live | (uint64_t)b->bin << 56,
			 __ATOMIC_RELEASE);
}

/* Takes the live block at addr from its owner. Of two threads that free one block only one
 * succeeds, since a live block is claimed under the lock of the cache that handed it out. */
static inline bool ss_claim_hit(struct ss_block *b, uint64_t live, uint64_t addr)
{
	if (unlikely((ss_block_word(b) ^ live) << 8))
		return false;
	SS_ACQUIRED(b);
	if (unlikely(b->addr != addr))
		return false;
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	return true;
}

#endif
