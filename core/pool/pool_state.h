/* SPDX-License-Identifier: MIT */
/*
 * A pool, and the pools of a core, as the files of this layer see them. The order of all locks is a
 * table in docs/architecture.md.
 */
#ifndef SS_POOL_POOL_STATE_H
#define SS_POOL_POOL_STATE_H

#include "core/backing/device_memory.h"
#include "core/base/table.h"
#include "core/shelf/shelf.h"
#include "core/pool/placement.h"
#include "core/statistics.h"

#define SS_POOL_GONE (1u << 31)
#define SS_HANDLE_TAG 0x5330000000000000ull /* no address: bits 48 to 63 are not canonical */

struct ss_pool {
	struct ss_memory mem; /* its lock is the pool's lock */
	struct ss_shelves shelves;
	/* A thread that remembers a pool that has ended reads these of the next pool. */
	atomic_bool classic, is_default;
	bool shared;              /* other processes may map all of it */
	atomic_bool counted;      /* its statistics were added to those of ended pools */
	atomic_bool dying;        /* destroyed; lives until its last block is freed */
	_Atomic uint32_t users;   /* pool_lifetime.c; or SS_POOL_GONE */
	_Atomic uint64_t readers; /* peers that asked to read only */
	atomic_bool follow, opportunistic, internal; /* the reuse attributes */
	_Atomic uint64_t threshold;
	atomic_bool threshold_set; /* by the program or by the environment */
	_Atomic uint64_t kept;     /* bytes freed, but another process may map them */
	/* Guarded by mem.lock: */
	struct { /* freed with a mark of ALL, the oldest first, by ->right */
		struct ss_block *oldest, *newest;
		_Atomic uint64_t bytes;
	} all;
	uint32_t next_asked;          /* slot of the stream that is queried first */
	_Atomic uint32_t next_polled; /* slot of the stream whose fences are polled first */
	bool trim_wanted;             /* a trim that must not wait was asked for: */
	uint64_t trim_keep;
	uint64_t ids, id_base;   /* of blocks that the ladder served */
	uint64_t wait_gap_us;    /* longest time between two completions, as recent waits saw it */
	struct ss_pool_stats st; /* counted by the ladder */
	struct ss_pool *next;    /* list of pools, or of spare ones */
	struct ss_link link;     /* by handle */
};

/* The failed waits of all pools (growth_wait.c). */
struct ss_waits {
	uint64_t begin_us, since;  /* the budget when the core began, and when that was (ms) */
	_Atomic uint64_t spent_us; /* in all */
	atomic_uint failed;        /* failures; each wait that helped takes one back */
};

struct ss_pools {
	struct ss_waits waits[2]; /* [0]: of hipMalloc, [1]: of streams */
	pthread_mutex_t lock;
	struct ss_pool *list;
	struct ss_table by_handle;
	uint64_t next_handle;
	_Atomic uint64_t next_export;
	_Atomic(ss_decay_waker *) wake; /* ss_decay_watch() */
	void *wake_arg;
	struct ss_device_pools {
		atomic_bool known;
		_Atomic(struct ss_pool *) def, classic, current;
		struct ss_pool *spare;  /* ended pools, to be recycled; lock */
		_Atomic uint64_t peers; /* devices with access to its classic memory */
		atomic_bool initial_done;
		_Atomic uint64_t settled; /* ranges that were seen to complete */
		/* ms: the earliest time at which a synchronization looks for old memory */
		_Atomic uint64_t next_look;
		atomic_bool looking;         /* a thread looks for old memory; guards `retries` */
		unsigned retries;            /* successive looks that left something overdue */
		_Atomic uint64_t asks_again; /* ms: when the watcher may ask the device; or 0 */
		atomic_bool synchronized;    /* since the last look, too early for another */
		_Atomic(struct ss_timeline *) busy; /* not idle at the last query */
		struct ss_pool_stats ended;         /* of pools that have ended; lock */
		uint64_t ended_count;
	} dev[SS_MAX_DEVICES];
};

/* Begins both budgets (growth_wait.c). */
void ss_waits_init(struct ss_core *core);

