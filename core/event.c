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
 * Locks: core->order, never held across a driver call.
 */
#include <stdlib.h>

#include "core/internal.h"

struct ss_event {
	void *handle;
	uint64_t gen;      /* changes with every record, taint and rebirth */
	uint32_t inflight; /* records between begin and end */
	bool overlap;      /* two of them at once: the order is unknown */
	bool sticky, has_clock;
	uint32_t slot;
	uint64_t pos;
	struct ss_row *row;
	UT_hash_handle hh;
};

enum token_kind {
	TOKEN_NONE,
	TOKEN_RECORD,
	TOKEN_WAIT,
	TOKEN_EVENT,
	TOKEN_STREAM,
	TOKEN_MANY,
};

/* What a TOKEN_MANY reaches (its gen). */
enum { SCOPE_STREAMS, SCOPE_JOINED /* no non-blocking streams */, SCOPE_DEVICE };

/* Several timelines at once: a device, or the null stream with all it joins. */
struct snapshot {
	uint64_t wide;  /* a real device-wide wait: position of the device's own count */
	uint32_t count;
	struct { struct ss_timeline *tl; uint64_t pos; struct ss_row *row; unsigned cover; } at[];
};

static void clock_clear(struct ss_event *e)
{
	e->has_clock = false;
	ss_row_put(e->row);
	e->row = NULL;
}

static struct ss_event *event_find(struct ss_core *core, void *handle, bool make)
{
	struct ss_event *e;

	HASH_FIND_PTR(core->events, &handle, e);
	if (e || !make)
		return e;
	e = ss_host_alloc(core, sizeof(*e));
	if (!e)
		return NULL;
	e->handle = handle;
	e->gen = ++core->event_gen;
	HASH_ADD_PTR(core->events, handle, e);
	return e;
}

void ss_event_add(struct ss_core *core, void *event)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_find(core, event, true);
	if (e && !SS_MUTANT_IS(23)) {
		clock_clear(e);
		e->gen = ++core->event_gen;
		e->sticky = e->overlap = false;
		e->inflight = 0;
	}
	pthread_mutex_unlock(&core->order);
}

void ss_event_forget(struct ss_core *core, void *event)
{
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_find(core, event, false);
	if (e && !SS_MUTANT_IS(23)) {
		HASH_DEL(core->events, e);
		clock_clear(e);
		ss_host_free(core, e, sizeof(*e));
	}
	pthread_mutex_unlock(&core->order);
}

void ss_event_taint(struct ss_core *core, void *event, bool sticky)
{
	struct ss_event *e;

	if (SS_MUTANT_IS(21))
		return;
	pthread_mutex_lock(&core->order);
	e = event_find(core, event, true);
	if (e) {
		clock_clear(e);
		e->gen = ++core->event_gen;
		e->sticky |= sticky;
	}
	pthread_mutex_unlock(&core->order);
}

void ss_event_finish_all(struct ss_core *core)
{
	struct ss_event *e, *tmp;

	HASH_ITER(hh, core->events, e, tmp) {
		HASH_DEL(core->events, e);
		clock_clear(e);
		ss_host_free(core, e, sizeof(*e));
	}
}

/* ---- record ------------------------------------------------------------- */

struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = {0};
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_find(core, event, true);
	if (e) {
		e->overlap |= e->inflight > 0;
		e->inflight++;
		clock_clear(e);
		e->gen = ++core->event_gen;
		t.kind = TOKEN_RECORD;
		t.a = event;
		t.gen = e->gen;
		t.dev = -1;
		if (tl && tl->alive && !tl->capturing) {
			t.dev = (int32_t)tl->slot;
			t.n = ss_position(tl);
			t.b = ss_row_get_ref(tl);
			t.cover = ss_cover_begin(tl);
		}
	}
	pthread_mutex_unlock(&core->order);
	return t;
}

void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_event *e;

	if (t->kind != TOKEN_RECORD)
		return;
	pthread_mutex_lock(&core->order);
	e = event_find(core, t->a, false);
	/* A generation of its own tells a reborn event from the one we began. */
	if (e && e->inflight)
		e->inflight--;
	if (e && e->gen == t->gen && (!e->overlap || SS_MUTANT_IS(20)) && !e->sticky &&
	    t->dev >= 0 && (ok || SS_MUTANT_IS(19))) {
		e->has_clock = true;
		e->slot = (uint32_t)t->dev;
		e->pos = SS_MUTANT_IS(15) ? ss_position(core->slots[t->dev]) : t->n;
		e->row = t->b;
		t->b = NULL;
	}
	if (e && !e->inflight)
		e->overlap = false;
	if ((ok || SS_MUTANT_IS(33)) && t->dev >= 0)
		ss_cover_end(core->slots[t->dev], t->cover);
	pthread_mutex_unlock(&core->order);
	ss_row_put(t->b);
	t->kind = TOKEN_NONE;
	/* The application has just joined what a fence would join. */
	if (ok && t->dev >= 0)
		ss_fence_serve(core, core->slots[t->dev], SS_FENCE_JOINING);
}

/* ---- wait, query, synchronize ------------------------------------------- */

static struct ss_token event_begin(struct ss_core *core, void *event, int kind, uint32_t slot)
{
	struct ss_token t = {0};
	struct ss_event *e;

	pthread_mutex_lock(&core->order);
	e = event_find(core, event, false);
	if (e && e->has_clock && !e->inflight) {
		t.kind = kind;
		t.a = event;
		t.gen = e->gen;
		t.dev = (int32_t)slot;
	}
	pthread_mutex_unlock(&core->order);
	return t;
}

