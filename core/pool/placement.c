/* SPDX-License-Identifier: MIT */
/* Placement: sizes of segments, and when an idle one may be cut. No state, no lock. */
#include "core/pool/placement.h"

#include "core/range/block.h"

#define SMALL (64ull << 20)  /* a pool of this size is not worth driver calls */
#define SHARED (4ull << 20)  /* blocks smaller than this share a segment */
#define TIGHT 16             /* a peak that exceeds the used peak by this part of it needs no exchange */
#define HARMLESS 80          /* percent of the used peak that segments in use may reach by a cut */
#define MISSES 8             /* percent of allocations: a pool with more grows ahead, */
#define SEGMENT_AHEAD 64     /* by this part of itself (segments), */
#define CHUNKS_AHEAD 128     /* or this one (vmm) */
#define MANY_MISSES 10       /* percent: twice as far */
#define GOOD_PART 8          /* of a device: a rest that would be missed */

/* A `part`th of a pool that goes on growing; 0 for others. */
static uint64_t ahead(const struct ss_view *v, unsigned part)
{
	if (v->misses * 100 <= v->allocations * MISSES)
		return 0;
	return v->reserved / part * (v->misses * 100 > v->allocations * MANY_MISSES ? 2 : 1);
}

uint64_t ss_place_segment(const struct ss_view *v, uint64_t size)
{
	uint64_t more = ahead(v, SEGMENT_AHEAD), blocks = (more > SHARED ? more : SHARED) / size;

	/* A power of two of them, or blocks of twice the size would leave rests. */
	while (more > SHARED && blocks & (blocks - 1))
		blocks &= blocks - 1;
	return ss_round((blocks ? blocks : 1) * size, SS_FRAME);
}

uint64_t ss_place_ahead(const struct ss_view *v)
{
	return ahead(v, CHUNKS_AHEAD);
}

bool ss_place_cramps(const struct ss_view *v, uint64_t segment, uint64_t size)
{
	uint64_t others = v->device_reserved > v->reserved ? v->device_reserved - v->reserved : 0;
	uint64_t need = v->used_high + others, good = v->device / GOOD_PART;
	uint64_t spare = v->device > need ? (v->device - need) / 2 : 0;

	return good > SMALL && v->reserved - v->idle + segment >
				       v->used + size + (spare < good ? spare : good);
}

bool ss_place_cut(const struct ss_view *v, uint64_t segment, uint64_t size)
{
	if (v->used_high < SMALL || segment <= ss_place_segment(v, size))
		return true;
	if (ss_place_cramps(v, segment, size))
		return false;
	if (v->reserved_high <= v->used_high + v->used_high / TIGHT)
		return true;
	/* Only what is cut off it keeps an idle segment from going back. That does no harm while
	 * the segments in use leave room below the peak. */
	return v->reserved - v->idle + segment <= v->used_high / 100 * HARMLESS;
}
