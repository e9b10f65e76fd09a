/* SPDX-License-Identifier: MIT */
/*
 * Events: the watched calls that record them and wait for them.
 *
 * Every call is a pair round the real one. `begin` reads positions, so that
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
#include <stdlib.h>

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

/* ---- finding and locking ------------------------------------------------ */

static struct ss_event *event_listed(struct ss_core *core, void *handle)
{
	return (struct ss_event *)ss_table_find(&core->events, handle);
}

/* Order lock held. */
static struct ss_event *event_new(struct ss_core *core, void *handle)
{
	struct ss_event *e = core->spare_events;

	if (e)
		core->spare_events = e->spare;
	else
		e = ss_host_alloc(core, sizeof(*e));
	if (!e)
		return NULL;
	atomic_store(&e->state, atomic_load(&e->state) | NO_CLOCK);
	ss_table_add(&core->events, &e->link, handle);
	return e;
}

static struct ss_event *event_find(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e = event_listed(core, handle);

	if (likely(e != NULL))
		return e;
	pthread_mutex_lock(&core->order);
	e = event_listed(core, handle);
	if (!e && make)
		e = event_new(core, handle);
	pthread_mutex_unlock(&core->order);
	return e;
}

INLINE bool change(struct ss_event *e, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&e->state, &from, to,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Returns what the state was. */
RARE uint32_t event_lock(struct ss_event *e)
{
	for (unsigned i = 1;; i++) {
		uint32_t was = atomic_load_explicit(&e->state, memory_order_relaxed);

		if (!(was & LOCKED) && change(e, was, was | LOCKED))
			return was;
		if (i % 64 == 0)
			sched_yield();
	}
}

INLINE void event_unlock(struct ss_event *e, uint32_t state)
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
static uint32_t clock_drop(struct ss_event *e, uint32_t state)
{
	e->pos = 0;
	next_gen(e);
	return state | NO_CLOCK;
}

/* Nothing of an earlier life; but a record of that which has not ended yet leaves this
 * one without a clock until then. */
static uint32_t rebirth(struct ss_event *e, uint32_t state)
{
	state = clock_drop(e, state) & ~(uint32_t)STICKY;
	return state >= INFLIGHT ? state | OVERLAP : state;
}

void ss_event_add(struct ss_core *core, void *event)
{
	struct ss_event *e = event_find(core, event, true);

	if (e && !SS_MUTANT_IS(23))
		event_unlock(e, rebirth(e, event_lock(e)));
}

/* Order lock held. */
static void unlist(struct ss_core *core, struct ss_event *e)
{
	uint32_t state = rebirth(e, event_lock(e));

	ss_table_remove(&core->events, &e->link);
	event_unlock(e, state);
	e->spare = core->spare_events;
	core->spare_events = e;
}

void ss_event_forget(struct ss_core *core, void *event)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_listed(core, event);
	if (e && !SS_MUTANT_IS(23))
		unlist(core, e);
	pthread_mutex_unlock(&core->order);
}

void ss_event_taint(struct ss_core *core, void *event, bool sticky)
{
	struct ss_event *e = SS_MUTANT_IS(21) ? NULL : event_find(core, event, true);
	uint32_t state;

	if (!e)
		return;
	state = clock_drop(e, event_lock(e));
	event_unlock(e, sticky ? state | STICKY : state);
}

void ss_event_finish_all(struct ss_core *core)
{
	struct ss_event *e;

	while ((e = (struct ss_event *)ss_table_any(&core->events)))
		unlist(core, e);
	while ((e = core->spare_events)) {
		core->spare_events = e->spare;
		ss_row_put(e->row);
		ss_host_free(core, e, sizeof(*e));
	}
	ss_table_finish(&core->events);
}

/* ---- record ------------------------------------------------------------- */

/* The row of tl. Event locked. */
static __attribute__((noinline)) void row_read(struct ss_event *e, struct ss_timeline *tl)
{
	ss_spin_lock(&tl->lock);
	e->slot = tl->slot;
	/* None has the version 0. */
	e->version = ss_row_copy(&e->row, tl) ? ss_version(tl) : 0;
	ss_spin_unlock(&tl->lock);
}

/* Where tl is now, and what it has seen. Event locked. */
INLINE void clock_read(struct ss_event *e, struct ss_timeline *tl)
{
	next_gen(e);
	e->pos = ss_position(tl);
	if (unlikely(e->version != ss_version(tl)))
		row_read(e, tl);
}

