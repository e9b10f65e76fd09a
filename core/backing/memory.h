/* SPDX-License-Identifier: MIT */
/*
 * The memory of one pool: whole segments (hip, hsa), or one reservation of addresses with chunks
 * mapped into it (vmm); the completed free ranges in it; growth and release.
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
	struct ss_pool *pool; /* its owner; opaque here */
	void *handle;         /* of the pool */
	int dev;
	/* Changes only while there is no memory: to hip if vmm turns out not to work. */
	_Atomic(enum ss_backing) backing;
	atomic_bool dropped;        /* it grows no more */
	_Atomic uint64_t max_bytes; /* the pool's maxSize; 0: none */
	_Atomic uint64_t peers;     /* devices that have access, a bit each */
	_Atomic uint64_t reserved;  /* bytes taken from the device */
	_Atomic uint64_t reserved_high;
	struct ss_moment moment; /* of the pool's figures, while a recording runs */
	/* Bytes that a release threshold keeps when idle segments are exchanged for a new one;
	 * 0: none. The layer above sets it to a little above the used peak at most: segments of
	 * other sizes do not add up, and each exchange would leave the rest in the pool. */
	_Atomic uint64_t keep;

	pthread_mutex_t lock;
	struct ss_spares spares;
	struct ss_free_index completed; /* completed free ranges, usable by any stream */
	struct ss_block *completed_list[SS_CLASSES];
	struct ss_segment *segments;
	uint32_t segment_count;
	uint64_t idle_bytes; /* of completed ranges that are whole segments */
	/* Number of segments that were released: their addresses may have other owners now */
	_Atomic uint64_t forgotten;
	struct ss_unreturned *unreturned; /* segments that the driver refused to take back */
	struct ss_vmm *vmm;               /* NULL: no reservation (yet) */
	_Atomic uint32_t guarded;         /* segments that are guarded (guard.c) */
	/* One thread at a time changes the mappings (reservation.c). */
	bool mapping;
	atomic_bool sleeps; /* the thread that claimed it has put the memory to sleep */
	atomic_bool reopen; /* mapped memory must be opened to new devices */
	pthread_t mapper;
	pthread_cond_t mapped;
	/* Counts, under the lock: */
	uint64_t grown, released_bytes, moved; /* chunks moved */
	uint64_t exchanges;                    /* growths for which idle segments made room */

	/* Moves all completed ranges of the pool's streams, the asking stream included, to the
	 * completed ranges. Called and returns with the lock held. Set by the layer above; NULL:
	 * there is nothing to gather. */
	void (*gather)(struct ss_memory *m);
	/* Makes the runtime create the queue of the device's null stream. False: not now. Called
	 * with no lock held. Set by the layer above, or NULL. */
	bool (*wake_null)(struct ss_core *core, int dev);
	/* Around maps that must wait for no stream: false, and nothing to end, if one would. Called
	 * with no lock held. Set by the layer above, or NULL: maps may wait. */
	bool (*map_begin)(struct ss_memory *m);
	void (*map_end)(struct ss_memory *m);
};

/* m is zeroed before the first call, and may be set up again after ss_memory_drop. `backing` is
 * the requested one (auto: the device's best); a backing that this device does not support
 * becomes hip. core->info[dev] is known. No lock held, and no other thread uses m. */
void ss_memory_init(struct ss_memory *m, struct ss_core *core, struct ss_pool *pool, int dev,
		    enum ss_backing backing);
/* Ends m, which was dropped. */
void ss_memory_finish(struct ss_memory *m);
/* The part of dropped memory that the driver gets back. */
enum ss_drop {
	SS_DROP_FORGET,   /* nothing */
	SS_DROP_OUTLIVES, /* memory that outlives a reset of the device: all but segments of hip */
	SS_DROP_ALL
};
/* Forgets every segment and reservation, and the completed ranges. The caller has emptied every
 * other structure that holds blocks of m, and has claimed m or is alone with it. No lock held. */
void ss_memory_drop(struct ss_memory *m, enum ss_drop how);

/* Driver calls that take memory, release it, and map or open it. No lock held. */
#define SS_DRIVE_MEMORY(m, cause, op, ...) \
	SS_DRIVE_FOR((m)->core, cause, (m)->dev, \
		     (m)->core->drv.op((m)->core->drv.ctx, (m)->dev, __VA_ARGS__))
