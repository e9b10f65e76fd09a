/* SPDX-License-Identifier: MIT */
/* Placement: sizes of segments, and when an idle one may be cut. No state, no lock. */
#include "core/pool/placement.h"

#include "core/base/rent.h"
#include "core/range/block.h"

#define SMALL (64ull << 20)  /* a pool of this size is not worth driver calls */
#define SHARED (4ull << 20)  /* blocks smaller than this share a segment */
/* No exchanges while the reserved peak exceeds the used peak by at most this part */
#define TIGHT 16
#define HARMLESS 80          /* percent of the used peak that segments in use may reach by a cut */
#define EXCHANGES 256        /* exchanges that every pool may make, */
#define PACE 32              /* requests for each further one; a loop makes few exchanges */
#define GOOD_PART 8          /* of the device: a rest that would be missed */

uint64_t ss_place_segment(uint64_t size)
{
	uint64_t blocks = SHARED / size;

	return ss_round((blocks ? blocks : 1) * size, SS_FRAME);
}

bool ss_place_fragments(const struct ss_view *v, uint64_t segment, uint64_t size)
{
	uint64_t others = ss_minus(v->device_reserved, v->reserved);
	uint64_t need = v->used_high + others, good = v->device / GOOD_PART;
	uint64_t spare = ss_minus(v->device, need) / 2;

	return !ss_without(SS_RENT_FRAGMENTS) && good > SMALL &&
	       v->reserved - v->idle + segment > v->used + size + ss_min(spare, good);
}

bool ss_place_cut(const struct ss_view *v, uint64_t segment, uint64_t size)
{
	if (v->used_high < SMALL || segment <= ss_place_segment(size) ||
	    ss_without(SS_RENT_EXCHANGE))
		return true;
	if (ss_place_fragments(v, segment, size))
		return false;
	if (v->reserved_high <= v->used_high + v->used_high / TIGHT && !ss_without(SS_RENT_TIGHT))
		return true;
	if (v->exchanges > EXCHANGES + v->requests / PACE && !ss_without(SS_RENT_PACE))
		return true;
	/* An idle segment that is cut cannot be released while the part is in use. That does no
	 * harm while the segments in use leave room below the peak. */
	return v->reserved - v->idle + segment <= v->used_high / 100 * HARMLESS &&
	       !ss_without(SS_RENT_HARMLESS);
}
