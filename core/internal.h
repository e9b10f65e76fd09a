/* SPDX-License-Identifier: MIT */
/*
 * Shapes shared by the rooms of the core.
 *
 * Lock order (never the other way round, none across a driver call):
 *   pool->lock  ->  queue->lock (spin, biased)
 *   pool->lock  ->  core->order (which streams and events there are; fences)
 *   core->order ->  event->lock (spin)  ->  timeline->lock (spin)
 *   core->pools (the list of pools) before any pool->lock
 *   core->meta (block descriptors, segments of the address map) is a leaf
 */
#ifndef SS_CORE_INTERNAL_H
#define SS_CORE_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "core/block.h"
#include "core/core.h"
#include "core/hash.h"
#include "core/journal.h"
#include "core/lock.h"
#include "core/mutants.h"
#include "core/order.h"
#include "core/queue.h"
#include "core/table.h"

/* ---- pools: pool.c, alloc.c, slab.c, vmm.c ------------------------------ */

struct ss_queue_table {
	uint32_t cap;
	struct ss_queue_table *older;   /* readers may still be in it */
	_Atomic(struct ss_queue *) q[];
};

#define SS_POOL_GONE (1u << 31)

#define SS_PEAK_KINDS 64 /* sizes told apart at the peak */
#define SS_TURNS 64 /* blocks between being handed out and going */

struct ss_pool {
	struct ss_core *core;
	uint64_t handle;
	int dev;
	/* (Who remembers a pool that is gone reads these, and max_bytes, of the next.) */
	atomic_bool classic, is_default;
	bool shared;                    /* ss_pool_share */
	atomic_bool counted;            /* ss_stats_ended */
	atomic_bool dying;              /* destroyed; lives until its last block is freed */
	_Atomic uint32_t users;         /* lives.c; or SS_POOL_GONE, where nobody can be */
	/* Changes only while it has no memory (vmm.c). */
	_Atomic(enum ss_backing) backing;
	_Atomic uint64_t max_bytes;     /* 0: none */
	_Atomic uint64_t peers;         /* that have access, a bit each */
	_Atomic uint64_t readers;       /* of the peers, see ss_pool_set_readers */
	atomic_bool follow, opportunistic, internal;
	_Atomic uint64_t threshold;
	atomic_bool threshold_set;      /* by the program or by the environment */

	_Atomic(struct ss_queue_table *) queues;
	/* Used bytes (core/hit.h): the thread that counts alone, what it counted,
	 * and the high-water mark. Apart from what is read on every hit, as is what
	 * the slow path writes. */
	_Atomic uintptr_t counter;
	_Atomic uint64_t gone;          /* segments that were forgotten */
	_Alignas(64) struct ss_count alone;
	_Alignas(64) _Atomic uint64_t reserved;
	_Atomic uint64_t reserved_high;
	_Atomic uint64_t kept;          /* freed, but another process may map it */

	pthread_mutex_t lock;
	struct ss_spares spares;
	struct ss_heap clean;
	struct ss_queue *done;          /* bins of completed blocks (classic) */
	struct ss_epoch *epochs;
	struct ss_block *unmarked;      /* freed without host memory for an epoch; by ->right */
	struct ss_segment *segments;
	struct ss_unfreed *unfreed;     /* unfreed.c */
	struct ss_vmm *vmm;
	bool mapping;                   /* reserve.c: a thread changes what is mapped */
	pthread_t mapper;
	pthread_cond_t mapped;
	uint32_t segment_count;
	uint32_t queue_count;           /* of streams */
	uint32_t next_other;            /* whom a steady stream asks first for memory */
	uint32_t next_asked;            /* which stream is asked first how far it is */
	bool lags;                      /* a stream was not at its end when asked last */
	_Atomic uint64_t crossed;       /* blocks freed on another stream than they came from */
	uint64_t waited;                /* freed on other streams when they were asked last */
	uint64_t idle_bytes;            /* of segments that are free from end to end */
	struct {                        /* peak.c */
		struct ss_kind { uint64_t size, home; uint32_t count; } kind[SS_PEAK_KINDS];
		unsigned kinds;
		uint64_t used_high, allocs; /* when that was noted, */
		unsigned looked;        /* and at how many blocks that took */
	} peak;
	struct {                        /* turns.c */
		/* What was handed out of late, the first first. (Who reads a block here knows of
		 * its state only.) */
		struct ss_turn {
			const struct ss_block *block;
			const struct ss_segment *seg;
			uint64_t addr, size;
			unsigned passed; /* by so many that were younger */
		} line[SS_TURNS];
		unsigned count;
		unsigned run;           /* blocks that went in their turn less those that did not, of late */
		unsigned rests, left_out; /* allocations to leave out each time, and now */
		unsigned sizes;         /* that these are of: */
		double mean, variance;  /* bytes */
	} turns;
	/* thrift.c: what was spent on a tight fit, and since when */
	struct { uint64_t allocs, calls, used_high, allocs_then, calls_then; } spent;
	struct {                        /* patience.c */
		_Atomic uint64_t bytes; /* in epochs */
		struct ss_freer { uint64_t bytes, last; } by[SS_FREERS];
		uint64_t took;          /* ms that an epoch took of late */
		uint64_t completed;     /* epochs */
		unsigned failed, skip;  /* waits for nothing; so many to leave out now */
	} patience;
	bool trim_wanted;               /* a TrimTo that must not wait was asked for */
	uint64_t trim_keep;
	uint64_t ids, id_base;          /* of blocks that come from a heap */
	struct ss_pool_stats st;        /* what the slow path counts */
	struct ss_pool *next;           /* core's list */
	UT_hash_handle hh;
};

