/* SPDX-License-Identifier: MIT */
/*
 * Shapes shared by the rooms of the core.
 *
 * Lock order (never the other way round, none across a driver call):
 *   pool->lock  ->  queue->lock (spin)
 *   pool->lock  ->  core->order (which streams and events there are; fences)
 *   core->order ->  event->lock (spin)  ->  timeline->lock (spin)
 *   core->pools (the list of pools) before any pool->lock
 *   core->meta (block descriptors, segments of the address map) is a leaf
 */
#ifndef SS_CORE_INTERNAL_H
#define SS_CORE_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

/* Every key here is a pointer or a handle: eight bytes, one multiplication. The
 * middle bits choose the bucket, since uthash takes the low ones. */
#define HASH_FUNCTION(key, length, hash) do { \
	uint64_t key_; \
	memcpy(&key_, (key), sizeof(key_)); \
	(hash) = (unsigned)(key_ * 0x9e3779b97f4a7c15ull >> 32); \
} while (0)
#define HASH_KEYCMP(a, b, length) memcmp((a), (b), sizeof(uint64_t))
#include <uthash.h>

#include "core/core.h"
#include "core/journal.h"
#include "core/lock.h"
#include "core/mutants.h"
#include "core/table.h"

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
};

/* One range of a segment. Descriptors never go back to the host allocator, so
 * a stale pointer to one can be read (and then rejected) at any time. */
struct ss_block {
	/* What a search of a heap reads, side by side: */
	uint64_t addr, size;
	struct ss_block *left, *right;   /* heap tree, bin or epoch list */
	uint64_t request;                /* bytes asked for, while live */
	struct ss_block *prev, *next;    /* neighbours by address */
	struct ss_segment *seg;
	union {
		uint64_t n;              /* free: position of the mark on `slot` */
		struct ss_epoch *epoch;  /* free, slot == SS_SLOT_EPOCH */
		uint64_t id;             /* live: the unique id */
	};
	uint32_t slot;                   /* of the mark; live: of the queue it came from */
	uint32_t index;
	atomic_uchar state;
	bool classic;
	bool exported;                   /* another process may map it: never reuse */
	uint8_t bin;                     /* live or queued: of its size */
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
	uint64_t *level[SS_MAP_LEVELS]; /* bitmap of block starts and its summaries */
	int levels;
	size_t table_bytes;
	uint64_t idle_since;            /* ms, when the last byte became free */
	struct ss_segment *prev, *next; /* of the pool; next: also the spare list */
	enum ss_backing backing;
	void *native;                   /* what the driver gave (base may be above) */
	uint64_t native_size;
	uint64_t exported;              /* != 0: its number among those with a handle */
};

bool ss_map_init(struct ss_core *core);
void ss_map_finish(struct ss_core *core);
struct ss_segment *ss_map_segment(struct ss_core *core, uint64_t addr);
/* A descriptor and its tables for [base, base+size), entered in the address
 * map as one block in state HOLE. NULL: host memory is out. */
struct ss_segment *ss_segment_new(struct ss_core *core, struct ss_pool *pool, uint64_t base,
				  uint64_t size);
void ss_segment_forget(struct ss_core *core, struct ss_segment *seg);
/* The block that starts at / contains addr. `_at` needs no lock; `_containing`
 * needs the pool's. */
struct ss_block *ss_block_at(struct ss_core *core, struct ss_segment *seg, uint64_t addr);
struct ss_block *ss_block_containing(struct ss_core *core, struct ss_segment *seg, uint64_t addr);
/* Cuts b after `size` bytes; the new second part inherits marks and state.
 * NULL: host memory is out and nothing changed. */
struct ss_block *ss_block_split(struct ss_core *core, struct ss_block *b, uint64_t size);
/* b swallows its next neighbour. */
void ss_block_merge(struct ss_core *core, struct ss_block *b);

