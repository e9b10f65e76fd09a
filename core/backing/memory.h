/* SPDX-License-Identifier: MIT */
/*
 * The memory of one pool: whole segments (hip, hsa), or one reservation of addresses with chunks
 * mapped into it (vmm); the completed free ranges in it; and how it grows and goes back.
 */
#ifndef SS_BACKING_MEMORY_H
#define SS_BACKING_MEMORY_H

#include <pthread.h>

#include "core/base/moment.h"
#include "core/base/state.h"
#include "core/range/address_map.h"
#include "core/range/free_index.h"

struct ss_vmm;
struct ss_unreturned;

struct ss_memory {
	struct ss_core *core;
	struct ss_pool *pool; /* whose it is; opaque here */
	void *handle;         /* of the pool */
	int dev;
	/* Changes only while there is no memory: to hip where vmm turns out not to work. */
	_Atomic(enum ss_backing) backing;
	atomic_bool dropped;        /* it grows no more */
	_Atomic uint64_t max_bytes; /* the pool's maxSize; 0: none */
	_Atomic uint64_t peers;     /* devices that have access, a bit each */
	_Atomic uint64_t reserved;  /* bytes taken from the device */
	_Atomic uint64_t reserved_high;
	struct ss_moment moment; /* of the pool's figures, while a recording runs */
	/* Bytes that a release threshold keeps when idle segments are exchanged for a new one; 0:
	 * none. The layer above sets it, to no more than a little above what was ever in use:
	 * segments of other sizes do not add up, and each exchange would leave the rest in the
	 * pool. */
	_Atomic uint64_t keep;

	pthread_mutex_t lock;
	struct ss_spares spares;
	struct ss_free_index completed; /* completed free ranges, usable by anybody */
	struct ss_block *completed_list[SS_CLASSES];
	struct ss_segment *segments;
	uint32_t segment_count;
	uint64_t idle_bytes; /* of completed ranges that are whole segments */
	/* Segments that went: their addresses may be others' now */
	_Atomic uint64_t forgotten;
	struct ss_unreturned *unreturned; /* segments that the driver would not take back */
	struct ss_vmm *vmm;               /* NULL: no reservation (yet) */
	_Atomic uint32_t guarded;         /* segments that are guarded (guard.c) */
	/* One thread at a time changes what is mapped (reservation.c). */
	bool mapping;
	atomic_bool sleeps; /* whoever has the turn has put the memory to sleep */
	atomic_bool reopen; /* what is mapped is to be opened to devices that are new */
	pthread_t mapper;
	pthread_cond_t mapped;
	/* Counts, under the lock: */
	uint64_t grown, released_bytes, moved; /* chunks moved */
	uint64_t exchanges;                    /* growths that idle segments made room for */

	/* Puts everything of the pool that has completed among the completed ranges, the asking
	 * stream's own included. Called and returns with the lock held. Set by the layer above,
	 * which may leave it NULL: there is nothing to gather then. */
	void (*gather)(struct ss_memory *m);
	/* Makes the runtime create the queue of the device's null stream. False: not now. Called
	 * with no lock held. Set by the layer above, or NULL. */
	bool (*wake_null)(struct ss_core *core, int dev);
};

/* m is zeroed before the first time, and may be set up again after ss_memory_drop. `backing` is
 * what was asked for (auto: the device's best); what this device cannot do becomes hip.
 * core->info[dev] is known. No lock held, and nobody else uses m. */
void ss_memory_init(struct ss_memory *m, struct ss_core *core, struct ss_pool *pool, int dev,
		    enum ss_backing backing);
/* The end of m, which was dropped. */
void ss_memory_finish(struct ss_memory *m);
/* What the driver gets back when memory is dropped. */
enum ss_drop {
	SS_DROP_FORGET,   /* nothing */
	SS_DROP_OUTLIVES, /* what a reset of the device does not take: all but segments of hip */
	SS_DROP_ALL
};
/* Forgets every segment and reservation, and the completed ranges. The caller has emptied every
 * other structure that holds blocks of it, and has claimed m or is alone with it. No lock held. */
void ss_memory_drop(struct ss_memory *m, enum ss_drop how);