/* The pool's queues one after another: first (NULL, or pool->done to begin with that), then
 * what follows q. NULL: no more. One that comes meanwhile may be left out. */
static inline struct ss_queue *ss_queue_after(struct ss_pool *pool, const struct ss_queue *q)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	struct ss_queue *next = NULL;

	for (uint32_t i = q ? q->slot + 1 : 0; t && i < t->cap && !next; i++)
		next = atomic_load_explicit(&t->q[i], memory_order_acquire);
	return next;
}

struct ss_device_state {
	bool known;
	struct ss_device_info info;
	_Atomic(struct ss_pool *) def, classic;
	_Atomic(struct ss_pool *) current;
	struct ss_timeline *null;
	struct ss_pool *spare_pools;    /* core->pools */
	_Atomic uint64_t peers;         /* of its classic memory */
	uint64_t limit;                 /* bytes; 0 = none */
	_Atomic uint64_t reserved;      /* all pools */
	_Atomic uint64_t taken;         /* of the limit */
	atomic_bool initial_done;
	_Atomic uint64_t wide_now, wide_done; /* real device-wide waits */
	_Atomic uint32_t joiners;       /* live streams that join the null stream */
	_Atomic uint64_t settled;       /* ranges and epochs that were seen to be idle */
	struct ss_pool_stats ended;     /* of pools that are no more; core->pools */
	uint64_t ended_count;
	/* Threads that give memory back just now, and how often one did. */
	_Atomic uint32_t giving;
	_Atomic uint64_t gave;
	atomic_bool pressed;            /* near its limit: frees record their fence */
	atomic_bool woken;              /* the null stream has its queue (scarce.c) */
	atomic_bool low;                /* less free than the runtime may need for itself */
	/* keeps.c: times that given memory did not come back; when to doubt that, ms */
	_Atomic unsigned keeps;
	_Atomic uint64_t keeps_until, keeps_wait;
	/* The same of what was exported. */
	_Atomic unsigned pins;
	_Atomic uint64_t pins_until, pins_wait;
	/* house.c: what makes a synchronization look, and when else it does, ms */
	_Atomic uint64_t hurry;
	_Atomic uint64_t look;
};

struct ss_core {
	struct ss_driver drv;
	struct ss_options opt;
	struct ss_journal *journal;
	int journal_error;
	FILE *log;                      /* where reports go; NULL: nowhere */
	bool classic_odd;               /* hipMalloc has more to do than usual */
	uint64_t serial;                /* tells cores apart in thread-local caches */

	pthread_mutex_t order;
	struct ss_table by_handle, events;
	struct ss_event *spare_events;
	struct ss_timeline **slots;
	_Atomic uint32_t slot_count;
	uint32_t slot_cap;
	uint32_t slots_ended;           /* of streams that are no more; order lock */
	/* Grows when something ends that threads remember (core/thread.h): a handle that
	 * leaves the table, a device's current pool, its pressure, who counts alone. */
	_Atomic uint64_t recent_gen;
	const _Atomic int *shut;        /* see ss_hits_gate; or NULL */
	uint64_t lives;                 /* streams there ever were */
	_Atomic uint32_t capturing;     /* streams; changed with the order lock held */
	_Atomic uint32_t fences_pending;
	atomic_bool distrust;
	const char *distrust_why;
	atomic_bool hasty;              /* no allocation waits for what is in flight */
	_Atomic uint64_t visited;       /* devices that streams of others have worked with */

