/* SPDX-License-Identifier: MIT */
/* Ranges of memory: blocks, the heaps that free ones are in, segments and the map of
 * addresses. Part of core/internal.h. */
#ifndef SS_CORE_BLOCK_H
#define SS_CORE_BLOCK_H

#include <stdatomic.h>

#include "core/core.h"

#define SS_MAX_REQUEST (1ull << 46)
#define SS_GRAIN 512ull            /* every block is a multiple of this */
/* What programs observe of hipMalloc today (RDMA and dmabuf users count on pages). */
#define SS_CLASSIC_LARGE 65536
#define SS_CLASSIC_ALIGN 4096
#define SS_FRAME (2ull << 20)      /* segments are multiples of this */
#define SS_SLOT_CLEAN UINT32_MAX   /* no mark: every access has completed */
#define SS_SLOT_EPOCH (UINT32_MAX - 1) /* marks of many timelines: block->epoch */

static inline uint64_t ss_round(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* ---- blocks ------------------------------------------------------------- */

enum ss_block_state {
	SS_BLOCK_UNUSED = 0, /* descriptor not in use */
	SS_BLOCK_LIVE,       /* handed out */
	SS_BLOCK_QUEUED,     /* free, in the bins of a queue */
	SS_BLOCK_FREE,       /* free, in a heap or an epoch's list */
	SS_BLOCK_HOLE,       /* nobody's: no memory behind it (VMM), or kept for a peer */
	SS_BLOCK_LEASED,     /* stands for a run of blocks that a stream divides (lease.c) */
};

/* What was asked for before a block, and how often the peak had been reached by then (recur.c);
 * key 0: nobody followed it. (A lease leaves something else there: one wrong guess.) */
struct ss_past {
	uint32_t key, peaks;
};

/* One range of a segment. Descriptors never go back to the host allocator, so
 * a stale pointer to one can be read (and then rejected) at any time. */
struct ss_block {
	/* What a search of a heap reads, and what a hit does, side by side: */
	uint64_t addr, size;
	struct ss_block *left;           /* heap tree, bin or epoch list */
	union {
		struct ss_block *right;
		struct ss_past past;     /* live, and then in a bin; if it was followed */
	};
	union {
		/* free: position of the mark on `slot`; clean: since when at the latest,
		 * in ms, or 0 if nobody ever had it */
		uint64_t n;
		struct ss_epoch *epoch;  /* free, slot == SS_SLOT_EPOCH */
		uint64_t id;             /* live: the unique id */
	};
	uint32_t slot;                   /* of the mark; live: of the queue it came from */
	atomic_uchar state;
	bool classic;
	bool exported;                   /* another process may map it: never reuse */
	uint8_t bin;                     /* live or queued: of its size */
	uint64_t request;                /* bytes asked for, while live */
	struct ss_block *prev, *next;    /* neighbours by address */
	struct ss_segment *seg;
	uint32_t index;
	_Atomic uint32_t lessee;         /* slot + 1 of the stream it is leased to, or 0 */
};

static inline uint32_t ss_lessee(const struct ss_block *b)
{
	return atomic_load_explicit(&b->lessee, memory_order_relaxed);
}

static inline void ss_set_lessee(struct ss_block *b, uint32_t lessee)
{
	atomic_store_explicit(&b->lessee, lessee, memory_order_relaxed);
}

static inline void ss_set_state(struct ss_block *b, unsigned state)
{
	atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

static inline bool ss_is_state(const struct ss_block *b, enum ss_block_state state)
{
	return b && atomic_load_explicit(&b->state, memory_order_relaxed) == state;
}

/* Descriptors kept for splitting, under the lock of whoever keeps them: no two streams
 * that split at the same time share a lock, or a cache line of descriptors (descriptor.c). */
struct ss_spares {
	struct ss_block *head;      /* of its own batches */
	struct ss_block *away;      /* of others', on their way home */
	uint32_t count, away_count;
	struct ss_batch *mine;      /* batches of its own with some at home; core->meta */
};

/* ---- placement: heap.c -------------------------------------------------- */

#define SS_HEAP_FL 32
#define SS_HEAP_SL 16

/* Free ranges by size: bins of a quarter to a sixteenth of a power of two, in
 * each a treap by (size, address). Guarded by the pool's lock. */
struct ss_heap {
	struct ss_block *bin[SS_HEAP_FL * SS_HEAP_SL];
	uint32_t fl;
	uint16_t sl[SS_HEAP_FL];
	uint64_t bytes;
	uint32_t count;
};

void ss_heap_insert(struct ss_heap *h, struct ss_block *b);
void ss_heap_remove(struct ss_heap *h, struct ss_block *b);
/* The smallest range that holds `size` bytes at `align`, lowest address first;
 * NULL if there is none. */
struct ss_block *ss_heap_best(const struct ss_heap *h, uint64_t size, uint64_t align);
/* The same, but not one that is a whole segment, unless there is nothing else
 * among the next few. */
struct ss_block *ss_heap_best_part(const struct ss_heap *h, uint64_t size, uint64_t align);
/* The smallest range that holds it between the addresses `from` and `to`, among the next so many
 * of those that are long enough; NULL if none does. */
struct ss_block *ss_heap_best_within(const struct ss_heap *h, uint64_t size, uint64_t align,
				     uint64_t from, uint64_t to);
/* Where in b that is. */
static inline uint64_t ss_start_in(const struct ss_block *b, uint64_t align, uint64_t from)
{
	return ss_round(b->addr > from ? b->addr : from, align);
}
struct ss_block *ss_heap_largest(const struct ss_heap *h);
/* Calls `each` for every range; `each` must not change the heap. */
void ss_heap_each(const struct ss_heap *h, void (*each)(struct ss_block *, void *), void *arg);

/* ---- addresses: map.c --------------------------------------------------- */

#define SS_MAP_LEVELS 6

struct ss_segment {
	uint64_t base, size;
	struct ss_pool *pool;
	struct ss_block *first;
	_Atomic(uint32_t) *grains;      /* block index + 1 at each block's first grain */
	_Atomic uint64_t *level[SS_MAP_LEVELS]; /* bitmap of block starts and its summaries */
	int levels;
	size_t table_bytes;
	uint64_t idle_since;            /* ms, when the last byte became free */
	struct ss_segment *prev, *next; /* of the pool; next: also the spare list */
	enum ss_backing backing;
	void *native;                   /* what the driver gave (base may be above) */
	uint64_t native_size;
	uint64_t serial;                /* != 0: its number among those that got a handle */
	bool opening;                   /* a device is given access: it does not go back now */
};

bool ss_map_init(struct ss_core *core);
void ss_map_finish(struct ss_core *core);
struct ss_segment *ss_map_segment(struct ss_core *core, uint64_t addr);
/* A descriptor and its tables for [base, base+size), entered in the address
 * map as one block in state HOLE. NULL: host memory is out. */
struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size);
void ss_segment_forget(struct ss_core *core, struct ss_segment *seg);
/* Into and out of the pool's list. Pool lock held. */
void ss_segment_link(struct ss_pool *pool, struct ss_segment *seg);
void ss_segment_unlink(struct ss_pool *pool, struct ss_segment *seg);
/* The block that starts at / contains addr. `_at` needs no lock; `_containing`
 * needs the pool's. */
struct ss_block *ss_block_at(struct ss_core *core, struct ss_segment *seg, uint64_t addr);
struct ss_block *ss_block_containing(struct ss_core *core, struct ss_segment *seg, uint64_t addr);
/* The block of the last start up to addr; nobody splits or merges meanwhile, or it is
 * a guess: the one that holds addr if that is live, else any or none. */
struct ss_block *ss_block_last_start(struct ss_core *core, struct ss_segment *seg, uint64_t addr);
/* Cuts b after `size` bytes; the new second part inherits marks and state.
 * NULL: host memory is out and nothing changed. */
struct ss_block *ss_block_split(struct ss_core *core, struct ss_block *b, uint64_t size);
/* b swallows its next neighbour. */
void ss_block_merge(struct ss_core *core, struct ss_block *b);
/* The same with other spare descriptors than the pool's, which need the pool's lock. */
struct ss_block *ss_block_split_with(struct ss_core *core, struct ss_spares *own,
				     struct ss_block *b, uint64_t size);
void ss_block_merge_with(struct ss_core *core, struct ss_spares *own, struct ss_block *b);
/* A block in state LEASED stands in its segment's list for all from first to last, which
 * become a list of their own (->left); and back. NULL: host memory is out. */
struct ss_block *ss_block_wrap(struct ss_core *core, struct ss_spares *own,
			       struct ss_block *first, struct ss_block *last);
void ss_block_unwrap(struct ss_core *core, struct ss_spares *own, struct ss_block *run,
		     struct ss_block *last);
/* Such a run ends before b, which is not its first; what begins with b hangs from the
 * block that is returned. NULL: host memory is out. */
struct ss_block *ss_block_wrap_rest(struct ss_core *core, struct ss_spares *own,
				    struct ss_block *run, struct ss_block *b);
/* Another descriptor for b, of `own`; b, which nobody holds, goes to `theirs`. Returns
 * b if it is of `own` already, or host memory is out. */
struct ss_block *ss_block_rehome(struct ss_core *core, struct ss_spares *own,
				 struct ss_spares *theirs, struct ss_block *b);
/* A descriptor, and back. NULL: host memory is out. */
struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own);
struct ss_block *ss_block_new_alone(struct ss_core *core); /* of the core's own */
void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b);
/* A block starts at addr, `value` - 1 being its index; 0: none does. */
void ss_start_set(struct ss_segment *seg, uint64_t addr, uint32_t value);
/* Is b of one of own's batches? b is in use, by the caller. */
bool ss_descriptor_owned(const struct ss_core *core, const struct ss_spares *own,
			 const struct ss_block *b);
/* Those of others, and all but `keep` of its own, go home. */
void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep);
size_t ss_chunk_bytes(void); /* of host memory, for SS_CHUNK descriptors */

#endif