/* ---- order: timeline.c, event.c, fence.c -------------------------------- */

enum ss_fence_how {
	SS_FENCE_LATE,    /* stands behind whatever was enqueued until now */
	SS_FENCE_EXACT,   /* called inside the free of mark n itself */
	SS_FENCE_JOINING, /* inside a call that joins the null stream anyway */
};

/* What a timeline saw of every other, by slot. */
struct ss_row {
	uint32_t cap, count;
	uint64_t n[];
};

/* A fence on its way: when it is reached, `pos` and all of `row` completed. */
struct ss_pending {
	struct ss_fence fence;
	uint64_t pos;
	struct ss_row *row;
	bool exact; /* recorded in the very free it stands for: covers nothing later */
	struct ss_pending *next;
};

struct ss_timeline {
	/* Read and written by the stream's user: */
	struct ss_link link;            /* by handle */
	struct ss_core *core;
	uint32_t slot;
	int dev;
	enum ss_timeline_kind kind;
	void *native;
	pthread_t thread;               /* SS_TL_THREAD: the only one that may record */
	_Atomic uint64_t life;          /* of this stream in the slot; 0: it has ended */
	atomic_bool alive, capturing;
	bool seen;
	bool joined;                    /* the null stream counts on joining it */
	atomic_bool marked;             /* something may carry a mark of it */
	atomic_bool wanted;             /* a fence that could not be recorded then */
	/* 0: a command stands behind every hit and free; 1: not; else the number of
	 * a command under way that will. */
	atomic_uint uncovered;
	unsigned covers;
	_Atomic uint64_t commanded;     /* a command stands behind this position */
	_Atomic uint64_t now;           /* position of the next mark */
	/* Written by whoever asks how far it is: */
	_Alignas(64) _Atomic uint64_t completed; /* reached, however we know */
	_Atomic uint64_t synced;        /* reached, and the application knows too */
	struct ss_spin lock;            /* saw, version, covers; alive, capturing with order */
	struct ss_row *saw;
	_Atomic uint64_t version;       /* of saw; grows in a slot for ever */
	_Atomic uint64_t proved;        /* the version of which all is synced */
	_Atomic uint32_t pending;       /* how many fences */
	struct ss_pending *fences, **fences_tail;
	uint64_t fenced;                /* highest position with a fence behind it */
	uint64_t last;                  /* the final position, once retired */
	atomic_uint recording;          /* threads inside the driver's fence_record for it */
	bool polling, drop;             /* a thread is asking the driver; drop after */
};

/* Frees that share one set of marks: everything a device's timelines had
 * enqueued. Refcounted by the blocks that carry it. */
struct ss_epoch {
	struct ss_epoch *prev, *next;   /* of the pool */
	struct ss_block *blocks;
	uint64_t bytes;
	uint64_t wide;                  /* needs a device-wide wait (0 = no) */
	int dev;
	uint32_t count;
	struct { uint32_t slot; uint64_t n; } mark[];
};

void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl); /* order lock held */
static inline void ss_uncover(struct ss_timeline *tl)
{
	if (atomic_load_explicit(&tl->uncovered, memory_order_relaxed) != 1)
		atomic_store_explicit(&tl->uncovered, 1, memory_order_relaxed);
}
/* Round a command on tl: what is hit or freed meanwhile stays uncovered, and so
 * does everything if the command fails. tl->lock held. */
static inline unsigned ss_cover_begin(struct ss_timeline *tl)
{
	if (atomic_load(&tl->uncovered)) {
		tl->covers = tl->covers < 2 ? 2 : tl->covers + 1;
		atomic_store(&tl->uncovered, tl->covers);
	}
	return tl->covers;
}
/* No lock needed. */
static inline void ss_cover_end(struct ss_timeline *tl, unsigned cover)
{
	if (atomic_load_explicit(&tl->uncovered, memory_order_relaxed) == cover)
		atomic_compare_exchange_strong(&tl->uncovered, &cover, 0);
}
void ss_timeline_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how);
static inline uint64_t ss_version(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->version, memory_order_acquire);
}
void ss_row_put(struct ss_row *row);
/* A copy of the row of `tl`; NULL: it saw nothing (or host memory is out). */
struct ss_row *ss_row_of(struct ss_core *core, struct ss_timeline *tl);
/* Makes *to the same, in the memory it has where that is enough. False: host memory
 * is out. tl->lock held. */
