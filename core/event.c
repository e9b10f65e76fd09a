/* SPDX-License-Identifier: MIT */
/*
 * Events and host synchronization: the watched calls that grant order.
 *
 * Every call is a pair round the real one. `begin` reads positions, so that
 * whatever is freed while the real call runs lies above them; `end` grants them
 * if the call succeeded. An event's clock is valid between the end of one record
 * and the begin of the next: a wait or query that overlaps a record, two records
 * that overlap each other, and records by calls that we cannot see leave the
 * event without a clock, and an event without a clock grants nothing.
 *
 * An event's record is found without a lock and has one of its own, so that streams
 * that record and wait for events of their own share nothing.
 *
 * Locks: event->lock, then timeline->lock; core->order for which events there are. None
 * is held across a driver call.
 */
#include <stdlib.h>

#include "core/internal.h"

/* Begin and end are inlined into the calls that do both, or the tokens would be half
 * of what a watched call costs. */
#define INLINE static inline __attribute__((always_inline))

enum event_state {
	HAS_CLOCK = 1,
	PROVED = 2,   /* the host has been granted all that the clock says */
	STICKY = 4,   /* never has a clock */
	OVERLAP = 8,  /* two records at once: the order is unknown */
	INFLIGHT = 16 /* and above: records between begin and end */
};

/* Recycled, never freed; what may be read of one that is gone is its key and its
 * generation. */
struct ss_event {
	struct ss_link link;
	struct ss_spin lock;
	uint32_t state;
	uint64_t gen;      /* changes with every record, taint and rebirth */
	uint64_t born;     /* the first of this event at its handle */
	uint32_t slot;     /* the clock: */
	uint64_t pos;
	uint64_t version;  /* of the row of `slot` that is copied here */
	struct ss_row *row;
	struct ss_event *spare;
};

enum token_kind {
	TOKEN_NONE,
	TOKEN_RECORD,
	TOKEN_WAIT,
	TOKEN_EVENT,
	TOKEN_PROVED, /* an event of which the host knows everything already */
	TOKEN_STREAM,
	TOKEN_MANY,
};

/* What a TOKEN_MANY reaches (its gen). */
enum { SCOPE_STREAMS, SCOPE_JOINED /* no non-blocking streams */, SCOPE_DEVICE };

/* Several timelines at once: a device, or the null stream with all it joins. */
struct snapshot {
	uint64_t wide;  /* a real device-wide wait: position of the device's own count */
	uint32_t count;
	struct { struct ss_timeline *tl; uint64_t pos, version; unsigned cover; } at[];
};

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
	e->born = ++e->gen;
	ss_table_add(&core->events, &e->link, handle);
	return e;
}

static struct ss_event *event_find_slow(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_listed(core, handle);
	if (!e && make)
		e = event_new(core, handle);
	pthread_mutex_unlock(&core->order);
	return e;
}

/* Locked; NULL: unknown, or gone meanwhile. */
INLINE struct ss_event *event_lock(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e = event_listed(core, handle);

	if (__builtin_expect(!e, 0)) {
		e = event_find_slow(core, handle, make);
		if (!e)
			return NULL;
	}
	ss_spin_lock(&e->lock);
	if (__builtin_expect(atomic_load_explicit(&e->link.key, memory_order_relaxed) == handle,
			     1))
		return e;
	ss_spin_unlock(&e->lock);
	return NULL;
}

/* Whatever it was has no clock. Lock held. */
static void clock_drop(struct ss_event *e)
{
	e->state &= ~(uint32_t)(HAS_CLOCK | PROVED);
	e->gen++;
}

/* Nothing of an earlier life. Lock held. */
static void rebirth(struct ss_event *e)
{
	e->state = 0;
	e->born = ++e->gen;
}

void ss_event_add(struct ss_core *core, void *event)
{
	struct ss_event *e = event_lock(core, event, true);

	if (!e)
		return;
	if (!SS_MUTANT_IS(23))
		rebirth(e);
	ss_spin_unlock(&e->lock);
}

void ss_event_forget(struct ss_core *core, void *event)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_listed(core, event);
	if (e && !SS_MUTANT_IS(23)) {
		ss_spin_lock(&e->lock);
		rebirth(e);
		ss_table_remove(&core->events, &e->link);
		ss_spin_unlock(&e->lock);
		e->spare = core->spare_events;
		core->spare_events = e;
	}
	pthread_mutex_unlock(&core->order);
}

void ss_event_taint(struct ss_core *core, void *event, bool sticky)
{
	struct ss_event *e;

	if (SS_MUTANT_IS(21))
		return;
	e = event_lock(core, event, true);
	if (!e)
		return;
	clock_drop(e);
	e->state |= sticky ? STICKY : 0;
	ss_spin_unlock(&e->lock);
}

