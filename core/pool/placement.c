/* SPDX-License-Identifier: MIT */
/* Placement: sizes of segments, and when an idle one may be cut. No state, no lock. */
#include "core/pool/placement.h"

#include "core/range/block.h"

#define FREE_CALLS 10        /* driver calls that each new peak of used bytes may spend, */
#define ALLOCS_PER_CALL 22   /* and one more for so many allocations, */
#define MOST_EARNED 128      /* up to this: a program in a loop exchanges segments no more */
#define SMALL (64ull << 20)  /* a pool of this size is not worth driver calls */
#define SHARED (4ull << 20)  /* blocks smaller than this share a segment */
#define EXCHANGE 2           /* driver calls: one segment comes, another goes */
#define HARMLESS 88          /* percent of the peak that segments in use may reach by a cut; */
#define HARMLESS_LEAST 25    /* one less for each driver call that was saved up, down to this */
#define MISSES 8             /* percent of allocations: a pool with more grows ahead, */
#define SEGMENT_AHEAD 64     /* by this part of itself (segments), */
#define CHUNKS_AHEAD 128     /* or this one (vmm) */
#define MANY_MISSES 10       /* percent: twice as far */
#define GOOD_PART 8          /* of a device: a rest that would be missed */

int64_t ss_budget_left(struct ss_budget *b, uint64_t used_high, uint64_t calls)
{
	uint64_t earned;

	if (used_high > b->high) {
		b->high = used_high;
		b->calls_then = calls;
		b->allocations_then = b->allocations;
	}
	earned = (b->allocations - b->allocations_then) / ALLOCS_PER_CALL;
	return (int64_t)(FREE_CALLS + (earned < MOST_EARNED ? earned : MOST_EARNED)) -
	       (int64_t)(calls - b->calls_then);
}

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
	uint64_t busy = v->reserved - v->idle;
	int64_t percent = HARMLESS - (v->calls - EXCHANGE);

	if (v->used_high < SMALL || segment <= ss_place_segment(v, size))
		return true;
	if (ss_place_cramps(v, segment, size))
		return false;
	if (v->calls < EXCHANGE)
		return true;
	/* Only what is cut off it keeps an idle segment from going back. That does no harm while
	 * the segments in use leave room below the peak. */
	if (percent < HARMLESS_LEAST)
		percent = HARMLESS_LEAST;
	return busy + segment <= v->used_high / 100 * (uint64_t)percent;
}
