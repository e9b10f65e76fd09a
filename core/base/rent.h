/* SPDX-License-Identifier: MIT */
/*
 * Rules of the pools that can be switched off, one at a time, to measure the benefit of each
 * (scripts/rent.sh, docs/placement.md). In the library the test is a constant.
 */
#ifndef SS_BASE_RENT_H
#define SS_BASE_RENT_H

#include <stdbool.h>

enum ss_rent {
	SS_RENT_NONE,       /* a row of the ladder that stays */
	SS_RENT_ASK,        /* a row of the ladder: asking the streams */
	SS_RENT_EVENT,      /* a row: ranges that events order */
	SS_RENT_WAIT,       /* a row: waiting for the oldest frees */
	SS_RENT_WAIT_IDLE,  /* a wait for an idle device, if the release waits for that */
	SS_RENT_CUT,        /* a row: cutting an idle segment */
	SS_RENT_ADOPT,      /* completed ranges beside a stream's own become the stream's */
	SS_RENT_EXCHANGE,   /* an idle segment is not cut if another one fits better */
	SS_RENT_TIGHT,      /* ... but it is if the pool is not much larger than its use */
	SS_RENT_HARMLESS,   /* ... and if it keeps little from being released */
	SS_RENT_PACE,       /* ... and if the pool has exchanged too often */
	SS_RENT_FRAGMENTS,  /* an idle segment is not cut if that could lock up the device */
	SS_RENT_CUT_FREELY, /* after one idle segment was cut, hits cut those of its size */
	SS_RENT_MOVE,       /* memory moves, or makes room, before a pool grows */
};

#ifdef SS_RENT
/* The number in RENT_WITHOUT is the rule that is off. */
bool ss_without(enum ss_rent rule);
#else
static inline bool ss_without(enum ss_rent rule)
{
	(void)rule;
	return false;
}
#endif

#endif