	pthread_mutex_t pools;
	struct ss_pool *pool_list, *pool_by_handle;
	uint64_t next_handle;
	_Atomic uint32_t zombies;       /* retired streams, perhaps still running */
	struct ss_device_state dev[SS_MAX_DEVICES];
	int devices;

	pthread_mutex_t meta;
	struct ss_block **chunks;       /* block descriptors, 4096 at a time */
	uint32_t chunk_count;
	struct ss_batch *whole;         /* batches (descriptor.c) that nobody has */
	struct ss_spares spares;        /* core->meta */
	struct ss_segment *spare_segments;
	_Atomic(_Atomic(struct ss_segment *) *) *frames; /* radix root */
	_Atomic uint64_t host_bytes;
	_Atomic uint64_t addresses;     /* in reservations (reserve.c) */
	_Atomic uint32_t handles;       /* chunks of all pools */
	_Atomic uint64_t next_queue_id;
	_Atomic uint64_t next_export;
	_Atomic uint64_t fences;
	_Atomic uint64_t driver_calls, driver_ns;
};

static inline void ss_recent_end(struct ss_core *core)
{
	atomic_fetch_add(&core->recent_gen, 1);
}

/* A device is near its limit, or no more. */
static inline void ss_pressed_set(struct ss_core *core, int dev, bool pressed)
{
	if (atomic_exchange(&core->dev[dev].pressed, pressed) != pressed)
		ss_recent_end(core);
}

/* NULL: look again with the order lock held. (The link is what a timeline begins with.) */
static inline struct ss_timeline *ss_timeline_listed(struct ss_core *core, const void *native)
{
	return (struct ss_timeline *)ss_table_find(&core->by_handle, native);
}

/* Streams of dev that were destroyed and may still run. */
bool ss_zombies(struct ss_core *core, int dev);

/* house.c: at a synchronization that succeeded, with tl at pos (NULL: with many); `idle`:
 * all of the device is at its end. */
void ss_keep_house_now(struct ss_core *core, int dev, struct ss_timeline *tl, uint64_t pos,
		       bool idle);
/* To read the clock costs as much as the rest of what a synchronization is made to do, so
 * within some milliseconds, in which little ages, it is only said how far tl was. */
#if defined(__x86_64__)
#define SS_NOTE_TICKS (1ull << 23)
#else
#define SS_NOTE_TICKS 0
#endif
/* Round what gives the pool's memory back: whoever finds none on the device meanwhile waits for
 * it (oom.c). */
static inline void ss_giving(const struct ss_pool *pool)
{
	atomic_fetch_add(&pool->core->dev[pool->dev].giving, 1);
}

static inline void ss_gave(const struct ss_pool *pool, uint64_t bytes)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];

	if (bytes)
		atomic_fetch_add(&d->gave, 1);
	atomic_fetch_sub(&d->giving, 1);
}

#define SS_HURRY_STRICT 1ull /* something is to go at any synchronization */
#define SS_HURRY_CLOCK 2ull  /* the clock is not the processor's, or nothing is kept at all */
#define SS_HURRY_BUSY 4ull   /* times slot + 1 of the stream that was not at its end last time */
static inline void ss_keep_house(struct ss_core *core, int dev, struct ss_timeline *tl,
				 uint64_t pos, bool idle)
{
	if (tl && !idle &&
	    ss_ticks() - atomic_load_explicit(&tl->noted_at, memory_order_relaxed) <
		    SS_NOTE_TICKS)
		atomic_store_explicit(&tl->noted[0].pos, pos, memory_order_relaxed);
	else if (atomic_load_explicit(&core->dev[dev].reserved, memory_order_relaxed))
		ss_keep_house_now(core, dev, tl, pos, idle);
}
/* Something of dev is to go at any synchronization, not only now and then. */
void ss_strict(struct ss_core *core, int dev);

void *ss_host_alloc(struct ss_core *core, size_t size); /* zeroed; counted */
void ss_host_free(struct ss_core *core, void *p, size_t size);

/* used.c: bytes in use; see core/hit.h. */
uint64_t ss_pool_used(struct ss_pool *pool);
uint64_t ss_pool_used_high(struct ss_pool *pool);
void ss_pool_peak(struct ss_pool *pool);
/* The high-water mark starts again; `to_zero`: nothing is live either. */
void ss_pool_used_reset(struct ss_pool *pool, bool to_zero);