bool ss_row_copy(struct ss_row **to, const struct ss_timeline *tl);
static inline uint64_t ss_row_get(const struct ss_row *row, uint32_t slot)
{
	return row && slot < row->count ? row->n[slot] : 0;
}
struct ss_timeline *ss_slot(struct ss_core *core, uint32_t slot);
/* Raises completed (and synced) of tl to pos and of everything in row. */
void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_row *row, bool synced);
/* The same with what tl had seen by then: if that has changed since, it only counts
 * for tl itself. */
void ss_complete_seen(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		      uint64_t version, bool synced);
void ss_event_finish_all(struct ss_core *core);
bool ss_token_device_wide(const struct ss_token *t);

enum ss_token_kind {
	SS_TOKEN_NONE,
	SS_TOKEN_RECORD,
	SS_TOKEN_WAIT,
	SS_TOKEN_EVENT,
	SS_TOKEN_STREAM,
	SS_TOKEN_MANY,
};

struct ss_event;
int ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen);

/* Waits, with no lock held, until no thread is recording on tl; the caller has
 * made sure that none begins. */
void ss_fence_quiesce(struct ss_timeline *tl);
/* Asks for a fence that covers position n of tl, unless one is on its way; a
 * fence that cannot be recorded now is remembered and served by ss_fence_serve.
 * No lock held. */
bool ss_fence_request(struct ss_core *core, struct ss_timeline *tl, uint64_t n,
		      enum ss_fence_how how);
/* Records a fence that somebody asked for while it was not possible: on the null
 * stream in a call that joins it, on a per-thread stream by its own thread. */
static inline void ss_fence_serve(struct ss_core *core, struct ss_timeline *tl,
				  enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->wanted, memory_order_relaxed))
		ss_fence_request(core, tl, UINT64_MAX, how);
}
/* Polls outstanding fences of tl (NULL: of all timelines of dev). True if
 * anything completed. No lock held. */
bool ss_fence_poll(struct ss_core *core, struct ss_timeline *tl, int dev);
/* Drops the fences of a timeline that is gone. No lock held. */
void ss_fence_drop(struct ss_core *core, struct ss_timeline *tl);
/* Was the fence that has just been recorded at n reached? Asked a few times, of
 * which *looks keeps count over all streams that are asked. */
bool ss_fence_reached(struct ss_core *core, struct ss_timeline *tl, uint64_t n, unsigned *looks);
/* Is tl at its end, as the runtime knows without a fence? Then what was freed on it has
 * completed. No lock held. */
bool ss_stream_at_end(struct ss_core *core, struct ss_timeline *tl);
/* A fresh position: what was freed before is at or below it, what is freed from
 * now on above it. */
static inline uint64_t ss_position(struct ss_timeline *tl)
{
	return atomic_fetch_add(&tl->now, 1);
}
/* Everything enqueued on x from now on is ordered after position n of `slot` and after
 * `from`. Rows are closed under this, so a known position brings nothing. */
void ss_row_raise(struct ss_timeline *x, const struct ss_row *from, uint32_t slot, uint64_t n);
static inline void ss_row_merge_into(struct ss_timeline *x, const struct ss_row *from,
				     uint32_t slot, uint64_t n)
{
	uint64_t *known;

	ss_spin_lock(&x->lock);
	known = x->saw && slot < x->saw->count ? &x->saw->n[slot] : NULL;
	if (!known || (*known < n && from && from->count)) {
		ss_row_raise(x, from, slot, n);
	} else if (*known < n) {
		*known = n;
		atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
	}
	ss_spin_unlock(&x->lock);
}
/* Makes stream X wait on the device for an exact fence that covers (tl, n).
 * False: there is none. No lock held. */
