/* SPDX-License-Identifier: MIT */
/*
 * Placement as pure functions of a view of the pool: how large the next segment is, and whether
 * an idle segment may be cut. docs/placement.md says why. Best fit itself is in range/ and shelf/.
 */
#ifndef SS_POOL_PLACEMENT_H
#define SS_POOL_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Figures of one pool, in bytes and counts. */
struct ss_view {
	uint64_t used, used_high; /* without the block that is asked for */
	uint64_t reserved, reserved_high;
	uint64_t idle;            /* of segments that are idle from end to end */
	uint64_t requests;        /* so far, that were no hit of a stream's shelf */
	uint64_t exchanges;       /* so far, of idle segments for one of another size */
	uint64_t device;          /* the most that all pools may take of the device */
	uint64_t device_reserved; /* reserved by all pools of the device */
};

/* Bytes of the segment to add for a block of `size`: small blocks share one, large ones get what
 * they need. */
uint64_t ss_place_segment(uint64_t size);
/* May `size` bytes be cut off an idle segment of `segment` bytes, rather than to add a segment of
 * their own within the peak? */
bool ss_place_cut(const struct ss_view *v, uint64_t segment, uint64_t size);
/* After such a cut, could partly used segments hold memory that a program, which needs nearly
 * all of the device, wants in other sizes? */
bool ss_place_fragments(const struct ss_view *v, uint64_t segment, uint64_t size);

#endif