void ss_event_finish_all(struct ss_core *core)
{
	struct ss_buckets *b = atomic_load(&core->events.buckets);
	struct ss_event *e;

	for (size_t i = 0; i >> (64 - b->shift) == 0; i++)
		while ((e = (struct ss_event *)atomic_load(&b->head[i])))
			ss_event_forget(core, atomic_load(&e->link.key));
	while ((e = core->spare_events)) {
		core->spare_events = e->spare;
		ss_row_put(e->row);
		ss_host_free(core, e, sizeof(*e));
	}
	ss_table_finish(&core->events);
}

/* ---- record ------------------------------------------------------------- */

/* Where tl is now, and what it has seen. Event locked. */
INLINE void clock_read(struct ss_event *e, struct ss_timeline *tl)
{
	e->pos = ss_position(tl);
	if (__builtin_expect(e->slot == tl->slot && e->version == ss_version(tl), 1))
		return;
	ss_spin_lock(&tl->lock);
	e->slot = tl->slot;
	/* None has the version 0. */
	e->version = ss_row_copy(&e->row, tl) ? ss_version(tl) : 0;
	ss_spin_unlock(&tl->lock);
}

INLINE struct ss_token record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = event_lock(core, event, true);
	struct ss_token t = {0};

	if (__builtin_expect(!e, 0))
		return t;
	clock_drop(e);
	if (__builtin_expect(e->state >= INFLIGHT, 0))
		e->state |= OVERLAP;
	e->state += INFLIGHT;
	t.kind = TOKEN_RECORD;
	t.a = e;
	t.gen = e->gen;
	if (tl && tl->alive && !tl->capturing) {
		clock_read(e, tl);
		t.b = tl;
		if (tl->kind != SS_TL_NONBLOCKING && atomic_load(&tl->uncovered)) {
			ss_spin_lock(&tl->lock);
			t.cover = ss_cover_begin(tl);
			ss_spin_unlock(&tl->lock);
		}
	}
	ss_spin_unlock(&e->lock);
	return t;
}

INLINE void record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_timeline *tl = t->b;
	struct ss_event *e = t->a;

	if (t->kind != TOKEN_RECORD)
		return;
	ss_spin_lock(&e->lock);
	/* Destroyed meanwhile, and perhaps another event by now? */
	if (__builtin_expect(t->gen >= e->born, 1)) {
		e->state -= INFLIGHT;
		if (e->gen == t->gen && !(e->state & (SS_MUTANT_IS(20) ? STICKY : STICKY | OVERLAP)) &&
		    tl && (ok || SS_MUTANT_IS(19))) {
			e->state |= HAS_CLOCK;
			if (SS_MUTANT_IS(15))
				e->pos = ss_position(tl);
		}
		if (e->state < INFLIGHT)
			e->state &= ~(uint32_t)OVERLAP;
	}
	ss_spin_unlock(&e->lock);
	if (!tl)
		return;
	if (t->cover && (ok || SS_MUTANT_IS(33)))
		ss_cover_end(tl, t->cover);
	/* The application has just joined what a fence would join. */
	if (ok)
		ss_fence_serve(core, tl, SS_FENCE_JOINING);
}

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	return record_begin(core, event, tl);
}

void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	record_end(core, t, ok);
	t->kind = TOKEN_NONE;
}

int ss_record(struct ss_core *core, void *event, void *native, ss_real_record *real)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_token t;
	int err;

	if (__builtin_expect(!tl, 0))
		return SS_NOT_USUAL;
	t = record_begin(core, event, tl);
	err = real(event, native);
	record_end(core, &t, !err);
	return err;
}

/* ---- wait, query, synchronize ------------------------------------------- */

INLINE struct ss_token event_begin(struct ss_core *core, void *event, int kind)
{
	struct ss_event *e = event_lock(core, event, false);
	struct ss_token t = {0};

	if (__builtin_expect(!e, 0))
		return t;
	if ((e->state & HAS_CLOCK) && e->state < INFLIGHT) {
		t.kind = kind == TOKEN_EVENT && (e->state & PROVED) ? TOKEN_PROVED : kind;
		t.a = e;
		t.gen = e->gen;
		if (kind == TOKEN_EVENT)
			t.dev = core->slots[e->slot]->dev;
	}
	ss_spin_unlock(&e->lock);
	return t;
}