bool ss_fence_gate(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl, uint64_t n);


/* ---- queues: queue.c ---------------------------------------------------- */

#define SS_BINS 256
#define SS_QUEUE_MAX_BLOCKS 4096 /* beyond this a queue goes to the heap */

/* What was freed on one stream of one pool. Bins hold blocks of one size each,
 * newest first; `own` holds what was merged. */
struct ss_queue {
	/* One cache line, written by whoever uses the stream: */
	struct ss_spin lock;
	uint32_t blocks;                /* in bins and overflow */
	uint64_t bytes;                 /* in bins and overflow */
	uint64_t id, hits, frees;
	_Atomic uint64_t used;          /* what it counts of the pool's used bytes */
	int64_t peak;                   /* the most that was */
	struct ss_block *overflow;
	uint8_t filled[SS_BINS];        /* 1: this bin may hold something */
	struct ss_bin { uint64_t size; struct ss_block *head; } bin[SS_BINS];
	struct ss_pool *pool;
	struct ss_timeline *tl;         /* NULL: the queue of completed blocks */
	/* guarded by the pool's lock: */
	uint64_t hits_counted, hits_flushed;
	uint64_t kept[SS_BINS];         /* the bin's size, if it was asked for again */
	uint64_t fences, frees_fenced;  /* fences asked for; frees at the last one */
	bool idle;                      /* the stream was at its end when last asked */
	struct ss_heap own;
};

struct ss_queue *ss_queue_new(struct ss_pool *pool, struct ss_timeline *tl);
struct ss_queue *ss_queue_slow(struct ss_pool *pool, struct ss_timeline *tl);
/* False: the queue is full and should be settled. */
bool ss_queue_push(struct ss_queue *q, struct ss_block *b);
/* NULL: no block of this size. *id: what the block is to be called. */
struct ss_block *ss_queue_pop(struct ss_queue *q, uint64_t size, uint64_t align, uint64_t *id);
/* The blocks of `size` bytes and more, as a list by ->left; 0: everything. */
struct ss_block *ss_queue_drain(struct ss_queue *q, uint64_t size);
/* The blocks of sizes that nobody asked for again so far; `size` is being asked
 * for. Pool lock held. */
struct ss_block *ss_queue_drain_new(struct ss_queue *q, uint64_t size);

/* ---- pools: pool.c, alloc.c, slab.c, vmm.c ------------------------------ */

struct ss_queue_table {
	uint32_t cap;
	struct ss_queue_table *older;   /* readers may still be in it */
	_Atomic(struct ss_queue *) q[];
};

struct ss_pool {
	struct ss_core *core;
	uint64_t handle;
	int dev;
	bool classic, is_default;
	bool shared;                    /* ss_pool_share */
	atomic_bool dying;              /* destroyed; lives until its last block is freed */
	enum ss_backing backing;
	uint64_t max_bytes, peers;
	atomic_bool follow, opportunistic, internal;
	_Atomic uint64_t threshold;
	atomic_bool threshold_set;      /* by the program or by the environment */

	_Atomic(struct ss_queue_table *) queues;
	/* Used bytes (core/hit.h): the thread that counts alone, what it counted,
	 * and the high-water mark. Apart from what is read on every hit, as is what
	 * the slow path writes. */
	_Atomic uintptr_t counter;
	_Alignas(64) _Atomic uint64_t alone_used;
	_Atomic uint64_t peak;
	_Alignas(64) _Atomic uint64_t reserved;
	_Atomic uint64_t reserved_high;
	_Atomic uint64_t kept;          /* freed, but another process may map it */

