/* SPDX-License-Identifier: MIT */
/*
 * Synchronization with streams and devices: watched calls that prove to the host how far
 * they are. Pairs round the real call, as in event.h.
 *
 * Locks: core->order for which streams there are, timeline->lock. None is held across a
 * driver call.
 */
#include <stdlib.h>

#include "core/internal.h"

/* What an SS_TOKEN_MANY reaches (its gen). */
enum { SCOPE_STREAMS, SCOPE_JOINED /* no non-blocking streams */, SCOPE_DEVICE };

/* Several timelines at once: a device, or the null stream with all it joins. */
struct snapshot {
	uint64_t wide;  /* a real device-wide wait: position of the device's own count */
	uint32_t count;
	struct { struct ss_timeline *tl; uint64_t pos, version; unsigned cover; } at[];
};

/* One stream. What a wait for a blocking stream proves reaches only as far as a
 * command on it that we saw: only that command has joined the null stream. A null
 * stream that nobody joins has nothing to make up for: a marker of ours on it would
 * only be seen, as work in flight, by whoever asks. */
static inline struct ss_token stream_begin(struct ss_core *core, struct ss_timeline *tl)
{
	bool alone = tl->kind == SS_TL_NONBLOCKING ||
		     (tl->kind == SS_TL_NULL && !ss_distrusted(core) &&
		      !atomic_load(&core->dev[tl->dev].joiners));
	struct ss_token t = {0};

	if (!alone)
		ss_timeline_cover(core, tl, SS_FENCE_JOINING);
	t.kind = SS_TOKEN_STREAM;
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
	struct ss_token t = {0};

	if (!tl || !tl->alive || (ss_distrusted(core) && SS_MUTANT_IS(45)))
		return t;
	/* The command that the program counts on is enqueued in any case. But a handle
	 * may be another stream by now where calls go past us: that proves nothing. */
	t = stream_begin(core, tl);
	return ss_distrusted(core) ? (struct ss_token){0} : t;
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
		t.kind = SS_TOKEN_MANY;
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
	return t->kind == SS_TOKEN_MANY && t->gen == SCOPE_DEVICE;
}

/* Grants what a wait for many has proved. True: all that the token names is at its
 * end. */
static bool many_end(struct ss_core *core, struct snapshot *s, int dev, uint64_t scope, bool ok)
{
	/* Of streams that nobody saw, only a device-wide wait speaks. */
	bool idle = ok && (s->wide || !ss_distrusted(core) || SS_MUTANT_IS(44));
	uint64_t now = core->drv.now_ms(core->drv.ctx);

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
		ss_note(core, tl, s->at[i].pos, now);
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

void ss_sync_end(struct ss_core *core, struct ss_token *t, bool ok, bool threshold)
{
	struct ss_timeline *tl = t->a;
	int kind = t->kind, dev = t->dev;
	uint64_t pos = t->n;
	bool idle = false;

	ok |= SS_MUTANT_IS(19);
	t->kind = SS_TOKEN_NONE;
	if (kind == SS_TOKEN_MANY)
		idle = many_end(core, t->a, dev, t->gen, ok);
	if (!ok || kind == SS_TOKEN_NONE)
		return;
	if (kind == SS_TOKEN_EVENT) {
		tl = ss_event_done(core, t->a, t->gen, &pos);
		dev = tl ? tl->dev : -1;
	} else if (kind == SS_TOKEN_STREAM) {
		if (!tl->capturing)
			ss_complete_seen(core, tl, SS_MUTANT_IS(22) ? ss_position(tl) : t->n,
					 t->gen, true);
		/* Fences that this wait has proven are retired here, or a program
		 * that never misses would pile them up. */
		ss_fence_poll(core, tl, -1);
	} else if (kind == SS_TOKEN_MANY) {
		ss_fence_poll(core, NULL, dev);
		tl = NULL;
	}
	if (threshold && dev >= 0)
		ss_keep_house(core, dev, tl, pos, idle);
}

int ss_stream_sync(struct ss_core *core, void *native, const struct ss_sync_call *call, int *depth)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	uint64_t pos, version;
	int err;

	/* A blocking stream may have to be joined with the null stream first. */
	if (__builtin_expect(!tl || ss_stream_uncovered(tl), 0))
		return call->long_way(native);
	pos = tl->kind == SS_TL_NONBLOCKING ? ss_position(tl) : atomic_load(&tl->commanded);
	version = ss_version(tl);
	++*depth;
	err = call->real(native);
	--*depth;
	if (__builtin_expect(err, 0))
		return call->failed(err);
	ss_complete_seen(core, tl, pos, version, true);
	if (__builtin_expect(atomic_load_explicit(&tl->pending, memory_order_relaxed) != 0, 0))
		ss_fence_poll(core, tl, -1);
	ss_keep_house(core, tl->dev, tl, pos, false);
	return err;
}