#define SS_DRIVE_ALLOC(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_ALLOC, op, __VA_ARGS__)
#define SS_DRIVE_FREE(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_FREE, op, __VA_ARGS__)
#define SS_DRIVE_MAP(m, op, ...) SS_DRIVE_MEMORY(m, SS_TRACE_WAIT_DRIVER_MAP, op, __VA_ARGS__)

/* ---- completed ranges: completed_range.c. Lock held. ---------------------- */

/* b, which no other thread holds, becomes a completed range, and merges with the completed
 * ranges beside it. The caller has set b->n: the latest time in ms since when b is idle, 0 if b
 * never had an owner. */
void ss_completed_insert(struct ss_memory *m, struct ss_block *b);
void ss_completed_remove(struct ss_memory *m, struct ss_block *b);
/* Takes [start, start + size) out of the completed range b, in state QUEUED; the rest stays
 * completed. NULL: host memory is out and nothing changed. */
struct ss_block *ss_completed_cut(struct ss_memory *m, struct ss_block *b, uint64_t start,
				  uint64_t size);
/* The chunks behind b are in use from now on (vmm; otherwise nothing happens). */
void ss_memory_touch(struct ss_memory *m, const struct ss_block *b);

/* ---- growing ---------------------------------------------------------------- */

/* Did the driver refuse for a reason of its own? Out of memory is no such reason. Neither is an
 * error that the application has to see as it is: a capture forbids the call, a map would wait,
 * or the device is gone. */
static inline bool ss_refused(enum ss_status s)
{
	return s != SS_OK && s != SS_ERR_NOMEM && s != SS_ERR_CAPTURE && s != SS_ERR_WOULD_WAIT &&
	       s != SS_ERR_NO_DEVICE;
}

/* The size of a growth. */
struct ss_growth {
	uint64_t size, align; /* of the block that is missing */
	uint64_t segment;     /* hip, hsa: bytes of the new segment, at least size; 0: size */
	/* vmm: free ranges of this timeline (SS_SLOT_COMPLETED: none) count as completed parts
	 * of the run */
	uint32_t slot;
	/* The caller has waited for the device, so idle memory may be released for later growth,
	 * too */
	bool waited;
	/* Idle memory may be released (segments) or moved (chunks), since that needs no wait */
	bool move;
};

/* Adds memory so that a run of growth->size at growth->align exists, which is completed but for
 * the ranges of growth->slot in it. SS_ERR_NOMEM: the device, the limit or maxSize has no room;
 * SS_ERR_FAILED: the driver refused; SS_ERR_WOULD_WAIT: a map would wait, which this memory must
 * not (map_begin); SS_ERR_NO_DEVICE: the device is being reset, or m was
 * dropped. In these cases nothing was added, but with `move` idle memory may have been released.
 * On SS_OK the caller searches again: another thread may have taken the memory, or a run may
 * need a second growth. No lock held. */
enum ss_status ss_memory_grow(struct ss_memory *m, const struct ss_growth *growth);
/* A segment of just this size for one block; idle memory makes room if that needs no wait
 * (`free`). No lock held. */
enum ss_status ss_memory_add_whole(struct ss_memory *m, uint64_t size, bool free);

/* A guarded segment of at least `bytes`, which is one block in state GAP: the device faults
 * after its end (guard.c). SS_ERR_UNSUPPORTED: this device has no virtual memory. No lock held. */
enum ss_status ss_memory_add_guarded(struct ss_memory *m, uint64_t bytes, struct ss_segment **out);

/* The bytes that ss_memory_grow() would have to take from the device, if idle memory is released
 * or moved for it. Lock held. */
uint64_t ss_memory_short(struct ss_memory *m, const struct ss_growth *growth);
/* Bytes of the free range b that could move once it has completed. Lock held. */
uint64_t ss_memory_movable(const struct ss_memory *m, const struct ss_block *b);

/* ---- releasing -------------------------------------------------------------- */

/* Does the pool use virtual memory? */
static inline bool ss_memory_maps(const struct ss_memory *m)
{
	return m->backing == SS_BACKING_VMM || atomic_load(&m->guarded);
}

/* Does a release wait for the device? */
static inline bool ss_release_waits(const struct ss_memory *m)
{
	const bool *waits = m->core->info[m->dev].release_waits;

	return waits[atomic_load(&m->backing)] ||
	       (atomic_load(&m->guarded) && waits[SS_BACKING_VMM]);
}

/* Releases completed memory until `target` bytes are reserved, but only memory that has been
 * idle since `older_than` ms (UINT64_MAX: all). By age a segment may be released even if
 * `target` needs a part of it. Gathers first. Returns the bytes that were released. No lock
 * held. */
