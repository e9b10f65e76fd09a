/* SPDX-License-Identifier: MIT */
/*
 * One event: event.c has the table of events, watched.h the usual case of the watched calls.
 *
 * Every watched call is a pair around the real one. `begin` reads positions, so blocks that are
 * freed while the real call runs lie above them. `end` grants the positions if the call succeeded.
 * An event's clock is valid between the end of one record and the begin of the next. A wait or
 * query that overlaps a record, two records that overlap each other, and records by calls that the
 * shim cannot see leave the event without a clock, and an event without a clock grants nothing.
 *
 * An event is found without a lock, and one word of it says whether it is locked and which records
 * are in progress. So streams that record and wait for events of their own share nothing. A record
 * writes the clock when it begins and makes it valid when it ends. If no other thread has looked at
 * the event meanwhile, each of these is one compare-and-exchange.
 */
#ifndef SS_ORDER_EVENT_H
#define SS_ORDER_EVENT_H

#include "core/order/timeline.h"

enum event_state {
	SS_EVENT_LOCKED = 1, /* its holder may change everything but the key */
	SS_EVENT_NO_CLOCK = 2,
	SS_EVENT_STICKY = 4,    /* no clock any more: unseen records may come */
	SS_EVENT_OVERLAP = 8,   /* records overlapped: the order is unknown until all have ended */
	SS_EVENT_INFLIGHT = 16, /* one record in progress; the bits above count them */
};

/* Events are recycled, never freed. Of a forgotten one only the key, the state and the
 * generation may be read. */
struct ss_event {
	struct ss_link link;
	_Atomic uint32_t state;  /* 0: the clock is valid */
	uint32_t slot;           /* the clock: the timeline it was recorded on, */
	uint64_t pos;            /* the position there; 0: none yet */
	struct ss_clock *clock;  /* and what that timeline had seen of others */
	uint64_t version;        /* of `clock` */
	_Atomic uint64_t gen;    /* changes with every record, taint and new life */
	_Atomic uint64_t proved; /* the generation of which everything is synced */
	struct ss_event *spare;
};

/* NULL: unknown, or missed. To be sure, search again with the order lock held. */
SS_INLINE struct ss_event *ss_event_listed(struct ss_core *core, void *handle)
{
	struct ss_link *l = ss_table_find(&core->order->events, handle);

	return l ? ss_container_of(l, struct ss_event, link) : NULL;
}

/* The slow half of ss_event_find(). */
struct ss_event *ss_event_search(struct ss_core *core, void *handle, bool make);
/* `make`: adds an event that is not known. NULL: the event is unknown, or host memory is out. */
SS_INLINE struct ss_event *ss_event_find(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e = ss_event_listed(core, handle);

	return likely(e != NULL) ? e : ss_event_search(core, handle, make);
}

SS_INLINE bool ss_event_change(struct ss_event *e, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&e->state, &from, to, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Returns the state before. */
uint32_t ss_event_lock(struct ss_event *e);

SS_INLINE void ss_event_unlock(struct ss_event *e, uint32_t state)
{
	atomic_store_explicit(&e->state, state, memory_order_release);
}

/* Is e still the record of this handle? */
SS_INLINE bool ss_event_is_still(const struct ss_event *e, const void *handle)
{
	return atomic_load_explicit(&e->link.key, memory_order_relaxed) == handle;
}

/* Locked. */
SS_INLINE void ss_event_next_gen(struct ss_event *e)
{
	atomic_store_explicit(&e->gen, atomic_load_explicit(&e->gen, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* Has the host waited for generation `gen` before? */
SS_INLINE bool ss_event_synced(const struct ss_event *e, uint64_t gen)
{
	return atomic_load_explicit(&e->proved, memory_order_relaxed) == gen;
}

/* The event has no clock until it is recorded again. Locked; returns the new state. */
uint32_t ss_event_drop_clock(struct ss_event *e, uint32_t state);

#endif
