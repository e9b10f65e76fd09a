/* SPDX-License-Identifier: MIT */
/*
 * The device memory of one process at a moment of its trace: live blocks, freed blocks that are
 * still in flight, mapped memory, and the sums per device and pool. Events move it forward. Not
 * thread safe.
 */
#ifndef SS_ANALYSIS_TRACE_MEMORY_H
#define SS_ANALYSIS_TRACE_MEMORY_H

#include "cli/analysis/ranges.h"
#include "cli/analysis/sites.h"
#include "trace/reader.h"

#define SS_NO_DEVICE 255  /* index of memory that belongs to no device */
#define SS_DEVICES 256

/* Bytes. free = reserved - used - in_flight. */
struct ss_level {
	uint64_t asked;     /* of live blocks, as the program asked for them */
	uint64_t used;      /* of live blocks, as they lie in the pool */
	uint64_t in_flight; /* of freed blocks that may not be reused by everybody yet */
	uint64_t reserved;  /* physical memory */
};

enum ss_change {
	SS_CHANGE_ALLOC,
	SS_CHANGE_FREE,
	SS_CHANGE_REUSABLE,  /* the block, or the first part of it, may be reused */
	SS_CHANGE_MAP,       /* physical memory came */
	SS_CHANGE_UNMAP,     /* ... and went */
	SS_CHANGE_IN_FLIGHT, /* a block was in flight when the recording begins */
};

/* Called after each change of the sums. `range` is valid during the call. An UNMAP may cover a part
 * of a mapped chunk; a segment is always unmapped as a whole. */
typedef void ss_trace_memory_watch(void *arg, enum ss_change change, const struct ss_range *range,
				   const struct ss_trace_item *e);

/* Memory of a device outside of the pools, by enum ss_trace_outside_kind, and the part of the
 * kernel's count that it does not explain. Bytes. */
struct ss_outside {
	uint64_t bytes[SS_TRACE_OUTSIDE_KINDS];
	/* The kernel's last count minus the memory of pools, arrays and the runtime at that time */
	uint64_t rest;
};

struct ss_trace_memory {
	const struct ss_trace_reader *reader;
	struct ss_ranges blocks, mapped;
	struct ss_level device[SS_DEVICES];
	struct ss_outside outside[SS_DEVICES];
	struct ss_level *pool; /* by number; SS_POOLS of them */
	const struct ss_sites *sites;
	ss_trace_memory_watch *watch; /* may be NULL */
	void *arg;
	uint64_t unknown_frees; /* of blocks whose allocation is not in the trace */
	/* Blocks whose addresses were allocated again without a free */
	uint64_t lost_frees;
	uint64_t reset_blocks; /* live blocks whose memory was released: a device reset */
};
#define SS_POOLS 65536

/* Starts without memory. `sites` has the call site of each block, and must stay valid. False: out
 * of memory. */
bool ss_trace_memory_init(struct ss_trace_memory *m, const struct ss_trace_reader *reader,
			  const struct ss_sites *sites, ss_trace_memory_watch *watch, void *arg);
void ss_trace_memory_finish(struct ss_trace_memory *m);
/* False: out of memory. */
bool ss_trace_memory_apply(struct ss_trace_memory *m, const struct ss_trace_item *e);
/* Index of the device that the event belongs to. */
uint8_t ss_trace_memory_device(const struct ss_trace_memory *m, const struct ss_trace_item *e);

static inline uint64_t ss_level_free(const struct ss_level *l)
{
	uint64_t taken = l->used + l->in_flight;

	return l->reserved > taken ? l->reserved - taken : 0;
}

#endif
