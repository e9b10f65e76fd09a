/* SPDX-License-Identifier: MIT */
/*
 * One event, for event.c (which there are), record.c and wait.c (the watched calls).
 *
 * Every watched call is a pair round the real one. `begin` reads positions, so that
 * whatever is freed while the real call runs lies above them; `end` grants them
 * if the call succeeded. An event's clock is valid between the end of one record
 * and the begin of the next: a wait or query that overlaps a record, two records
 * that overlap each other, and records by calls that we cannot see leave the
 * event without a clock, and an event without a clock grants nothing.
 *
 * An event's record is found without a lock, and one word of its own says whether it
 * is locked and what is under way, so that streams that record and wait for events of
 * their own share nothing. A record writes the clock when it begins and shows it when
 * it ends: where nobody else has looked at the event meanwhile, both are one exchange.
 *
 * Locks: the bit LOCKED of an event, then timeline->lock; core->order for which events
 * there are. None is held across a driver call.
 */
#ifndef SOMASHIM_CORE_EVENT_H
#define SOMASHIM_CORE_EVENT_H

#include "core/internal.h"

/* Begin and end are inlined into the calls that do both, or the tokens would be half
 * of what a watched call costs. */
#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline, cold))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum event_state {
	LOCKED = 1,    /* whoever holds it may change all but the key */
	NO_CLOCK = 2,
	STICKY = 4,    /* it never has one again */
	OVERLAP = 8,   /* records overlapped: the order is unknown until they have ended */
	INFLIGHT = 16, /* and above: records between begin and end */
};

/* Recycled, never freed; what may be read of one that is gone is its key, its state and
 * its generation. */
struct ss_event {
	struct ss_link link;
	_Atomic uint32_t state;  /* 0: the clock is valid */
	uint32_t slot;           /* the clock: */
	uint64_t pos;            /* ... 0: none yet */
	uint64_t version;        /* of the row of `slot` that is copied here */
	struct ss_row *row;
	_Atomic uint64_t gen;    /* changes with every record, taint and rebirth */
	_Atomic uint64_t proved; /* the generation of which the host knows all */
	struct ss_event *spare;
};

INLINE struct ss_event *ss_event_listed(struct ss_core *core, void *handle)
{
	return (struct ss_event *)ss_table_find(&core->events, handle);
}

struct ss_event *ss_event_find(struct ss_core *core, void *handle, bool make);

INLINE bool change(struct ss_event *e, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&e->state, &from, to,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Returns what the state was. */
uint32_t ss_event_lock(struct ss_event *e);

INLINE void ss_event_unlock(struct ss_event *e, uint32_t state)
{
	atomic_store_explicit(&e->state, state, memory_order_release);
}

INLINE bool is_still(const struct ss_event *e, const void *handle)
{
	return atomic_load_explicit(&e->link.key, memory_order_relaxed) == handle;
}

INLINE void next_gen(struct ss_event *e)
{
	atomic_store_explicit(&e->gen, atomic_load_explicit(&e->gen, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* No clock, until it is recorded again. Locked; returns the new state. */
uint32_t ss_clock_drop(struct ss_event *e, uint32_t state);

#endif