	pthread_mutex_t lock;
	struct ss_heap clean;
	struct ss_queue *done;          /* bins of completed blocks (classic) */
	struct ss_epoch *epochs;
	struct ss_segment *segments;
	struct ss_vmm *vmm;
	bool mapping;                   /* chunk.c: a thread changes what is mapped */
	pthread_t mapper;
	pthread_cond_t mapped;
	uint32_t segment_count;
	uint32_t queue_count;           /* of streams */
	bool lags;                      /* a stream was not at its end when asked last */
	uint64_t waited;                /* freed on other streams when they were asked last */
	uint64_t idle_bytes;            /* of segments that are free from end to end */
	/* thrift.c: what was spent on a tight fit, and since when */
	struct { uint64_t allocs, calls, used_high, allocs_then, calls_then; } spent;
	/* The peak of reserved bytes, and the allocations until it was seen */
	struct { uint64_t peak, since; } steady;
	bool trim_wanted;               /* a TrimTo that must not wait was asked for */
	uint64_t trim_keep;
	uint64_t ids, id_base;          /* of blocks that come from a heap */
	struct ss_pool_stats st;        /* what the slow path counts */
	struct ss_pool *next;           /* core's list */
	UT_hash_handle hh;
};

struct ss_device_state {
	bool known;
	struct ss_device_info info;
	_Atomic(struct ss_pool *) def, classic;
	_Atomic(struct ss_pool *) current;
	struct ss_timeline *null;
	uint64_t peers;
	uint64_t limit;                 /* bytes; 0 = none */
	_Atomic uint64_t reserved;      /* all pools */
	_Atomic uint64_t taken;         /* of the limit */
	atomic_bool initial_done;
	_Atomic uint64_t wide_now, wide_done; /* real device-wide waits */
	_Atomic uint32_t joiners;       /* live streams that join the null stream */
	atomic_bool pressed;            /* near its limit: frees record their fence */
	_Atomic unsigned keeps;         /* vmm.c: times that given memory did not come back */
};

struct ss_core {
	struct ss_driver drv;
	struct ss_options opt;
	struct ss_journal *journal;
	FILE *log;                      /* where reports go; NULL: nowhere */
	bool classic_odd;               /* hipMalloc has more to do than usual */
	uint64_t serial;                /* tells cores apart in thread-local caches */

	pthread_mutex_t order;
	struct ss_table by_handle, events;
	struct ss_event *spare_events;
	struct ss_timeline **slots;
	_Atomic uint32_t slot_count;
	uint32_t slot_cap;
	_Atomic uint64_t stream_gen;    /* grows when a handle leaves the table */
	uint64_t lives;                 /* streams there ever were */
	_Atomic uint32_t fences_pending;
	atomic_bool eager;              /* some pools give back without a wait */
	atomic_bool distrust;
	const char *distrust_why;

	pthread_mutex_t pools;
	struct ss_pool *pool_list, *pool_by_handle, *spare_pools;
	uint64_t next_handle;
	_Atomic uint32_t zombies;       /* retired streams, perhaps still running */
	struct ss_device_state dev[SS_MAX_DEVICES];
	int devices;

	pthread_mutex_t meta;
	struct ss_block **chunks;       /* block descriptors, 4096 at a time */
	uint32_t chunk_count;
	struct ss_block *spare_blocks;
	struct ss_segment *spare_segments;
	_Atomic(_Atomic(struct ss_segment *) *) *frames; /* radix root */
	_Atomic uint64_t host_bytes;
	_Atomic uint64_t next_queue_id;
	_Atomic uint64_t next_export;
	_Atomic uint64_t fences;
	_Atomic uint64_t driver_calls, driver_ns;
};

/* NULL: look again with the order lock held. (The link is what a timeline begins with.) */
static inline struct ss_timeline *ss_timeline_listed(struct ss_core *core, const void *native)
{
	return (struct ss_timeline *)ss_table_find(&core->by_handle, native);
}

