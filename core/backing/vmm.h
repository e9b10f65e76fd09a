/* SPDX-License-Identifier: MIT */
/*
 * The inside of a pool on virtual memory: one reservation of addresses, tiled by blocks like any
 * segment. Chunks of memory are mapped into it; addresses without memory are gaps. Only backing/
 * and core/vmm.c include this.
 */
#ifndef SS_BACKING_VMM_H
#define SS_BACKING_VMM_H

#include "core/backing/device_memory.h"

#define SS_CHUNK_MOST (64ull << 20)

struct ss_chunk {
	void *handle;
	uint64_t va, size; /* va: its present, last or first place */
	/* mapped, but no device has access yet; and the driver did not unmap it either */
	bool unopened, stays;
	bool asleep;           /* not mapped; without a handle: released, too */
	bool waking;           /* mapped again, and not yet opened */
	const char *exported;  /* the call by which others hold it: it never sleeps; NULL: none */
	uint64_t idle_since;   /* ms; 0: in use, or not seen idle yet */
	struct ss_chunk *next; /* in the lists of one operation */
};

/* Guarded by the memory's lock; the thread that has claimed the memory may read the frames
 * without it. */
struct ss_vmm {
	struct ss_segment *seg;
	uint64_t unit; /* of chunks: all sizes and addresses are multiples of it */
	struct ss_free_index gaps;
	struct ss_block *gap_list[SS_CLASSES];
	struct ss_chunk **frame; /* the chunk at each unit of the reservation */
	uint64_t end;            /* no frame from here on ever had a chunk */
	uint32_t chunks;
	bool aside;  /* memory that was set aside is still mapped in it */
	bool to_all; /* every device has access, and gets it to later memory */
	/* Retried later; changed under the lock by the thread that has claimed the memory. Chunks
	 * that the driver refused to release, by ->next. Gaps that it refused to map, open or
	 * unmap, by ->right: they are marked `exported`, which keeps them out of the index. */
	struct ss_chunk *unreleased;
	struct ss_block *stuck;
};

static inline struct ss_chunk **ss_frame_at(const struct ss_vmm *v, uint64_t va)
{
	return &v->frame[(va - v->seg->base) / v->unit];
}

/* The first chunk at frame *at or above; *at is then the frame after it. NULL: there is none. */
static inline struct ss_chunk *ss_chunk_next(const struct ss_vmm *v, uint64_t *at)
{
	while (*at < v->end) {
		struct ss_chunk *c = v->frame[*at];

		*at += c ? c->size / v->unit : 1;
		if (c)
			return c;
	}
	return NULL;
}

/* ---- ../vmm.c. No lock held. ------------------------------------------------------- */

/* As ss_memory_grow and ss_memory_release. If a pool gets no addresses, or no first chunk, grow
 * sets its backing to hip and returns SS_ERR_NOMEM. */
enum ss_status ss_vmm_grow(struct ss_memory *m, const struct ss_growth *growth);
uint64_t ss_vmm_short(struct ss_memory *m, const struct ss_growth *growth);
uint64_t ss_vmm_release(struct ss_memory *m, uint64_t target, uint64_t older_than);
/* Gives m->peers access to all mapped memory. The caller has claimed the memory. */
enum ss_status ss_vmm_open(struct ss_memory *m);

/* ---- reservation.c. Claimed, no lock held. --------------------------------------------- */

/* SS_ERR_NOMEM: there are no addresses. */
enum ss_status ss_reservation_new(struct ss_memory *m);
/* Does nothing if there is no reservation. `release`: chunks and addresses are released. */
void ss_reservation_end(struct ss_memory *m, bool release);

/* ---- gap.c. Lock held. ------------------------------------------------------------------ */

/* A run that is long enough once the first bytes of one gap have memory. */
struct ss_run {
	uint64_t size, align; /* requested, */
	uint32_t slot;        /* by a timeline whose own free ranges may be part of the run */
	uint64_t step;        /* missing bytes are rounded to this, as far as the gap reaches */
	struct ss_block *gap; /* found; NULL: there is no such run */
	uint64_t bytes;       /* missing, from the start of the gap */
	uint64_t from, to;    /* addresses of the run */
	bool more;            /* the run needs later gaps, too */
};

/* Finds the gap where the fewest bytes are missing; `lowest`: the lowest gap, which may be one of
 * several that a run needs. */
