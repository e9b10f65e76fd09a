/* SPDX-License-Identifier: MIT */
/*
 * Figures that the core hands out: who holds a device's memory when an allocation fails, counts and
 * sizes of pools and devices, and the list of live blocks. The rules of core/core.h hold here, too.
 */
#ifndef SS_CORE_STATISTICS_H
#define SS_CORE_STATISTICS_H

#include "core/core.h"

/* ---- out of memory ------------------------------------------------------ */

/* An allocation that failed. Sizes are bytes. */
struct ss_oom {
	int device;
	uint64_t size;     /* asked for */
	uint64_t max_size; /* of the pool; 0: none */
	bool refused;      /* the driver failed, and did not say that memory is short */
	/* A bit for each row of the ladder; 0: no row could have helped, since the request would
	 * not fit if all idle memory were released */
	uint64_t tried;
};
struct ss_oom_device {
	bool known; /* the driver said what is free */
	uint64_t free_bytes, total_bytes;
	uint64_t reserved;   /* by the pools of this process */
	uint64_t limit;      /* SOMASHIM_LIMIT; 0: none */
	uint64_t past_pools; /* taken by the process past the pools; counts for the limit */
	char cause[160];     /* a limit that the driver hit, as a sentence; "": none */
};
struct ss_oom_pool {
	const char *kind, *backing;
	uint64_t reserved, used, in_flight, completed, exported, largest_free;
};
struct ss_oom_visitor {
	void (*device)(const struct ss_oom_device *, void *);
	void (*stream)(void *native, uint64_t free_bytes, void *); /* of the pool that comes next */
	void (*pool)(const struct ss_oom_pool *, void *);          /* each with memory */
};
/* The holders of the memory of `dev`. Calls the driver. `stream` and `pool` are called with a lock
 * held, so they call nothing of the core. */
void ss_oom_visit(struct ss_core *core, int dev, const struct ss_oom_visitor *visitor, void *arg);

/* ---- statistics --------------------------------------------------------- */

#define SS_LADDER_ROWS 11

/* Counts since the pool was made; sizes in bytes. */
struct ss_pool_stats {
	int device;
	const char *kind; /* "default", "classic", "pool 3" */
	const char *backing;
	uint64_t allocations, frees, hits, misses;
	uint64_t reuse_same_stream, reuse_event, reuse_completed, reuse_internal, reuse_implicit;
	uint64_t waits; /* allocations that waited for pending frees */
	uint64_t segments, grown, released_bytes, remaps, trims;
	uint64_t reserved, reserved_high, used, used_high;
	/* Freed, and not yet seen to have completed on the device. As in the report of out of
	 * memory. A hint while other threads allocate. */
	uint64_t in_flight;
	uint64_t fences, busy_queries, driver_calls, driver_ns;
	/* The driver calls that take memory, release it, and map or open it */
	uint64_t memory_calls;
	uint64_t out_of_memory;
	/* Sums of ss_stats_total() only. Bytes that were taken from the device although a pool had
	 * had as much before, so they were released and taken again; and bytes of idle memory that
	 * were released because of their age, and because of a threshold. */
	uint64_t taken_again, decayed_bytes, excess_bytes;
	/* How often each row of the ladder found memory, or made some */
	uint64_t served[SS_LADDER_ROWS];
};
/* The memory of a device, as far as this process knows it. */
struct ss_device_stats {
	int device;
	const char *name;                  /* of the device */
	uint64_t total_bytes, limit;       /* limit 0: none */
	uint64_t ended_count;              /* pools that are no more, */
	const struct ss_pool_stats *ended; /* and the sums of their counts */
};
/* Either may be NULL. The strings live as long as the call. */
struct ss_stats_visitor {
	void (*device)(const struct ss_device_stats *, void *); /* each device in use */
	/* Each pool that holds or served something */
	void (*pool)(const struct ss_pool_stats *, void *);
};
/* All pools, then all devices. For the end of the process, or while no other thread is in the core:
 * calls no driver and waits for no lock of a pool. */
void ss_stats(struct ss_core *core, const struct ss_stats_visitor *visitor, void *arg);
/* The present figures, without waiting for another thread: false, and some calls may be missing, if
 * a lock was taken. Devices come first. Both functions are called with locks held, so they call
 * nothing of the core. The counts of hits may be those of a moment ago while other threads
 * allocate. Safe at exit. */
bool ss_stats_try(struct ss_core *core, const struct ss_stats_visitor *visitor, void *arg);
/* Name of a row of the ladder, i < SS_LADDER_ROWS. Static. */
const char *ss_ladder_row(unsigned i);
/* The sum over all pools, destroyed ones included. High marks are sums of the pools' high marks, so
 * they are upper bounds. Safe at exit: calls no driver. */
void ss_stats_total(struct ss_core *core, struct ss_pool_stats *out);
/* Bytes of a device that the runtime mapped for a pool, but neither lets it use nor takes back. No
 * pool has them reserved, but they count against the limit. */
uint64_t ss_set_aside(struct ss_core *core, int dev);
/* Bytes of host memory that the core uses for its own records. */
uint64_t ss_host_bytes(const struct ss_core *core);
/* Bytes of the longest free range that the pools of a device hold, completed or not. Takes the
 * locks of pools. */
uint64_t ss_largest_free(struct ss_core *core, int device);
/* A live block. Sizes are bytes. */
struct ss_block_entry {
	uint64_t address, size, rounded; /* as requested, and as it takes in the pool */
	uint64_t id;                     /* unique among all blocks ever handed out */
	void *stream; /* handle of the stream that it was allocated on; NULL for hipMalloc */
	int device;
	bool classic;      /* hipMalloc handed it out */
	uint64_t pool;     /* number of the pool, as in its name */
	bool default_pool; /* pool of hipMalloc or hipMallocAsync */
};
/* Copies all live blocks of the process. The blocks of one pool are those of one moment:
 * allocations from it wait meanwhile. The caller frees *out with free(). SIZE_MAX: host memory is
 * out. */
size_t ss_blocks_list(struct ss_core *core, struct ss_block_entry **out);
/* Checks the invariants of ranges, shelves and maps (for tests). Returns NULL, or a sentence that
 * says what is broken. No other thread may be in the core. */
const char *ss_check(struct ss_core *core);

#endif