/* pool.c */
struct ss_pool *ss_pool_new(struct ss_core *core, int dev, bool classic, bool is_default);
/* Forgets every range and segment; `give_back` also tells the driver. */
void ss_pool_drop_memory(struct ss_pool *pool, bool give_back);
void ss_device_init(struct ss_core *core, int dev);

/* lives.c. No lock held. A pool stays what it is from enter to leave. False: it is gone;
 * who has a live block of it, or core->pools and found it in a list, gets in. */
bool ss_pool_enter(struct ss_pool *pool);
void ss_pool_leave(struct ss_pool *pool);
/* Entered. NULL as ss_pool_current(). */
struct ss_pool *ss_pool_current_enter(struct ss_core *core, int dev);
/* Gives a destroyed pool's memory back once nothing of it is live. */
void ss_pool_reap(struct ss_pool *pool);
static inline bool ss_release_waits(const struct ss_pool *pool)
{
	return pool->core->dev[pool->dev].info.release_waits[pool->backing];
}
/* Memory of ours that hipDeviceReset does not take? */
static inline bool ss_pool_outlives(const struct ss_pool *pool)
{
	return pool->backing != SS_BACKING_HIP;
}
/* Calls `each` for the pools of dev (-1: of all), entered. */
void ss_pools_each(struct ss_core *core, int dev, void (*each)(struct ss_pool *, void *),
		   void *arg);

/* place.c: free ranges between queues, heaps and epochs. Pool lock held. */
void ss_place(struct ss_pool *pool, struct ss_block *b);
/* All of a list by ->left. */
void ss_place_all(struct ss_pool *pool, struct ss_block *list);
void ss_unplace(struct ss_pool *pool, struct ss_block *b);
/* The mark on `slot` of what a and b become together; what is clean has none. */
uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b, uint32_t slot);
bool ss_mark_done(struct ss_pool *pool, uint32_t slot, uint64_t n);
/* Empties the bins of one queue / of all into the heaps. */
void ss_flush(struct ss_pool *pool, struct ss_queue *q);
void ss_flush_large(struct ss_pool *pool, struct ss_queue *q, uint64_t size);
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
/* Cuts `size` bytes at `start` out of the placed range b and returns them, not
 * placed. NULL: host memory is out. */
struct ss_block *ss_carve(struct ss_pool *pool, struct ss_block *b, uint64_t size,
			  uint64_t start);

/* join.c. Pool lock held. */
/* `size` bytes at `align` out of several ranges side by side that q's stream may
 * use, not placed. NULL: no such run, or host memory is out. */
struct ss_block *ss_join(struct ss_pool *pool, struct ss_queue *q, uint64_t size, uint64_t align);
/* May that in `slot` take b (NULL: no) as it is? */
bool ss_joins(const struct ss_block *b, uint32_t slot);
/* The bytes right before b that the timeline in `slot` may use. */
uint64_t ss_join_before(const struct ss_block *b, uint32_t slot);

/* others.c. Pool lock held. Do other streams than mine's, or epochs, hold free memory? */
bool ss_others_hold(struct ss_pool *pool, const struct ss_queue *mine);
/* Asks q's stream whether it is at its end, where that puts nothing on the device; drops the
 * lock meanwhile. True: it is. */
bool ss_others_done(struct ss_pool *pool, struct ss_queue *q);
/* Records the fences that would make waiting memory usable; drops the lock meanwhile. True if
 * any was recorded, or a stream turned out to be at its end. */
bool ss_others_ask(struct ss_pool *pool, const struct ss_queue *mine);
/* Has so much been freed on other streams since they were asked last that it should be known
 * before idle segments are cut up? */
bool ss_others_freed_much(struct ss_pool *pool, struct ss_queue *mine);
/* Makes what other streams freed known, as far as it completed; drops the lock meanwhile. */
void ss_others_collect(struct ss_pool *pool, struct ss_queue *mine);

/* slow.c. No lock held. Memory for x, whose queue is q, by whatever it takes (both
 * NULL: for nobody in particular); *id: what the block is to be called. */
enum ss_status ss_slow(struct ss_pool *pool, struct ss_queue *q, struct ss_timeline *x,
		       uint64_t size, uint64_t align, struct ss_block **out, uint64_t *id);