void ss_gap_find(struct ss_memory *m, struct ss_run *run, bool lowest);
/* The lowest gap that has something above it; NULL: none. */
struct ss_block *ss_gap_below(struct ss_memory *m);
/* b becomes a gap, and merges with the gaps beside it. */
void ss_gap_insert(struct ss_memory *m, struct ss_block *b);
/* Takes a gap out of the index, in state QUEUED. */
void ss_gap_take(struct ss_memory *m, struct ss_block *b);
/* The part of b after its first `size` bytes becomes a gap. Does nothing if b is not longer, or
 * host memory is out. */
void ss_gap_shorten(struct ss_memory *m, struct ss_block *b, uint64_t size);

/* ---- chunk.c. Claimed, no lock held. ------------------------------------------------------ */

/* Puts memory behind all of `target`, which is QUEUED: the chunks of the list, then new ones of
 * up to `unit` bytes. `target` becomes a completed range. On failure it becomes a gap again (or
 * a stuck one), and the chunks are released. If an unmap waits for more than a map does, chunks
 * that are mapped already stay, as a completed range or, if no stream can use them, stuck. */
enum ss_status ss_chunks_fill(struct ss_memory *m, struct ss_block *target, struct ss_chunk *list,
			      uint64_t unit);
/* Unmaps the chunk behind b, which is QUEUED: b becomes a gap, or completed again if the driver
 * refuses. */
enum ss_status ss_chunk_unmap(struct ss_memory *m, struct ss_block *b, struct ss_chunk *c);
/* Releases a chunk that is mapped nowhere. False: the driver refused, and the chunk is kept. */
bool ss_chunk_release(struct ss_memory *m, struct ss_chunk *c);
/* Does the pool have a chunk that it can use? */
bool ss_chunks_any_open(const struct ss_vmm *v);
/* Every mapped chunk stays mapped but no longer belongs to the pool: an unmap might wait. */
void ss_chunks_set_aside(struct ss_memory *m);
/* Gives the pool's devices access to [va, va + size), which is mapped. */
enum ss_status ss_chunks_open_range(struct ss_memory *m, uint64_t va, uint64_t size);
/* Gives the pool's devices access to every chunk. */
enum ss_status ss_chunks_open(struct ss_memory *m);
/* The same for all devices, once for the reservation. If access is accepted only without a gap
 * below, this must come before the first gap, since a device that is new later could not be
 * given access then. */
enum ss_status ss_chunks_open_to_all(struct ss_memory *m);
/* Retries calls that the driver refused, or that were not made. Mapped memory is unmapped if
 * that is allowed (`may_unmap`), else opened if possible; *opened: some became a completed
 * range. Returns the bytes that were released; 0 without a reservation. */
uint64_t ss_chunks_retry(struct ss_memory *m, bool may_unmap, bool *opened);
/* Unmaps and releases all chunks of v, but leaves the tables. */
void ss_chunks_unmap_all(struct ss_memory *m, const struct ss_vmm *v);
/* Ends all chunks of v, whose segment is forgotten already. */
void ss_chunks_end(struct ss_memory *m, struct ss_vmm *v, bool release);

/* ---- compact.c. Claimed, no lock held. ------------------------------------------------------ */

/* Takes idle chunks from completed ranges outside of the run until `want` bytes are gathered,
 * but no more than `target` holds, which is QUEUED. Returns the chunks unmapped; *got: their
 * bytes. */
struct ss_chunk *ss_chunks_gather(struct ss_memory *m, const struct ss_block *target,
				  const struct ss_run *run, uint64_t want, uint64_t *got);
/* Bytes of idle chunks in completed ranges outside of the run. Lock held. */
uint64_t ss_chunks_movable(struct ss_memory *m, const struct ss_run *run);
/* Releases chunks that have been idle since `older_than` ms, until `target` bytes are reserved;
 * `one`: one at most. Returns the bytes that were released. */
uint64_t ss_chunks_release(struct ss_memory *m, uint64_t target, uint64_t older_than, bool one);
/* Has all of the pool been idle since `older_than`? */
bool ss_chunks_all_idle(struct ss_memory *m, uint64_t older_than);
/* As ss_memory_idle_since. Lock held; need not be claimed. */
uint64_t ss_chunks_idle_since(struct ss_memory *m);

#endif