/* The number of the command under way, see ss_cover_begin(). */
INLINE unsigned cover_begin(struct ss_timeline *tl)
{
	unsigned cover;

	if (tl->kind == SS_TL_NONBLOCKING ||
	    !atomic_load_explicit(&tl->uncovered, memory_order_relaxed))
		return 0;
	ss_spin_lock(&tl->lock);
	cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
	return cover;
}

/* Nobody else is at the event: which is what it says, and its end (below) likewise. */
INLINE bool begin_alone(struct ss_event *e, const void *event, struct ss_timeline *tl)
{
	if (unlikely(!change(e, 0, INFLIGHT | LOCKED)))
		return false;
	if (unlikely(!is_still(e, event))) {
		event_unlock(e, 0);
		return false;
	}
	clock_read(e, tl);
	event_unlock(e, INFLIGHT);
	return true;
}

INLINE bool end_alone(struct ss_event *e)
{
	return change(e, INFLIGHT, 0);
}

RARE void begin_beside(struct ss_event *e, const void *event, struct ss_timeline *tl)
{
	uint32_t state = event_lock(e);

	if (state >= INFLIGHT || !is_still(e, event))
		state |= OVERLAP;
	state = clock_drop(e, state);
	if (tl)
		clock_read(e, tl);
	event_unlock(e, state + INFLIGHT);
}

RARE void end_beside(struct ss_event *e, struct ss_timeline *tl, bool ok)
{
	uint32_t state = event_lock(e) - INFLIGHT;

	if (!ok || ((state & OVERLAP) && !SS_MUTANT_IS(20)))
		e->pos = 0;
	if (SS_MUTANT_IS(15) && e->pos)
		e->pos = ss_position(tl);
	if (state < INFLIGHT)
		state = (state & STICKY) | (e->pos ? 0 : NO_CLOCK);
	event_unlock(e, state);
}

/* What the application's command has done beside. */
INLINE void recorded(struct ss_core *core, struct ss_timeline *tl, unsigned cover, bool ok)
{
	if (cover && (ok || SS_MUTANT_IS(33)))
		ss_cover_end(tl, cover);
	/* It has just joined what a fence would join. */
	if (ok)
		ss_fence_serve(core, tl, SS_FENCE_JOINING);
}

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = event_find(core, event, true);
	struct ss_token t = {0};

	if (!e)
		return t;
	t.kind = SS_TOKEN_RECORD;
	t.a = e;
	if (tl && tl->alive && !tl->capturing)
		t.b = tl;
	if (!t.b || !begin_alone(e, event, t.b))
		begin_beside(e, event, t.b);
	if (t.b)
		t.cover = cover_begin(t.b);
	return t;
}

void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	if (t->kind != SS_TOKEN_RECORD)
		return;
	if ((!ok && !SS_MUTANT_IS(19)) || SS_MUTANT_IS(15) || !end_alone(t->a))
		end_beside(t->a, t->b, ok || SS_MUTANT_IS(19));
	if (t->b)
		recorded(core, t->b, t->cover, ok);
	t->kind = SS_TOKEN_NONE;
}

int ss_record(struct ss_core *core, void *event, void *native, const struct ss_record_call *call,
	      int *depth)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_event *e;
	unsigned cover;
	int err;

	if (unlikely(!tl))
		return call->long_way(event, native);
	e = event_listed(core, event);
	if (unlikely(!e))
		return call->long_way(event, native);
	if (unlikely(!begin_alone(e, event, tl)))
		return call->long_way(event, native);
	cover = cover_begin(tl);
	++*depth;
	err = call->real(event, native);
	--*depth;
	if (unlikely(err) || unlikely(!end_alone(e)))
		end_beside(e, tl, !err);
	recorded(core, tl, cover, !err);
	return err;
}

/* ---- wait, query, synchronize ------------------------------------------- */

RARE uint64_t clock_then(struct ss_event *e)
{
	uint32_t state = event_lock(e);
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_relaxed);

	event_unlock(e, state);
	return state ? 0 : gen;
}

/* The generation of a clock that is valid now; 0: there is none. The generation is read
 * first: a record that begins in between changes it. */
INLINE uint64_t clock_now(struct ss_event *e)
{
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_acquire);

	if (unlikely(atomic_load_explicit(&e->state, memory_order_acquire)))
		return clock_then(e);
	return gen;
}

