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

#include "core/lease.h"

#define SS_COUNTER_SHARED ((uintptr_t)1)

/* ---- bytes in use ------------------------------------------------------- */

static inline uint64_t ss_get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static inline void ss_put(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, n, memory_order_relaxed);
}

/* Adds `delta`, which may be negative. False: that is more than there ever was. */
static inline bool ss_count_add(struct ss_count *c, uint64_t delta)
{
	uint64_t used = ss_get(&c->used) + delta;

	ss_put(&c->used, used);
	return (int64_t)used <= (int64_t)ss_get(&c->peak);
}

/* Of what is given back, which makes no new peak. */
static inline void ss_count_less(struct ss_count *c, uint64_t size)
{
	ss_put(&c->used, ss_get(&c->used) - size);
}

/* The three that follow are never inlined: what a hit does not need must not cost it
 * registers. q->lock held; they unlock it. */
#define SS_APART __attribute__((noinline))
/* What *c counts is a new peak of it. */
SS_APART enum ss_status ss_count_peak(struct ss_queue *q, struct ss_count *c);
/* Counts for any thread. */
SS_APART enum ss_status ss_used_shared(struct ss_pool *pool, struct ss_queue *q, uint64_t delta);
SS_APART enum ss_status ss_hit_full(struct ss_queue *q, uint64_t size);
/* The same as ss_used_shared with q->lock not held. */
void ss_used_add(struct ss_pool *pool, struct ss_queue *q, uint64_t delta);
/* Where the calling thread counts: the pool's, if it counts alone, else q's. */
struct ss_count *ss_count_of(struct ss_pool *pool, struct ss_queue *q);

/* ---- bins --------------------------------------------------------------- */

/* A product's middle bits depend on all that are set in a size, or in an address. (One
 * instruction, since the factor fits into it.) */
#define SS_FACTOR 0x61c88647

static inline uint64_t ss_bin(uint64_t size)
{
	return (size * SS_FACTOR >> 32) % SS_BINS;
}

/* That bin, by its offset in bytes: two instructions less. */
static inline struct ss_bin *ss_bin_of(struct ss_queue *q, uint64_t size)
{
	uint64_t off = size * SS_FACTOR >> 28 & (SS_BINS - 1) << 4;
	struct ss_bin *bin = (struct ss_bin *)(void *)((char *)q->bin + off);

	_Static_assert(sizeof(*bin) == 16, "the shift");
	__asm__("" : "+r"(bin)); /* computed once */
	return bin;
}

/* Its neighbour, where a size goes whose bin holds another one. */
static inline uint64_t ss_bin_next(uint64_t i)
{
	return (i + 1) % SS_BINS;
}

/* q->lock held, here and below. */
static inline struct ss_block *ss_bin_pop(struct ss_queue *q, uint64_t size, uint64_t align)
{
	struct ss_bin *bin = ss_bin_of(q, size);
	struct ss_block *b;

	if (__builtin_expect(bin->size != size, 0)) {
		bin = &q->bin[ss_bin_next((uint64_t)(bin - q->bin))];
		if (bin->size != size)
			return NULL;
	}
	b = bin->head;
	/* Same size does not mean same alignment where that is an option. */
	if (__builtin_expect(!b || (b->addr & (align - 1)), 0))
		return NULL;
	bin->head = b->left;
	q->blocks--;
	q->bytes -= size;
	q->hits++;
	return b;
}

/* The first bin from i on that may hold something; SS_BINS: there is none. */
static inline unsigned ss_filled_from(const struct ss_queue *q, unsigned i)
{
	const uint8_t *at = memchr(q->filled + i, 1, SS_BINS - i);

	return at ? (unsigned)(at - q->filled) : SS_BINS;
}

#define SS_NOVEL_FEW 4        /* and one */
#define SS_NOVEL_PART 16      /* of the allocations may have a size not seen of late, */
#define SS_NOVEL_OF 8192      /* of the last so many, and half as many before them */

/* An allocation that no bin served: have many of late had a size that no bin has, because
 * none of it was freed? */
static inline bool ss_varied(struct ss_queue *q, uint64_t size)
{
	uint64_t i = ss_bin(size), of = q->hits + q->asked - q->novel_from;

	if (q->bin[i].size != size && q->bin[ss_bin_next(i)].size != size)
		q->novel++;
	if (of >= 2 * SS_NOVEL_OF) {
		q->novel /= 2;
		q->novel_from += of / 2;
		of /= 2;
	}
	return q->novel > SS_NOVEL_FEW + of / SS_NOVEL_PART;
}

/* Before *head. False: the queue is full. */
static inline bool ss_bin_put(struct ss_queue *q, struct ss_block *b, struct ss_block **head,
			      uint64_t size)
{
	b->left = *head;
	*head = b;
	q->bytes += size;
	q->frees++;
	return ++q->blocks < q->most;
}