/* Streams of dev that were destroyed and may still run. */
bool ss_zombies(struct ss_core *core, int dev);

static inline bool ss_eager(const struct ss_core *core)
{
	return atomic_load_explicit(&core->eager, memory_order_relaxed);
}

/* At a synchronization that succeeded. Where giving back waits for the device, there is
 * nothing to do unless it is idle. */
static inline void ss_keep_house(struct ss_core *core, int dev, bool idle)
{
	if (idle || ss_eager(core))
		/* What a destroyed stream still runs is waited for only by a
		 * device-wide wait. */
		ss_housekeep(core, dev, idle && !ss_zombies(core, dev));
}

void *ss_host_alloc(struct ss_core *core, size_t size); /* zeroed; counted */
void ss_host_free(struct ss_core *core, void *p, size_t size);

/* hit.c: bytes in use; see core/hit.h. */
uint64_t ss_pool_used(struct ss_pool *pool);
uint64_t ss_pool_used_high(struct ss_pool *pool);
void ss_pool_peak(struct ss_pool *pool);
/* The high-water mark starts again; `to_zero`: nothing is live either. */
void ss_pool_used_reset(struct ss_pool *pool, bool to_zero);

/* pool.c */
struct ss_pool *ss_pool_new(struct ss_core *core, int dev, bool classic, bool is_default);
/* Gives a destroyed pool's memory back once nothing of it is live. */
void ss_pool_reap(struct ss_pool *pool);
/* Forgets every range and segment; `give_back` also tells the driver. */
void ss_pool_drop_memory(struct ss_pool *pool, bool give_back);
/* Calls `each` for the pools of dev (-1: of all) with no lock held. */
void ss_pools_each(struct ss_core *core, int dev, void (*each)(struct ss_pool *, void *),
		   void *arg);
void ss_device_init(struct ss_core *core, int dev);

/* place.c: free ranges between queues, heaps and epochs. Pool lock held. */
void ss_place(struct ss_pool *pool, struct ss_block *b);
void ss_unplace(struct ss_pool *pool, struct ss_block *b);
bool ss_mark_done(struct ss_pool *pool, uint32_t slot, uint64_t n);
/* Empties the bins of one queue / of all into the heaps. */
void ss_flush(struct ss_pool *pool, struct ss_queue *q);
void ss_flush_large(struct ss_pool *pool, struct ss_queue *q, uint64_t size);
void ss_flush_new(struct ss_pool *pool, struct ss_queue *q, uint64_t size);
void ss_flush_all(struct ss_pool *pool);
/* What has completed becomes clean. */
void ss_settle(struct ss_pool *pool);
/* What X may use by event order or by the null stream's joins becomes X's. */
enum { SS_RULE_EVENT = 1, SS_RULE_IMPLICIT = 2 };
unsigned ss_absorb(struct ss_pool *pool, struct ss_timeline *x, const struct ss_row *row);
/* After a gate: what q's stream freed up to n becomes x's. */
bool ss_absorb_from(struct ss_pool *pool, struct ss_timeline *x, struct ss_queue *q, uint64_t n);
/* Marks b with everything the device's timelines have enqueued. False: host
 * memory is out (then b must not be reused). */
bool ss_epoch_mark(struct ss_pool *pool, struct ss_block *b);
/* Cuts `size` bytes at `align` out of the placed range b and returns them, not
 * placed. NULL: host memory is out. */
struct ss_block *ss_carve(struct ss_pool *pool, struct ss_block *b, uint64_t size,
			  uint64_t align);

/* join.c. Pool lock held. */
/* `size` bytes at `align` out of several ranges side by side that q's stream may
 * use, not placed. NULL: no such run, or host memory is out. */