/* Is the clock the one that `begin` saw? Event locked. */
INLINE bool event_unchanged(struct ss_core *core, const struct ss_event *e, uint64_t gen)
{
	if (!(e->state & HAS_CLOCK) || (ss_distrusted(core) && !SS_MUTANT_IS(36)))
		return false;
	return (e->gen == gen && e->state < INFLIGHT) || SS_MUTANT_IS(16);
}

INLINE struct ss_token wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = {0};

	if (!tl || tl->capturing)
		return t;
	t = event_begin(core, event, TOKEN_WAIT);
	t.b = tl;
	return t;
}

INLINE void wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_event *e = t->a;

	if (t->kind != TOKEN_WAIT || (!ok && !SS_MUTANT_IS(19)))
		return;
	ss_spin_lock(&e->lock);
	if (event_unchanged(core, e, t->gen)) {
		struct ss_timeline *s = SS_MUTANT_IS(2) || SS_MUTANT_IS(3) ?
					core->slots[e->slot] : NULL;

		ss_row_merge_into(t->b, SS_MUTANT_IS(3) ? s->saw : e->row, e->slot,
				  SS_MUTANT_IS(2) ? atomic_load(&s->now) : e->pos);
	}
	ss_spin_unlock(&e->lock);
}

struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	return wait_begin(core, event, tl);
}

void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	wait_end(core, t, ok);
	t->kind = TOKEN_NONE;
}

int ss_wait(struct ss_core *core, void *native, void *event, unsigned flags, ss_real_wait *real)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_token t;
	int err;

	if (__builtin_expect(!tl, 0))
		return SS_NOT_USUAL;
	t = wait_begin(core, event, tl);
	err = real(native, event, flags);
	wait_end(core, &t, !err);
	return err;
}

struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return event_begin(core, event, TOKEN_EVENT);
}

/* One stream. What a wait for a blocking stream proves reaches only as far as a
 * command on it that we saw: only that command has joined the null stream. A null
 * stream that nobody joins has nothing to make up for: a marker of ours on it would
 * only be seen, as work in flight, by whoever asks. */
INLINE struct ss_token stream_begin(struct ss_core *core, struct ss_timeline *tl)
{
	bool alone = tl->kind == SS_TL_NONBLOCKING ||
		     (tl->kind == SS_TL_NULL && !ss_distrusted(core) &&
		      !atomic_load(&core->dev[tl->dev].joiners));
	struct ss_token t = {0};

	if (!alone)
		ss_timeline_cover(core, tl, SS_FENCE_JOINING);
	t.kind = TOKEN_STREAM;
	t.a = tl;
	t.n = alone || SS_MUTANT_IS(31) ?
	      ss_position(tl) : atomic_load(&tl->commanded);
	t.gen = ss_version(tl);
	t.dev = tl->dev;
	return t;
}

bool ss_stream_uncovered(const struct ss_timeline *tl)
{
	return tl && tl->kind != SS_TL_NONBLOCKING &&
	       atomic_load_explicit(&tl->uncovered, memory_order_relaxed);
}

struct ss_token ss_stream_query_begin(struct ss_core *core, struct ss_timeline *tl)
{
	return tl && tl->alive ? stream_begin(core, tl) : (struct ss_token){0};
}

struct ss_token ss_stream_sync_begin(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_token t = {0};

	if (!tl || !tl->alive)
		return t;
	if (tl->kind != SS_TL_NULL)
		return stream_begin(core, tl);
	t = ss_streams_sync_begin(core, tl->dev);
	t.gen = SCOPE_JOINED;
	return t;
}

static struct ss_token many_begin(struct ss_core *core, int dev, bool destroyed_too)
{
	struct ss_token t = {.dev = dev, .gen = destroyed_too ? SCOPE_DEVICE : SCOPE_STREAMS};
	struct snapshot *s;
	uint32_t count;

	/* The null timeline exists whether or not it was ever used. */
	if (!ss_timeline_null(core, dev))
		return t;
	pthread_mutex_lock(&core->order);
	count = core->slot_count;
	s = malloc(sizeof(*s) + count * sizeof(s->at[0]));
	if (s) {
		s->wide = destroyed_too ? atomic_fetch_add(&core->dev[dev].wide_now, 1) : 0;
		s->count = 0;
		for (uint32_t i = 0; i < count; i++) {
			struct ss_timeline *tl = core->slots[i];

			if ((tl->dev != dev && !SS_MUTANT_IS(27)) ||
			    (!tl->alive && !destroyed_too))
				continue;
			s->at[s->count].tl = tl;
			ss_spin_lock(&tl->lock);
			s->at[s->count].pos = ss_position(tl);
			s->at[s->count].version = ss_version(tl);
			s->at[s->count++].cover = ss_cover_begin(tl);
			ss_spin_unlock(&tl->lock);
		}
		t.kind = TOKEN_MANY;
		t.a = s;
	}
	pthread_mutex_unlock(&core->order);
	return t;
}