static inline struct ss_device_pools *ss_device_pools(struct ss_core *core, int dev)
{
	return &core->pools->dev[dev];
}

static inline struct ss_core *ss_core_of(const struct ss_pool *pool)
{
	return pool->mem.core;
}

/* The part of a pool's handle that counts pools. */
static inline uint64_t ss_pool_number(const struct ss_pool *pool)
{
	return (uintptr_t)pool->mem.handle & ~(~0ull << 48);
}

/* A number for a segment, never used twice. */
static inline uint64_t ss_serial_new(struct ss_core *core)
{
	return atomic_fetch_add(&core->pools->next_export, 1) + 1;
}

static inline void ss_pool_lock(struct ss_pool *pool)
{
	pthread_mutex_lock(&pool->mem.lock);
}

static inline void ss_pool_unlock(struct ss_pool *pool)
{
	pthread_mutex_unlock(&pool->mem.lock);
}

static inline uint64_t ss_reserved(const struct ss_pool *pool)
{
	return atomic_load(&pool->mem.reserved);
}

/* Has mark n of the timeline in `slot`, or of ALL, completed, as far as the pool may know? Only
 * ReuseAllowOpportunistic lets a pool use completion that our fences alone have shown. */
static inline bool ss_pool_mark_done(struct ss_pool *pool, uint32_t slot, uint64_t n)
{
	bool any = pool->classic ||
		   atomic_load_explicit(&pool->opportunistic, memory_order_relaxed);

	return slot == SS_SLOT_ALL ? ss_all_reached(pool->mem.core, pool->mem.dev, n, any) :
				     ss_mark_reached(pool->mem.core, slot, n, any);
}

/* ---- device.c ---------------------------------------------------------------- */

/* SOMASHIM_INITIAL: reserves at the first use of a device. No lock held. */
void ss_device_initial(struct ss_pool *pool);
/* Updates the hot path's view of the current pool. pools->lock held. */
void ss_device_current_changed(struct ss_core *core, int dev);

/* ---- lookup.c ------------------------------------------------------------------------------ */

/* The live block of seg that contains addr, and its start; NULL: none. The caller needs no lock
 * for a block that its own thread may free; for any other block it holds the pool's lock. */
struct ss_block *ss_live_at(const struct ss_core *core, struct ss_segment *seg, uint64_t addr,
			    uint64_t *start);
/* The segment that contains addr, with the lock of its pool held; NULL: the address is not ours,
 * and no lock is held. */
struct ss_segment *ss_segment_lock(const struct ss_core *core, uint64_t addr);

/* ---- pool_lifetime.c: no lock held --------------------------------------------- */

/* pools->lock held. NULL: host memory is out. */
struct ss_pool *ss_pool_new(struct ss_core *core, int dev, bool classic, bool is_default);
void ss_pool_free(struct ss_pool *pool);
/* Enters the pool, which stays the same pool until ss_pool_unref() (core.h). False: it has
 * ended. */
bool ss_pool_ref(struct ss_pool *pool);
/* Releases a destroyed pool's memory once none of it is live. A caller that has not entered the
 * pool may find that it has ended and was recycled: so only the pool's atomics and its core are
 * read before it is entered. */
void ss_pool_reap(struct ss_pool *pool);
/* The next pool of dev (-1: of any device) after `last`, or the first, entered; leaves `last`.
 * NULL: there are no more. */
struct ss_pool *ss_pool_next(struct ss_core *core, int dev, struct ss_pool *last);
/* All pools of dev (-1: of all devices), entered. The loop must run to its end. */
#define SS_POOLS_EACH(pool, core, dev) \
	for (struct ss_pool *pool = ss_pool_next(core, dev, NULL); pool; \
	     pool = ss_pool_next(core, dev, pool))

/* ---- stats.c ---------------------------------------------------------------------- */

/* "default", "classic" or, in `kind`, "pool 3". */
const char *ss_pool_kind(const struct ss_pool *pool, char kind[32]);
static inline void ss_raise(uint64_t *to, uint64_t n)
{
	if (*to < n)
		*to = n;
}
/* Adds the pool's counts to those of the ended pools, once in its life. */
void ss_stats_ended(struct ss_pool *pool);

#endif
