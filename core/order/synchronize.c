/* SPDX-License-Identifier: MIT */
/*
 * Waiting for streams and devices, and asking for them: watched calls that prove to the host how
 * far streams have come. They are pairs around the real call, as in event.h.
 *
 * Locks: order->lock for which streams exist, then timeline->lock. None is held across a driver
 * call.
 */
#include <stdlib.h>

#include "core/order/event.h"

/* What a token of kind SS_TOKEN_MANY covers. It is in the token's `gen`. */
enum {
	SCOPE_STREAMS, /* all live streams */
	SCOPE_JOINED,  /* the null stream and the streams that join it */
	SCOPE_DEVICE,  /* everything on the device, destroyed streams included */
};

/* Where all timelines of a device were when the call began. */
struct snapshot {
	uint64_t wide; /* number of a device-wide wait; 0: it is none */
	uint32_t count;
	struct {
		struct ss_timeline *tl;
		uint64_t pos, version;
		unsigned cover;
	} at[];
};

/* One stream. What a wait for a blocking stream proves ends at the last command on it that we
 * saw, since only that command has joined the null stream. So hits and frees behind it get a
 * command first. A null stream that no stream joins needs none; a marker of ours there would only
 * look like work in flight to whoever asks. */
static inline struct ss_token stream_begin(struct ss_core *core, struct ss_timeline *tl)
{
	enum ss_timeline_kind kind = ss_kind(tl);
	bool alone = kind == SS_TL_NONBLOCKING || (kind == SS_TL_NULL && !ss_distrusted(core) &&
						   !ss_order_joiners(core, tl->dev));
	struct ss_token t = {0};

	if (!alone)
		ss_fence_cover(core, tl, SS_FENCE_JOINING);
	t.kind = SS_TOKEN_STREAM;
	t.a = tl;
	t.n = alone ? ss_position(tl) : atomic_load(&tl->commanded);
	t.gen = ss_version(tl);
	t.dev = atomic_load_explicit(&tl->dev, memory_order_relaxed);
	return t;
}

struct ss_token ss_stream_query_begin(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_token t = {0};

	if (!tl || !tl->alive)
		return t;
	/* The command that the application relies on is enqueued in any case. But after a bypass
	 * the handle may be another stream by now, so the answer proves nothing. */
	t = stream_begin(core, tl);
	return ss_distrusted(core) ? (struct ss_token){0} : t;
}

struct ss_token ss_stream_sync_begin(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_token t;

	if (unlikely(!tl || !tl->alive))
		return (struct ss_token){0};
	if (likely(ss_kind(tl) != SS_TL_NULL))
		return stream_begin(core, tl);
	t = ss_streams_sync_begin(core, tl->dev);
	t.gen = SCOPE_JOINED;
	return t;
}

static struct ss_token many_begin(struct ss_core *core, int dev, bool destroyed_too)
{
	struct ss_token t = {.dev = dev, .gen = destroyed_too ? SCOPE_DEVICE : SCOPE_STREAMS};
	struct ss_order *o = core->order;
	struct snapshot *s;
	uint32_t count;

	/* The null stream exists even if we have never seen it in use. */
	if (!ss_timeline_null(core, dev))
		return t;
	pthread_mutex_lock(&o->lock);
	count = o->slot_count;
	s = malloc(sizeof(*s) + count * sizeof(s->at[0]));
	if (s) {
		s->wide = destroyed_too ? atomic_fetch_add(&o->dev[dev].wide_now, 1) : 0;
		s->count = 0;
		for (uint32_t i = 0; i < count; i++) {
			struct ss_timeline *tl = o->slots[i];

			if (tl->dev != dev || (!tl->alive && !destroyed_too))
				continue;
			s->at[s->count].tl = tl;
			ss_spin_lock(&tl->lock);
			s->at[s->count].pos = ss_position(tl);
			s->at[s->count].version = ss_version(tl);
			s->at[s->count++].cover = ss_cover_begin(tl);
			ss_spin_unlock(&tl->lock);
		}
		t.kind = SS_TOKEN_MANY;
		t.a = s;
	}
	pthread_mutex_unlock(&o->lock);
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
	return t->kind == SS_TOKEN_MANY && t->gen == SCOPE_DEVICE;
}

/* Grants what a wait for many streams has proved. True: everything that the token covers is at its
 * end. */
static bool many_end(struct ss_core *core, struct snapshot *s, int dev, uint64_t scope, bool ok)
{
	struct ss_order *o = core->order;
	/* Only a device-wide wait covers streams that we do not know. */
	bool idle = ok && (s->wide || !ss_distrusted(core));
	uint64_t now = ss_now_ms(core);

	pthread_mutex_lock(&o->lock);
	if (ok && s->wide > atomic_load(&o->dev[dev].wide_done))
		atomic_store(&o->dev[dev].wide_done, s->wide);
	for (uint32_t i = 0; i < s->count; i++) {
		struct ss_timeline *tl = s->at[i].tl;
		/* A wait stream by stream may have left out one that was destroyed meanwhile. */
		bool covered = (scope != SCOPE_JOINED || tl->kind != SS_TL_NONBLOCKING) &&
			       (s->wide || tl->alive);

		idle &= covered || !tl->alive;
		if (!ok || !covered || tl->capturing)
			continue;
		ss_complete_seen(core, tl, s->at[i].pos, s->at[i].version, true);
		ss_sync_note(core, tl, s->at[i].pos, now);
		/* The null stream and all that join it were at their end, so a command would
		 * have had nothing to join. */
		ss_cover_end(tl, s->at[i].cover);
		if (atomic_load(&tl->commanded) < s->at[i].pos)
			atomic_store(&tl->commanded, s->at[i].pos);
	}
	pthread_mutex_unlock(&o->lock);
	free(s);
	return idle;
}

SS_COLD void end_many(struct ss_core *core, const struct ss_token *t, bool ok, bool threshold)
{
	bool idle = many_end(core, t->a, t->dev, t->gen, ok);

	if (!ok)
		return;
	ss_fence_poll(core, NULL, t->dev);
	if (threshold)
		ss_sync_report(core, t->dev, NULL, 0, idle);
}

static void end_event(struct ss_core *core, const struct ss_token *t, bool threshold)
{
	struct ss_timeline *tl;
	uint64_t pos;

	/* If everything is synced already, nothing is left but to report it. */
	if (!threshold && ss_event_synced(t->a, t->gen))
		return;
	tl = ss_event_done(core, t->a, t->gen, &pos);
	if (tl && threshold)
		ss_sync_report(core, tl->dev, tl, pos, false);
}

static void end_stream(struct ss_core *core, const struct ss_token *t, bool threshold)
{
	struct ss_timeline *tl = t->a;

	if (!tl->capturing)
		ss_complete_seen(core, tl, t->n, t->gen, true);
	/* Fences that this wait has proved are released here. Otherwise they would pile up in a
	 * program that never misses. */
	if (unlikely(atomic_load_explicit(&tl->pending, memory_order_relaxed)))
		ss_fence_poll(core, tl, -1);
	if (threshold)
		ss_sync_report(core, t->dev, tl, t->n, false);
}

void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	int kind = t->kind;

	t->kind = SS_TOKEN_NONE;
	if (kind == SS_TOKEN_MANY)
		end_many(core, t, ok, threshold);
	else if (kind == SS_TOKEN_STREAM && ok)
		end_stream(core, t, threshold);
	else if (kind == SS_TOKEN_EVENT && ok)
		end_event(core, t, threshold);
}