/* Somebody is at the event, or was. */
RARE bool lock_beside(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	uint32_t state = event_lock(e);

	if ((!state && atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) ||
	    (SS_MUTANT_IS(16) && e->pos))
		if (!ss_distrusted(core) || SS_MUTANT_IS(36))
			return true;
	event_unlock(e, state);
	return false;
}

/* Is the clock the one that `begin` saw? True: the event is locked. */
INLINE bool lock_unchanged(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	if (unlikely(!change(e, 0, LOCKED)))
		return lock_beside(core, e, gen);
	if (likely(atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) &&
	    likely(!atomic_load_explicit(&core->distrust, memory_order_relaxed)))
		return true;
	event_unlock(e, 0);
	return (SS_MUTANT_IS(16) || SS_MUTANT_IS(36)) && lock_beside(core, e, gen);
}

INLINE struct ss_token event_begin(struct ss_core *core, void *event, int kind)
{
	struct ss_event *e = event_find(core, event, false);
	struct ss_token t = {0};

	if (e)
		t.gen = clock_now(e);
	t.a = e;
	t.kind = t.gen ? kind : SS_TOKEN_NONE;
	return t;
}

INLINE void wait_end(struct ss_core *core, struct ss_event *e, uint64_t gen,
		     struct ss_timeline *x)
{
	struct ss_timeline *s;

	if (!lock_unchanged(core, e, gen))
		return;
	s = SS_MUTANT_IS(2) || SS_MUTANT_IS(3) ? core->slots[e->slot] : NULL;
	ss_row_merge_into(x, SS_MUTANT_IS(3) ? s->saw : e->row, e->slot,
			  SS_MUTANT_IS(2) ? atomic_load(&s->now) : e->pos);
	if (SS_MUTANT_IS(43) && core->slots[e->slot]->kind == SS_TL_BLOCKING) {
		s = ss_timeline_null(core, x->dev);
		ss_row_merge_into(x, NULL, s->slot, atomic_load(&s->now));
	}
	event_unlock(e, 0);
}

struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = {0};

	if (!tl || tl->capturing)
		return t;
	t = event_begin(core, event, SS_TOKEN_WAIT);
	t.b = tl;
	return t;
}

void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	if (t->kind == SS_TOKEN_WAIT && (ok || SS_MUTANT_IS(19)))
		wait_end(core, t->a, t->gen, t->b);
	t->kind = SS_TOKEN_NONE;
}

int ss_wait(struct ss_core *core, void *native, void *event, unsigned flags,
	    const struct ss_wait_call *call, int *depth)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_event *e;
	uint64_t gen;
	int err;

	if (unlikely(!tl))
		return call->long_way(native, event, flags);
	e = event_listed(core, event);
	if (unlikely(!e))
		return call->long_way(native, event, flags);
	gen = clock_now(e);
	++*depth;
	err = call->real(native, event, flags);
	--*depth;
	if (likely(!err))
		wait_end(core, e, gen, tl);
	return err;
}

struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return event_begin(core, event, SS_TOKEN_EVENT);
}

/* Grants what the event proves. */
struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen,
				  uint64_t *pos)
{
	struct ss_timeline *tl;

	if (!lock_unchanged(core, e, gen))
		return NULL;
	tl = core->slots[e->slot];
	ss_complete(core, tl, e->pos, e->row, true);
	atomic_store_explicit(&e->proved, gen, memory_order_relaxed);
	*pos = e->pos;
	event_unlock(e, 0);
	return tl;
}

int ss_event_sync(struct ss_core *core, void *event, bool threshold,
		  const struct ss_sync_call *call, int *depth)
{
	struct ss_event *e = event_listed(core, event);
	struct ss_timeline *tl;
	uint64_t gen, pos;
	int err;

	if (unlikely(!e))
		return call->long_way(event);
	gen = clock_now(e);
	++*depth;
	err = call->real(event);
	--*depth;
	if (unlikely(err))
		return call->failed(err);
	/* The host knows already? Then nothing is left but the housekeeping. */
	if (!gen || (likely(atomic_load_explicit(&e->proved, memory_order_relaxed) == gen) &&
			    !threshold))
		return err;
	tl = ss_event_done(core, e, gen, &pos);
	if (threshold && tl)
		ss_keep_house(core, tl->dev, tl, pos, false);
	return err;
}