struct ss_token ss_device_sync_begin(struct ss_core *core, int dev)
{
	return many_begin(core, dev, true);
}

struct ss_token ss_streams_sync_begin(struct ss_core *core, int dev)
{
	return many_begin(core, dev, false);
}

bool ss_token_device_wide(const struct ss_token *t)
{
	return t->kind == TOKEN_MANY && t->gen == SCOPE_DEVICE;
}

/* Grants what a wait for many has proved. True: all that the token names is at its
 * end. */
static bool many_end(struct ss_core *core, struct snapshot *s, int dev, uint64_t scope, bool ok)
{
	/* Of streams that nobody saw, only a device-wide wait speaks. */
	bool idle = ok && (s->wide || !ss_distrusted(core));

	pthread_mutex_lock(&core->order);
	if (ok && s->wide > atomic_load(&core->dev[dev].wide_done))
		atomic_store(&core->dev[dev].wide_done, s->wide);
	for (uint32_t i = 0; i < s->count; i++) {
		struct ss_timeline *tl = s->at[i].tl;
		/* One that was destroyed meanwhile may have been left out. */
		bool covered = (scope != SCOPE_JOINED || SS_MUTANT_IS(38) ||
				tl->kind != SS_TL_NONBLOCKING) &&
			       (s->wide || tl->alive || SS_MUTANT_IS(34));

		idle &= covered || !tl->alive;
		if (!ok || !covered || tl->capturing)
			continue;
		ss_complete_seen(core, tl, SS_MUTANT_IS(22) ? ss_position(tl) : s->at[i].pos,
				 s->at[i].version, true);
		/* With the null stream and all it joins at their end, there is nothing
		 * left that a command would join. */
		ss_cover_end(tl, s->at[i].cover);
		if (atomic_load(&tl->commanded) < s->at[i].pos)
			atomic_store(&tl->commanded, s->at[i].pos);
	}
	pthread_mutex_unlock(&core->order);
	free(s);
	return idle;
}

/* The housekeeping of a synchronization that succeeded. Where giving back waits for
 * the device, there is none unless the device is idle. */
static inline void keep_house(struct ss_core *core, int dev, bool idle)
{
	if (idle || atomic_load_explicit(&core->dev[dev].eager, memory_order_relaxed))
		/* What a destroyed stream still runs is waited for only by a
		 * device-wide wait. */
		ss_housekeep(core, dev, idle && !ss_zombies(core, dev));
}

static void event_end(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	ss_spin_lock(&e->lock);
	if (event_unchanged(core, e, gen)) {
		ss_complete(core, core->slots[e->slot], e->pos, e->row, true);
		e->state |= PROVED;
	}
	ss_spin_unlock(&e->lock);
}

INLINE void sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	struct ss_timeline *tl = t->a;
	bool idle = false;

	ok |= SS_MUTANT_IS(19);
	if (t->kind == TOKEN_MANY)
		idle = many_end(core, t->a, t->dev, t->gen, ok);
	if (!ok || t->kind == TOKEN_NONE)
		return;
	if (t->kind == TOKEN_EVENT) {
		event_end(core, t->a, t->gen);
	} else if (t->kind == TOKEN_STREAM) {
		if (!tl->capturing)
			ss_complete_seen(core, tl, SS_MUTANT_IS(22) ? ss_position(tl) : t->n,
					 t->gen, true);
		/* Fences that this wait has proven are retired here, or a program
		 * that never misses would pile them up. */
		if (atomic_load_explicit(&tl->pending, memory_order_relaxed))
			ss_fence_poll(core, tl, -1);
	} else if (t->kind == TOKEN_MANY) {
		ss_fence_poll(core, NULL, t->dev);
	}
	if (threshold)
		keep_house(core, t->dev, idle);
}

void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	sync_end(core, t, ok, threshold);
	t->kind = TOKEN_NONE;
}

int ss_stream_sync(struct ss_core *core, void *native, ss_real_sync *real)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_token t;
	int err;

	if (__builtin_expect(!tl || !tl->alive, 0))
		return SS_NOT_USUAL;
	t = stream_begin(core, tl);
	err = real(native);
	sync_end(core, &t, !err, true);
	return err;
}

int ss_event_sync(struct ss_core *core, void *event, bool threshold, ss_real_sync *real)
{
	struct ss_token t = event_begin(core, event, TOKEN_EVENT);
	int err = real(event);

	sync_end(core, &t, !err, threshold);
	return err;
}