/* Driver calls that take memory, give it back, and map or open it. No lock held. */
#define SS_DRIVE_MEMORY(m, cause, op, ...) \
	SS_DRIVE_FOR((m)->core, cause, (m)->dev, \
		     (m)->core->drv.op((m)->core->drv.ctx, (m)->dev, __VA_ARGS__))
#define SS_DRIVE_ALLOC(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_ALLOC, op, __VA_ARGS__)
#define SS_DRIVE_FREE(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_FREE, op, __VA_ARGS__)
#define SS_DRIVE_MAP(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_MAP, op, __VA_ARGS__)

/* ---- completed ranges: completed_range.c. Lock held. ---------------------- */

/* b, which nobody else holds, becomes a completed range, one with the completed ranges beside it.
 * The caller has set b->n: milliseconds since when it is idle at the latest, 0 if nobody ever had
 * it. */
void ss_completed_insert(struct ss_memory *m, struct ss_block *b);
void ss_completed_remove(struct ss_memory *m, struct ss_block *b);
/* Takes [start, start + size) out of the completed range b, in state QUEUED; the rest stays
 * completed. NULL: host memory is out and nothing changed. */
struct ss_block *ss_completed_cut(struct ss_memory *m, struct ss_block *b, uint64_t start,
				  uint64_t size);
/* The chunks behind b are in use from now on (vmm; otherwise nothing happens). */
void ss_memory_touch(struct ss_memory *m, const struct ss_block *b);

/* ---- growing ---------------------------------------------------------------- */

/* Did the driver refuse for a reason of its own? Want of memory is none, and what a capture
 * forbids, or a device that is gone, the application is to hear of as that. */
static inline bool ss_refused(enum ss_status s)
{
	return s != SS_OK && s != SS_ERR_NOMEM && s != SS_ERR_CAPTURE && s != SS_ERR_NO_DEVICE;
}

/* How much to grow by. */
struct ss_growth {
	uint64_t size, align; /* of the block that is missing */
	uint64_t segment;     /* hip, hsa: bytes of the new segment, at least size; 0: size */
	/* vmm: free ranges of this timeline (SS_SLOT_COMPLETED: none) count as part of the run that
	 * is completed */
	uint32_t slot;
	/* Somebody has waited for the device, so what is idle may go for later growth, too */
	bool waited;
	bool move; /* idle memory may go back (segments) or move (chunks) for it, since
	                       * nobody would have to wait */
};

/* Adds memory so that a run of growth->size at growth->align exists, which is completed but for the
 * ranges of growth->slot in it. SS_ERR_NOMEM: the device, the limit or maxSize has no room;
 * SS_ERR_FAILED: the driver refused; SS_ERR_NO_DEVICE: the device is being reset, or m was dropped.
 * Then nothing was added, but with `move` idle memory may have gone back. The caller looks again on
 * SS_OK: another thread may have been faster, or a run may need a second growth. No lock held. */
enum ss_status ss_memory_grow(struct ss_memory *m, const struct ss_growth *growth);
/* A segment of just this size for one block; idle memory makes room where nobody waits for
 * that (`free`). No lock held. */
enum ss_status ss_memory_add_whole(struct ss_memory *m, uint64_t size, bool free);

/* A guarded segment of at least `bytes`, which is one block in state GAP: where it ends, the device
 * faults (guard.c). SS_ERR_UNSUPPORTED: this device has no virtual memory. No lock held. */
enum ss_status ss_memory_add_guarded(struct ss_memory *m, uint64_t bytes, struct ss_segment **out);

/* How many bytes ss_memory_grow() would have to take from the device, if idle memory goes back or
 * moves for it. Lock held. */
uint64_t ss_memory_short(struct ss_memory *m, const struct ss_growth *growth);
/* Bytes of the free range b that could move once it has completed. Lock held. */
uint64_t ss_memory_movable(const struct ss_memory *m, const struct ss_block *b);

/* ---- giving back ------------------------------------------------------------ */

/* Has it virtual memory? */
static inline bool ss_memory_maps(const struct ss_memory *m)
{
	return m->backing == SS_BACKING_VMM || atomic_load(&m->guarded);
}

/* Does giving back wait for the device? */
static inline bool ss_release_waits(const struct ss_memory *m)
{
	const bool *waits = m->core->info[m->dev].release_waits;

	return waits[m->backing] || (atomic_load(&m->guarded) && waits[SS_BACKING_VMM]);
}

