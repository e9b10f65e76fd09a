/* SPDX-License-Identifier: MIT */
/* Whole segments, and segments that the driver refused to take back. Only backing/ includes
 * this. */
#ifndef SS_BACKING_SEGMENT_H
#define SS_BACKING_SEGMENT_H

#include "core/backing/device_memory.h"

/* ---- segment.c ---------------------------------------------------------------- */

/* The memory's list of segments. Lock held. */
void ss_segment_link(struct ss_memory *m, struct ss_segment *seg);
void ss_segment_unlink(struct ss_memory *m, struct ss_segment *seg);

/* As ss_memory_grow, ss_memory_release and ss_memory_drop, on hip and hsa. No lock held.
 * ss_segments_release keeps at least `floor` bytes reserved. */
enum ss_status ss_segments_grow(struct ss_memory *m, const struct ss_growth *growth);
uint64_t ss_segments_release(struct ss_memory *m, uint64_t target, uint64_t floor,
			     uint64_t older_than);
void ss_segments_drop(struct ss_memory *m, enum ss_drop how);
/* As ss_memory_idle_since. Lock held. */
uint64_t ss_segments_idle_since(const struct ss_memory *m);
/* A new segment of `size` bytes, which is a completed range. No lock held. */
enum ss_status ss_segment_add(struct ss_memory *m, uint64_t size);
/* Makes a segment of the driver's memory, which was opened to `peers`: a completed range, or,
 * with a `chunk`, a guarded segment in state GAP. On failure the caller releases the memory. No
 * lock held. */
enum ss_status ss_segment_enter(struct ss_memory *m, void *native, uint64_t size, void *chunk,
				uint64_t peers, struct ss_segment **out);
/* Releases idle segments if `want` more bytes would raise the peak: as many as it takes, or all;
 * but none if the device would not have `need` bytes even then. No lock held. */
void ss_segments_make_room(struct ss_memory *m, uint64_t want, uint64_t need, bool all);
/* Would the device have `bytes` if all idle segments of the pool were released? No lock held. */
bool ss_segments_could_fit(struct ss_memory *m, uint64_t bytes);
/* Gives m->peers access to all segments. Lock held, but dropped for the driver. */
enum ss_status ss_segments_open(struct ss_memory *m);

/* ---- guard.c. No lock held. ------------------------------------------------------- */

/* As ss_memory_add_guarded. */
enum ss_status ss_guard_add(struct ss_memory *m, uint64_t bytes, struct ss_segment **out);
/* Releases the memory of a guarded segment, which was detached; its addresses stay reserved for
 * a while. If it fails, nothing has changed. */
enum ss_status ss_guard_return(struct ss_memory *m, void *va, uint64_t size, void *chunk);
/* Gives m->peers access to the segment. */
enum ss_status ss_guard_open(struct ss_memory *m, void *va, uint64_t size);

/* Unmaps all guarded segments, at the end of the process. */
void ss_guards_unmap(struct ss_memory *m);

/* ---- unreturned.c. No lock held. -------------------------------------------------- */

/* A record for a segment that may have to be kept. The record is made before the segment is
 * taken, and freed as soon as the segment is in use, or released. */
struct ss_unreturned {
	void *native;
	uint64_t size;
	struct ss_unreturned *next;
};
/* A kept segment of `size` bytes (0: of any size) and its record. It still counts against the
 * limit, but is no longer reserved. NULL: there is none. */
void *ss_unreturned_take(struct ss_memory *m, uint64_t size, struct ss_unreturned **u);
/* Keeps a segment without a call of the driver, which might wait for the device. */
void ss_unreturned_keep(struct ss_memory *m, struct ss_unreturned *u, void *native, uint64_t size);
/* Releases a segment to the driver, and keeps it if the driver refuses. False: it refused. */
bool ss_unreturned_return(struct ss_memory *m, struct ss_unreturned *u, void *native,
			  uint64_t size);
/* Releases all kept segments to the driver. Returns the bytes that were released. */
uint64_t ss_unreturned_retry(struct ss_memory *m);
void ss_unreturned_drop(struct ss_memory *m, bool to_driver);

#endif
