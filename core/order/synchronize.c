/* SPDX-License-Identifier: MIT */
/*
 * Waits and queries of streams and devices: watched calls that prove to the host how far streams
 * have come. They are pairs around the real call, as in event.h.
 *
 * Locks: order->lock for the table of streams, then timeline->lock. None is held across a driver
 * call.
 */
#include <stdlib.h>

#include "core/order/event.h"

/* One stream. A wait for a blocking stream proves completion only up to the last command on it
 * that the shim saw, since only that command has joined the null stream. So a command is
 * enqueued first if hits and frees follow the last one. A null stream that no stream joins needs
 * no command; a marker of ours there would only look like pending work to other threads that
 * ask. */
static inline struct ss_token stream_begin(struct ss_core *core, struct ss_timeline *tl,
					   enum ss_fence_how how)
{
	enum ss_timeline_kind kind = ss_timeline_kind(tl);
	bool alone = kind == SS_TL_NONBLOCKING || (kind == SS_TL_NULL && !ss_distrusted(core) &&
						   !ss_order_joiners(core, tl->dev));
	struct ss_token t = {0};

	if (!alone)
		ss_fence_cover(core, tl, how);
	t.kind = SS_TOKEN_STREAM;
	t.a = tl;
	t.n = alone ? ss_position(tl) : atomic_load(&tl->commanded);
	t.gen = ss_version(tl);
	t.dev = atomic_load_explicit(&tl->dev, memory_order_relaxed);
	t.host = atomic_load(&tl->host);
	return t;
}

struct ss_token ss_query_begin(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	struct ss_token t = {0};

	if (!tl || !tl->alive)
		return t;
	/* The command that the application relies on is enqueued in any case. But after a bypass
	 * the handle may be another stream by now, so the answer proves nothing. */
	t = stream_begin(core, tl, how);
	return ss_distrusted(core) ? (struct ss_token){0} : t;
}

struct ss_token ss_stream_query_begin(struct ss_core *core, struct ss_timeline *tl)
{
	return ss_query_begin(core, tl, SS_FENCE_OWN);
}

/* ---- many streams ---------------------------------------------------------------- */

static void see(struct ss_positions *s, struct ss_timeline *tl)
{
	struct ss_seen *at = &s->at[s->count++];

	at->tl = tl;
	ss_spin_lock(&tl->lock);
	at->pos = ss_position(tl);
	at->version = ss_version(tl);
	at->cover = ss_cover_begin(tl);
	ss_spin_unlock(&tl->lock);
}

struct ss_positions *ss_positions_take(struct ss_core *core, int dev, enum ss_who who)
{
	struct ss_order *o = core->order;
	struct ss_timeline *null;
	struct ss_positions *s = NULL;

	pthread_mutex_lock(&o->lock);
	null = o->dev[dev].null;
	if (who != SS_WHO_APART || !null || !atomic_load(&o->dev[dev].joiners))
		s = malloc(sizeof(*s) + o->slot_count * sizeof(s->at[0]));
	if (s) {
		s->wide = who == SS_WHO_EVER ? atomic_fetch_add(&o->dev[dev].all.now, 1) : 0;
		s->count = 0;
		s->whole = true;
		SS_TIMELINES_EACH(tl, o) {
			if (tl->dev != dev || tl == null || (!tl->alive && who != SS_WHO_EVER))
				continue;
			if (who != SS_WHO_JOINED || tl->kind != SS_TL_NONBLOCKING)
				see(s, tl);
			else
				s->whole = false;
		}
		s->others = s->count;
		if (null)
			see(s, null);
	}
	pthread_mutex_unlock(&o->lock);
	return s;
}

static struct ss_token many_begin(struct ss_core *core, int dev, enum ss_who who)
{
	struct ss_token t = {.dev = dev, .gen = who};

	/* The null stream exists even if the shim has never seen it in use. */
	if (ss_timeline_null(core, dev) && (t.a = ss_positions_take(core, dev, who)))
		t.kind = SS_TOKEN_MANY;
	return t;
}

/* Notes that the end of the wait will show that the streams have reached their present
 * positions. */
static void tells(const struct ss_token *t)
{
	const struct ss_positions *s = t->a;

	for (uint32_t i = 0; s && i < s->count; i++)
		ss_raise_to(&s->at[i].tl->told, s->at[i].pos);
}