static inline bool ss_bin_push(struct ss_queue *q, struct ss_block *b)
{
	uint64_t i = b->bin;
	struct ss_bin *bin = &q->bin[i];
	struct ss_block **head = &bin->head;

	if (bin->size != b->size) {
		if (ss_leases(q) && q->lease->merges && ss_lease_return(q, b))
			return true;
		if (*head) {
			i = ss_bin_next(i);
			bin = &q->bin[i];
			head = &bin->head;
		}
		if (bin->size == b->size || !*head) {
			bin->size = b->size;
			q->assigned++;
		} else {
			head = &q->overflow; /* until the next allocation empties it */
		}
	}
	q->filled[i] = 1;
	return ss_bin_put(q, b, head, b->size);
}

/* ---- blocks ------------------------------------------------------------- */

#define SS_ADDRESS_BITS 48
#define SS_FRAME_BITS 21
#define SS_LEAF_BITS 14
#define SS_CHUNK 4096u
#define SS_MAX_CHUNKS (1u << 20) /* four thousand million blocks */

/* Where in it addr is; false: not in it. */
static inline bool ss_segment_has(const struct ss_segment *seg, uint64_t addr, uint64_t *off)
{
	*off = addr - __atomic_load_n(&seg->base, __ATOMIC_RELAXED);
	return *off < __atomic_load_n(&seg->size, __ATOMIC_RELAXED);
}

static inline struct ss_segment *ss_map_segment_inline(struct ss_core *core, uint64_t addr)
{
	_Atomic(struct ss_segment *) *leaf;
	struct ss_segment *seg;
	uint64_t off;

	if (addr >> SS_ADDRESS_BITS)
		return NULL;
	leaf = atomic_load_explicit(&core->frames[addr >> (SS_FRAME_BITS + SS_LEAF_BITS)],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	seg = atomic_load_explicit(&leaf[addr >> SS_FRAME_BITS & ((1u << SS_LEAF_BITS) - 1)],
				   memory_order_acquire);
	/* Recycled under our feet? Then the range does not match. */
	return seg && ss_segment_has(seg, addr, &off) ? seg : NULL;
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
						  struct ss_segment *seg, uint64_t off)
{
	uint32_t v;

	if (off % SS_GRAIN)
		return NULL;
	v = atomic_load_explicit(&seg->grains[off / SS_GRAIN], memory_order_acquire);
	return v ? ss_block_by_index(core, v - 1) : NULL;
}

/* q->lock held, here and below: what was handed out at addr, if that was of late. */
static inline struct ss_near *ss_near(struct ss_queue *q, uint64_t addr)
{
	return &q->near[(addr * SS_FACTOR >> 32) % SS_NEAR];
}

static inline void ss_near_put(struct ss_queue *q, struct ss_block *b, uint64_t addr)
{
	struct ss_near *at = ss_near(q, addr);

	at->addr = addr;
	at->b = b;
}

/* False: nothing. (NULL is found where nothing was handed out: the block of no pool.) */
static inline bool ss_near_get(struct ss_queue *q, uint64_t addr, struct ss_block **b)
{
	const struct ss_near *at = ss_near(q, addr);

	*b = at->b;
	return __builtin_expect(at->addr == addr, 1);
}

/* Of two threads that free one block, one wins: a live block names the queue it was
 * handed out by, and is claimed under that queue's lock. */
static inline bool ss_claim_locked(struct ss_block *b, uint32_t slot, uint64_t addr)
{
	if (__builtin_expect(atomic_load_explicit(&b->state, memory_order_acquire) !=
			     SS_BLOCK_LIVE || b->slot != slot || b->addr != addr, 0))
		return false;
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	return true;
}

/* Slot, state and flags in one word. The descriptor may be another's by now, who writes
 * parts of it under another lock: then it is not a live block of ours, whatever part of that
 * is seen. (The thread sanitizer cannot know.) */
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

/* Live, handed out by this queue, classic or not, and not exported. */
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

/* b is live from now on. At once, since it is read at once: a load of more than what was
 * stored last has to wait for the cache. */
static inline void ss_live(struct ss_block *b, uint64_t live)
{
	__atomic_store_n((uint64_t *)(void *)&b->slot, live | (uint64_t)b->bin << 56,
			 __ATOMIC_RELEASE);
}

/* The same for what is a hit: all of that in one word, but for the bin. */
static inline bool ss_claim_hit(struct ss_block *b, uint64_t live, uint64_t addr)
{
	if (__builtin_expect((ss_block_word(b) ^ live) << 8, 0))
		return false;
	SS_ACQUIRED(b);
	if (__builtin_expect(b->addr != addr, 0))
		return false;
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
	return true;
}

#endif