/* The event if its clock is the one that `begin` saw. Order lock held. */
static struct ss_event *event_unchanged(struct ss_core *core, const struct ss_token *t)
{
	struct ss_event *e = event_find(core, t->a, false);

	if (!e || !e->has_clock || (ss_distrusted(core) && !SS_MUTANT_IS(36)))
		return NULL;
	return (e->gen == t->gen && !e->inflight) || SS_MUTANT_IS(16) ? e : NULL;
}

struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	if (!tl || tl->capturing)
		return (struct ss_token){0};
	return event_begin(core, event, TOKEN_WAIT, tl->slot);
}

void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_event *e;

	if (t->kind != TOKEN_WAIT)
		return;
	pthread_mutex_lock(&core->order);
	e = ok || SS_MUTANT_IS(19) ? event_unchanged(core, t) : NULL;
	if (e) {
		struct ss_timeline *x = core->slots[t->dev], *s = core->slots[e->slot];

		ss_row_merge_into(x, SS_MUTANT_IS(3) ? s->saw : e->row, e->slot,
				  SS_MUTANT_IS(2) ? atomic_load(&s->now) : e->pos);
	}
	pthread_mutex_unlock(&core->order);
	t->kind = TOKEN_NONE;
}

struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return event_begin(core, event, TOKEN_EVENT, 0);
}

/* One stream. What a wait for a blocking stream proves reaches only as far as a
 * command on it that we saw: only that command has joined the null stream. A null
 * stream that nobody joins has nothing to make up for: a marker of ours on it would
 * only be seen, as work in flight, by whoever asks. */
static struct ss_token stream_begin(struct ss_core *core, struct ss_timeline *tl)
{
	bool alone = tl->kind == SS_TL_NONBLOCKING ||
		     (tl->kind == SS_TL_NULL && !ss_distrusted(core) &&
		      !atomic_load(&core->dev[tl->dev].joiners));
	struct ss_token t = {0};

	if (!alone)
		ss_timeline_cover(core, tl, SS_FENCE_JOINING);
	pthread_mutex_lock(&core->order);
	t.kind = TOKEN_STREAM;
	t.a = tl;
	t.n = alone || SS_MUTANT_IS(31) ?
	      ss_position(tl) : atomic_load(&tl->commanded);
	t.b = ss_row_get_ref(tl);
	t.dev = tl->dev;
	pthread_mutex_unlock(&core->order);
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
			s->at[s->count].pos = ss_position(tl);
			s->at[s->count].cover = ss_cover_begin(tl);
			s->at[s->count++].row = ss_row_get_ref(tl);
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

void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	struct snapshot *s = t->kind == TOKEN_MANY ? t->a : NULL;
	struct ss_event *e;
	bool idle = false;
	int dev = t->dev;

	pthread_mutex_lock(&core->order);
	ok |= SS_MUTANT_IS(19);
	switch (t->kind) {
	case TOKEN_EVENT:
		e = ok ? event_unchanged(core, t) : NULL;
		if (e) {
			dev = core->slots[e->slot]->dev;
			ss_complete(core, core->slots[e->slot], e->pos, e->row, true);
		}
		break;
	case TOKEN_STREAM:
		if (ok && !((struct ss_timeline *)t->a)->capturing) {
			struct ss_timeline *tl = t->a;

			ss_complete(core, tl, SS_MUTANT_IS(22) ? ss_position(tl) : t->n, t->b,
				    true);
		}
		break;
	case TOKEN_MANY:
		/* Of streams that nobody saw, only a device-wide wait speaks. */
		idle = ok && (s->wide || !ss_distrusted(core));
		if (ok && s->wide > atomic_load(&core->dev[dev].wide_done))
			atomic_store(&core->dev[dev].wide_done, s->wide);
		for (uint32_t i = 0; i < s->count; i++) {
			struct ss_timeline *tl = s->at[i].tl;
			/* One that was destroyed meanwhile may have been left out. */
			bool covered = (t->gen != SCOPE_JOINED || SS_MUTANT_IS(38) ||
					tl->kind != SS_TL_NONBLOCKING) &&
				       (s->wide || tl->alive || SS_MUTANT_IS(34));

			idle &= covered || !tl->alive;
			if (ok && covered && !tl->capturing) {
				ss_complete(core, tl,
					    SS_MUTANT_IS(22) ? ss_position(tl) : s->at[i].pos,
					    s->at[i].row, true);
				/* With the null stream and all it joins at their end,
				 * there is nothing left that a command would join. */
				ss_cover_end(tl, s->at[i].cover);
				if (atomic_load(&tl->commanded) < s->at[i].pos)
					atomic_store(&tl->commanded, s->at[i].pos);
			}
			ss_row_put(s->at[i].row);
		}
		free(s);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&core->order);
	if (t->kind == TOKEN_STREAM)
		ss_row_put(t->b);
	/* Fences that this wait has proven are retired here, or a program that
	 * never misses would pile them up. */
	if (ok && t->kind == TOKEN_STREAM)
		ss_fence_poll(core, t->a, -1);
	else if (ok && t->kind == TOKEN_MANY)
		ss_fence_poll(core, NULL, dev);
	/* What a destroyed stream still runs is waited for only by a device-wide wait. */
	if (ok && threshold && t->kind != TOKEN_NONE)
		ss_housekeep(core, dev, idle && !ss_zombies(core, dev));
	t->kind = TOKEN_NONE;
}