struct ss_block *ss_join(struct ss_pool *pool, struct ss_queue *q, uint64_t size, uint64_t align);
/* The bytes right before / after b that the timeline in `slot` may use. */
uint64_t ss_join_before(const struct ss_block *b, uint32_t slot);
uint64_t ss_join_after(const struct ss_block *b, uint32_t slot);

/* slow.c. No lock held. Memory for x, whose queue is q, by whatever it takes (both
 * NULL: for nobody in particular); *id: what the block is to be called. */
enum ss_status ss_slow(struct ss_pool *pool, struct ss_queue *q, struct ss_timeline *x,
		       uint64_t size, uint64_t align, struct ss_block **out, uint64_t *id);

/* slab.c, and vmm.c below it. No lock held. ss_grow adds memory so that x (NULL:
 * nobody in particular) finds a run of `size` at `align`; with `give_back`, idle
 * memory may move or go back for it. */
enum ss_status ss_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
		       uint64_t align, bool give_back);
/* Would it be wasteful to cut `size` bytes off b, rather than to grow by them? */
bool ss_slab_wasteful(struct ss_pool *pool, const struct ss_block *b, uint64_t size);
/* Can the pool grow for `size` without a new peak? */
bool ss_slab_room(struct ss_pool *pool, uint64_t size, bool give_back);
/* Before the device is asked for `size` bytes. False: a cap forbids it. Given again
 * when the device gave none, or has them back. */
bool ss_cap_take(struct ss_pool *pool, uint64_t size);
void ss_cap_give(struct ss_pool *pool, uint64_t size);
void ss_account_reserved(struct ss_pool *pool, uint64_t size);
enum ss_status ss_vmm_grow(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
			   uint64_t align, bool remap);
uint64_t ss_vmm_release(struct ss_pool *pool, uint64_t target, uint64_t older_than);
/* The chunks behind b are in use. Pool lock held. */
void ss_vmm_touch(struct ss_pool *pool, const struct ss_block *b);
enum ss_status ss_vmm_access(struct ss_pool *pool, uint64_t peers);
void ss_vmm_drop(struct ss_pool *pool, bool give_back);
/* Gives idle memory back until `target` bytes are reserved, but only what has
 * been idle since `older_than` ms. Returns the bytes given back. */
uint64_t ss_release(struct ss_pool *pool, uint64_t target, uint64_t older_than);

enum ss_status ss_slab_add(struct ss_pool *pool, uint64_t size);

/* ipc.c. No lock held. An exported block that was freed: never again anybody's. */
void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b);
/* Gives segments back of which nothing is left but that. May wait for the device.
 * Returns the bytes given back. */
uint64_t ss_ipc_release(struct ss_pool *pool);
/* A block that is a segment of its own, in state QUEUED; NULL: not to be had. */
struct ss_block *ss_ipc_whole(struct ss_pool *pool, uint64_t request, uint64_t *id);

/* thrift.c. Pool lock held. Counts an allocation by q that was no hit, and the hits
 * before it. */
void ss_thrift_count(struct ss_pool *pool, struct ss_queue *q);
/* Calls of the driver that may be spent on a tighter fit; below 0: a debt. */
int64_t ss_thrift(struct ss_pool *pool);

/* oom.c: everything that can be tried when growing failed, in the order of the
 * design. SS_OK: try the allocation again. */
enum ss_status ss_oom(struct ss_pool *pool, struct ss_timeline *x, uint64_t size, unsigned step,
		      uint64_t *end);
void ss_oom_report(struct ss_pool *pool, uint64_t size);

/* Driver calls are timed for the statistics. */
uint64_t ss_drive_begin(struct ss_core *core);
void ss_drive_end(struct ss_core *core, uint64_t t0);
#define SS_DRIVE(core, call) __extension__({ \
	uint64_t ss_t0 = ss_drive_begin(core); \
	enum ss_status ss_s = (call); \
	ss_drive_end(core, ss_t0); \
	ss_s; })

#endif
