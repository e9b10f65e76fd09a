/* SPDX-License-Identifier: MIT */
/*
 * Moments of a recording: an order in time of all changes to the figures of one pool.
 *
 * Without this lock, threads that change a figure at the same time might read their clocks in
 * another order than that of their changes, and the peaks in the file would differ from the peaks
 * that the pool reports. So while a recording runs, a change and its time are made under one lock.
 * The lock is held for as long as it takes to read a clock; the event is written after it.
 *
 * It is a spin lock, below all other locks.
 */
#ifndef SS_BASE_MOMENT_H
#define SS_BASE_MOMENT_H

#include "core/base/lock.h"
#include "trace/writer.h"

struct ss_moment {
	struct ss_spin lock;
	uint64_t last; /* ns */
};

/* Takes the lock. Returns a time, for an event, after all those that were returned before. */
static inline uint64_t ss_moment_begin(struct ss_moment *m)
{
	uint64_t now;

	ss_spin_lock(&m->lock);
	now = ss_trace_clock();
	m->last = now > m->last ? now : m->last + 1;
	return m->last;
}

static inline void ss_moment_end(struct ss_moment *m)
{
	ss_spin_unlock(&m->lock);
}

/* For an event that changes no figure. */
static inline uint64_t ss_moment_now(struct ss_moment *m)
{
	uint64_t now = ss_moment_begin(m);

	ss_moment_end(m);
	return now;
}

#endif