uint64_t ss_memory_release(struct ss_memory *m, uint64_t target, uint64_t older_than);
/* The time (ms) since when the oldest releasable memory has been idle; 0: nothing can be
 * released, since every part that is released as a whole has a live or pending block. Gathers
 * nothing. No lock held. */
uint64_t ss_memory_idle_since(struct ss_memory *m);
/* Retries releases that the driver refused. Returns the bytes that were released. No lock held. */
uint64_t ss_memory_retry(struct ss_memory *m);
/* Are there unusable bytes that the driver still has to take back? The driver refused them, or
 * was not asked because that might have waited. Lock held. */
bool ss_memory_owes(const struct ss_memory *m);
/* The bytes of idle whole segments that may be released to make room for `want` new ones, apart
 * from those that m->keep protects. 0 on vmm, where chunks move instead. Lock held. */
uint64_t ss_memory_releasable(struct ss_memory *m, uint64_t want);

/* ---- one segment: segment.c ----------------------------------------------------- */

/* The result of ss_segment_release(). */
enum ss_released {
	SS_RELEASED,
	SS_REFUSED, /* by the driver: the pool has the segment again */
	SS_LOST     /* by the driver, and host memory is out: the pool cannot keep it */
};
/* Releases a segment to the driver. No block of it is live, in an index, or held by a thread. If
 * the driver refuses, the segment is a completed range, or, if it was `exported`, one exported
 * block in state GAP with the serial number as before. Of an exported segment it is watched whether
 * the device gets the memory back. Lock held, but dropped meanwhile. */
enum ss_released ss_segment_release(struct ss_memory *m, struct ss_segment *seg, bool exported);
/* Records a change of memory at `base`; `flags` are SS_TRACE_S_*. No lock held. */
static inline void ss_memory_record(struct ss_memory *m, uint64_t when, enum ss_trace_kind kind,
				    uint64_t base, uint64_t size, unsigned flags)
{
	ss_trace_segment_at(when, kind, (const void *)(uintptr_t)base, size, m->dev, m->handle,
			    flags);
}

/* ---- access by peers: no lock held ------------------------------------------ */

/* Gives the devices in `give` access to all present and later memory. Those in `take` get no
 * access to later memory; present mappings may stay accessible to them. The owner always has
 * access. On failure devices that had no access before have none. No lock held. */
enum ss_status ss_memory_set_access(struct ss_memory *m, uint64_t give, uint64_t take);

/* ---- sleep.c: claimed, no lock held ---------------------------------------------------- */

/* Does the address belong to the memory's reservation? */
bool ss_memory_mapped_for(const struct ss_memory *m, uint64_t addr);
/* Chunks in [va, va + size) never sleep from now on, because of the call `by` (static text). False:
 * there are none. */
bool ss_memory_export(struct ss_memory *m, uint64_t va, uint64_t size, const char *by);
/* Bytes of chunks that never sleep; *by, unless there are none: the call for one of them. */
uint64_t ss_memory_exported(const struct ss_memory *m, const char **by);
/* The next part of [*va, end), which lies in the reservation, that can sleep: *va is moved to its
 * start. Returns its bytes; 0: there is none. */
uint64_t ss_memory_part(const struct ss_memory *m, uint64_t *va, uint64_t end);
/* Unmaps and releases every chunk and keeps the tables. Chunks that the driver refuses stay, and so
 * do those that never sleep. Released neighbours become one chunk of up to 64 MiB, so waking takes
 * fewer calls. Returns the bytes that were released. *chunks: one more for each. */
uint64_t ss_memory_sleep(struct ss_memory *m, uint32_t *chunks);
/* Makes and maps the chunks again, all or none. Their contents are undefined. */
enum ss_status ss_memory_wake(struct ss_memory *m);

/* The process uses another device: opens the mapped memory to it, too. Waits a second at most
 * for a thread that changes the mappings, which may itself wait for the device; that thread then
 * opens the memory. False: the driver refused, or the memory is not opened yet. No lock held. */
bool ss_memory_reopen(struct ss_memory *m);

/* ---- one thread changes the mappings: reservation.c -------------------------- */

/* Claims the memory. With `wait` it waits for its turn (*waited: it had to), but never for its
 * own thread. False: another thread has it. No lock held. */
bool ss_memory_claim(struct ss_memory *m, bool wait, bool *waited);
void ss_memory_unclaim(struct ss_memory *m);
/* The process ends: unmaps all memory and stays claimed, so that no thread maps any more. */
void ss_memory_unmap_all(struct ss_memory *m);

#endif
