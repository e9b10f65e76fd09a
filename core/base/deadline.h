/* SPDX-License-Identifier: MIT */
/*
 * The end of a wait, by the clock and by a count. The clock alone is not enough: it stands still
 * under some tools that record and replay a program, or fake its time. A wait that sleeps counts
 * the units that it sleeps; a wait that only looks counts its looks.
 */
#ifndef SS_BASE_DEADLINE_H
#define SS_BASE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t ss_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct ss_deadline {
	uint64_t end;  /* by the clock of the caller, in its unit */
	uint64_t left; /* turns until then */
};

/* The wait may take `span` from `now` on, and so many turns. */
static inline struct ss_deadline ss_deadline_in(uint64_t now, uint64_t span, uint64_t turns)
{
	return (struct ss_deadline){now + span, turns};
}

/* The wait ends at `end`, and each unit of it that is slept is a turn. */
static inline struct ss_deadline ss_deadline_at(uint64_t now, uint64_t end)
{
	return (struct ss_deadline){end, end > now ? end - now : 0};
}

static inline bool ss_deadline_over(const struct ss_deadline *d, uint64_t now)
{
	return now >= d->end || !d->left;
}

/* Takes at most so many turns, and returns the number taken. For a wait that sleeps, that is the
 * time that it may sleep now. */
static inline uint64_t ss_deadline_take(struct ss_deadline *d, uint64_t turns)
{
	turns = turns < d->left ? turns : d->left;
	d->left -= turns;
	return turns;
}

#endif