/* Releases completed memory until `target` bytes are reserved, but only what has been idle since
 * `older_than` ms (UINT64_MAX: all). By age a segment may go of which `target` needs a part.
 * Gathers first. Returns the bytes that were released. No lock held. */
uint64_t ss_memory_release(struct ss_memory *m, uint64_t target, uint64_t older_than);
/* Since when (ms) the completed memory has been idle that may go first; 0: none can go, since each
 * part that goes as a whole has something in it. Gathers nothing. No lock held. */
uint64_t ss_memory_idle_since(struct ss_memory *m);
/* Tries again what the driver would not take. Returns the bytes that went. No lock held. */
uint64_t ss_memory_retry(struct ss_memory *m);
/* Has the driver to take something back that nobody may use? It did not take it, or was not asked
 * to because that might have waited. Lock held. */
bool ss_memory_owes(const struct ss_memory *m);
/* How many bytes of idle whole segments may go to make room for `want` new ones: what m->keep
 * keeps stays. 0 on vmm, where chunks move instead. Lock held. */
uint64_t ss_memory_giveable(struct ss_memory *m, uint64_t want);

/* ---- one segment: segment.c. Lock held. --------------------------------------- */

/* Takes seg out of all tables, before the driver gets it back: afterwards its addresses may be
 * anybody's. No block of it is in an index or in anybody's hands. Its bytes are no longer reserved,
 * but count against the limit until ss_cap_give. Returns when, for ss_memory_record(). */
uint64_t ss_segment_detach(struct ss_memory *m, struct ss_segment *seg);
/* Gives the memory of a segment, which was detached, to the driver; `chunk` is seg->chunk. No lock
 * held. */
enum ss_status ss_segment_give(struct ss_memory *m, void *native, uint64_t size, void *chunk);
/* Memory of the driver becomes a segment, guarded if `chunk` is set, and counts as reserved; it is
 * one block in state GAP. *when: for ss_memory_record(). NULL: host memory is out. */
struct ss_segment *ss_segment_attach(struct ss_memory *m, void *native, uint64_t size, void *chunk,
				     uint64_t *when);
/* What became of memory at `base`, for a recording; `flags` are SS_TRACE_S_*. No lock held. */
static inline void ss_memory_record(struct ss_memory *m, uint64_t when, enum ss_trace_kind kind,
				    uint64_t base, uint64_t size, unsigned flags)
{
	ss_trace_segment_at(when, kind, (const void *)(uintptr_t)base, size, m->dev, m->handle,
			    flags);
}

/* ---- access by peers: no lock held ------------------------------------------ */

/* Devices in `give` get access to all present and later memory. Those in `take` get none to later
 * memory; what is mapped already may stay accessible to them. The owner always has access. On
 * failure those who had none before have none. */
enum ss_status ss_memory_set_access(struct ss_memory *m, uint64_t give, uint64_t take);

/* ---- sleep.c: claimed, no lock held ---------------------------------------------------- */

/* Is it an address of the memory's reservation? */
bool ss_memory_mapped_for(const struct ss_memory *m, uint64_t addr);
/* Unmaps and releases every chunk and keeps the tables. What the driver refuses stays. Returns the
 * bytes that went. *chunks: one more for each. */
uint64_t ss_memory_sleep(struct ss_memory *m, uint32_t *chunks);
/* Makes and maps them again, all or none. Their contents are anything. */
enum ss_status ss_memory_wake(struct ss_memory *m);

/* The process uses another device: what is mapped is opened to it, too. Waits no longer than a
 * second for a thread that changes what is mapped, which may itself wait for the device; that
 * thread then does it. False: it was refused, or is not done yet. No lock held. */
bool ss_memory_reopen(struct ss_memory *m);

/* ---- one thread changes what is mapped: reservation.c ------------------------ */

/* With `wait` it waits for its turn (*waited: it had to), but never for its own thread. False:
 * another thread has it. No lock held. */
bool ss_memory_claim(struct ss_memory *m, bool wait, bool *waited);
void ss_memory_unclaim(struct ss_memory *m);
/* The process ends: unmaps everything and stays claimed, so that nobody maps any more. */
void ss_memory_unmap_all(struct ss_memory *m);

#endif