/* scarce.c: what the runtime needs for itself. No lock held. */
/* Before the pool takes `more`: the null stream gets its queue while there is room for it. */
void ss_wake_null(struct ss_pool *pool, uint64_t more);
/* After it has grown: what is left of the device. */
void ss_look_left(struct ss_pool *pool);
/* Gives back, of what is idle, what the runtime lacks. */
void ss_relieve(struct ss_pool *pool);
static inline bool ss_device_low(struct ss_core *core, int dev)
{
	return __builtin_expect(atomic_load_explicit(&core->dev[dev].low, memory_order_relaxed), 0);
}

/* unfreed.c. No lock held. What stands for a segment that may have to be kept; NULL: host
 * memory is out. It is done with when the segment is in use, or is given back. */
struct ss_unfreed *ss_unfreed_new(struct ss_pool *pool);
void ss_unfreed_done(struct ss_pool *pool, struct ss_unfreed *u);
/* A segment that was kept, of `size` bytes (0: any), which count as taken but no longer as
 * reserved, and what stands for it. NULL: none. */
void *ss_unfreed_take(struct ss_pool *pool, uint64_t size, struct ss_unfreed **u);
/* Back to the driver; what it does not take is kept. False: it was not taken. */
bool ss_unfreed_give(struct ss_pool *pool, struct ss_unfreed *u, void *native, uint64_t size);
/* All that was kept back to the driver. Returns the bytes that went. */
uint64_t ss_unfreed_retry(struct ss_pool *pool);
void ss_unfreed_drop(struct ss_pool *pool, bool give_back);

/* ipc.c. No lock held. An exported block that was freed: never again anybody's. */
void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b);
/* Gives segments back of which nothing is left but that; `all`: even where the device is
 * seen to gain nothing by it. May wait for the device. Returns the bytes given back. */
uint64_t ss_ipc_release(struct ss_pool *pool, bool all);
/* A block that is a segment of its own, in state QUEUED; NULL: not to be had. */
/* Exported bytes that were freed and stay as long as what is live beside them. No lock held. */
uint64_t ss_ipc_pinned(struct ss_pool *pool);
struct ss_block *ss_ipc_whole(struct ss_pool *pool, uint64_t request, uint64_t align, uint64_t *id);

/* patience.c. Pool lock held: is it time to ask how far the streams are for the sake of
 * epochs? What was freed into e, and that all of it is free now. */
bool ss_epochs_due(struct ss_pool *pool);
void ss_patience_freed(struct ss_pool *pool, struct ss_epoch *e, uint64_t size);
void ss_patience_completed(struct ss_pool *pool, const struct ss_epoch *e);
/* No lock held. Waits, for a bounded time, where that is better than to allocate `size`
 * bytes now. True: it is worth looking again before the pool grows. *w: of this
 * allocation. */
struct ss_wait { uint64_t us, completed; unsigned fitted; bool over; };
bool ss_patience(struct ss_pool *pool, uint64_t size, uint64_t align, struct ss_wait *w);
/* A wait was for nothing: the next allocations do without. Pool lock held. */
void ss_patience_failed(struct ss_pool *pool);

/* oom.c: everything that can be tried when growing failed, in the order of the
 * design. SS_OK: try the allocation again. *l: of this allocation, first zero. */
struct ss_ladder {
	unsigned step;
	uint64_t end;       /* of waiting, ms */
	uint64_t settled;   /* of the device, when idle memory was given back last */
	uint64_t gave;      /* likewise */
	bool over;          /* then the time was */
};
/* Is the device found idle before `end` (ms)? Naps. No lock held. */
bool ss_idle_soon(struct ss_pool *pool, uint64_t end);
/* hipFree has not waited, so hipMalloc may: for a bounded time, and seldom where it was for
 * nothing. No lock held. */
bool ss_idle_at_last(struct ss_pool *pool);
enum ss_status ss_oom(struct ss_pool *pool, struct ss_timeline *x, uint64_t size,
		      struct ss_ladder *l);
/* Adds the pool's counts to those of the pools that are no more, once in its life. */
void ss_stats_ended(struct ss_pool *pool);
/* `refused`: the last try failed for another reason. */
void ss_oom_report(struct ss_pool *pool, uint64_t size, const struct ss_ladder *l, bool refused);

/* Driver calls are timed for the statistics. */
uint64_t ss_drive_begin(struct ss_core *core);
void ss_drive_end(struct ss_core *core, uint64_t t0);
#define SS_DRIVE(core, call) __extension__({ \
	uint64_t ss_t0 = ss_drive_begin(core); \
	enum ss_status ss_s = (call); \
	ss_drive_end(core, ss_t0); \
	ss_s; })

#endif