struct ss_token ss_stream_sync_begin(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_token t;

	if (unlikely(!tl || !tl->alive))
		return (struct ss_token){0};
	if (likely(ss_timeline_kind(tl) != SS_TL_NULL)) {
		t = stream_begin(core, tl, SS_FENCE_OWN);
		t.waiting = ss_waiting_begin_at(core, tl, t.n);
		return t;
	}
	t = many_begin(core, tl->dev, SS_WHO_JOINED);
	tells(&t);
	t.waiting = ss_waiting_begin(core, tl);
	return t;
}

struct ss_token ss_device_sync_begin(struct ss_core *core, int dev)
{
	struct ss_token t = many_begin(core, dev, SS_WHO_EVER);

	tells(&t);
	t.waiting = ss_waiting_begin_device(core, dev);
	return t;
}

struct ss_token ss_streams_sync_begin(struct ss_core *core, int dev)
{
	return many_begin(core, dev, SS_WHO_ALL);
}

bool ss_token_device_wide(const struct ss_token *t)
{
	return t->kind == SS_TOKEN_MANY && t->gen == SS_WHO_EVER;
}

SS_COLD void end_many(struct ss_core *core, const struct ss_token *t, bool ok, bool threshold)
{
	struct ss_positions *s = t->a;
	struct ss_order *o = core->order;
	/* Only a device-wide wait covers streams that the shim does not know. */
	bool idle = ok && s->whole && (s->wide || !ss_distrusted(core));

	pthread_mutex_lock(&o->lock);
	if (ok)
		ss_raise_to(&o->dev[atomic_load(&t->dev)].all.waited, s->wide);
	for (uint32_t i = 0; i < s->count; i++) {
		struct ss_timeline *tl = s->at[i].tl;
		/* A wait stream by stream may have left out a stream that was destroyed
		 * meanwhile. */
		bool covered = s->wide || tl->alive;

		if (!ok || !covered || tl->capturing)
			continue;
		ss_complete_seen(core, tl, s->at[i].pos, s->at[i].version, true);
		/* The null stream and all that join it were idle, so a command would have had
		 * nothing to join. */
		ss_cover_end(tl, s->at[i].cover);
		if (atomic_load(&tl->commanded) < s->at[i].pos)
			atomic_store(&tl->commanded, s->at[i].pos);
	}
	pthread_mutex_unlock(&o->lock);
	free(s);
	if (!ok)
		return;
	ss_fences_poll(core, NULL, t->dev);
	if (threshold)
		ss_sync_report(core, t->dev, idle);
}

static void end_event(struct ss_core *core, const struct ss_token *t, bool threshold)
{
	struct ss_timeline *tl;

	/* If the whole clock is synced already, only the report is left. */
	if (!threshold && ss_event_synced(t->a, t->gen))
		return;
	tl = ss_event_done(core, t->a, t->gen);
	if (tl && threshold)
		ss_sync_report(core, tl->dev, false);
}

static void end_stream(struct ss_core *core, const struct ss_token *t, bool threshold)
{
	struct ss_timeline *tl = t->a;

	if (unlikely(t->host) && !tl->capturing)
		ss_host_synced(tl, t->host);
	if (!tl->capturing)
		ss_complete_seen(core, tl, t->n, t->gen, true);
	/* Fences that this wait has proved are released here. Otherwise they would pile up in a
	 * program that never misses. */
	if (unlikely(atomic_load_explicit(&tl->pending, memory_order_relaxed)))
		ss_fences_poll(core, tl, -1);
	if (threshold)
		ss_sync_report(core, t->dev, false);
}

void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	struct ss_timeline *waited = ss_waiting_over(core, &t->waiting);
	int kind = t->kind;

	t->kind = SS_TOKEN_NONE;
	if (kind == SS_TOKEN_MANY)
		end_many(core, t, ok, threshold);
	else if (kind == SS_TOKEN_STREAM && ok)
		end_stream(core, t, threshold);
	else if (kind == SS_TOKEN_EVENT && ok)
		end_event(core, t, threshold);
	if (waited)
		ss_waiting_serve(core, waited);
}
