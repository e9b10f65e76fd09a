/* SPDX-License-Identifier: MIT */
/*
 * Streams and their clocks. A clock never contains less than the true order: every possible order
 * of one command after another counts. So a command that is not in a clock is certainly not ordered
 * before it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/check/state.h"

static bool clock_room(struct ss_check *c, struct clock *k, uint32_t count)
{
	uint64_t *n;

	if (k->count >= count)
		return true;
	n = realloc(k->n, count * sizeof(*n));
	if (!n) {
		c->is_blind = true; /* the clock may have seen positions for which it has no room */
		c->counts.forgotten++;
		return false;
	}
	memset(n + k->count, 0, (count - k->count) * sizeof(*n));
	k->n = n;
	k->count = count;
	return true;
}

void clock_raise(struct ss_check *c, struct clock *to, uint32_t slot, uint64_t n)
{
	if (clock_room(c, to, slot + 1) && to->n[slot] < n)
		to->n[slot] = n;
}

void clock_merge(struct ss_check *c, struct clock *to, const struct clock *from)
{
	to->wild |= from->wild;
	to->unheard |= from->unheard;
	if (!clock_room(c, to, from->count))
		return;
	for (uint32_t i = 0; i < from->count; i++)
		if (to->n[i] < from->n[i])
			to->n[i] = from->n[i];
}

void clock_drop(struct clock *k)
{
	free(k->n);
	*k = (struct clock){0};
}

static struct stream *stream_find(const struct ss_check *c, const void *key)
{
	struct stream *s = NULL;

	HASH_FIND_PTR(c->streams, &key, s);
	return s;
}

static void saw_stream(struct ss_check *c, struct clock *to, const struct stream *s)
{
	clock_merge(c, to, &s->saw);
	clock_raise(c, to, s->slot, s->n);
}

void stream_wild(struct ss_check *c, struct stream *s, bool unheard)
{
	s->saw.wild = true;
	s->saw.unheard |= unheard;
	s->wild_since = ++c->now;
}

/* Each command joins anew, so a wild clock of the other stream has the same age here as there. */
static void join_one(struct ss_check *c, struct stream *s, const struct stream *other)
{
	saw_stream(c, &s->saw, other);
	if (other->saw.wild && s->wild_since < other->wild_since)
		s->wild_since = other->wild_since;
}

void stream_join(struct ss_check *c, struct stream *s)
{
	struct stream *other, *next;

	if (s->is.kind == SS_CHECK_NONBLOCKING)
		return;
	HASH_ITER(hh, c->streams, other, next) {
		if (other == s || other->is.dev != s->is.dev)
			continue;
		if (s->is.kind == SS_CHECK_NULL ? other->is.kind == SS_CHECK_BLOCKING :
						  other->is.kind == SS_CHECK_NULL)
			join_one(c, s, other);
	}
}

void stream_enqueue(struct ss_check *c, struct stream *s)
{
	stream_join(c, s);
	c->last[s->slot] = ++s->n;
}

void host_saw_all(struct ss_check *c)
{
	struct stream *s, *next;

	HASH_ITER(hh, c->streams, s, next)
		saw_stream(c, &c->host, s);
}

/* The work that the stream has waited for has completed as well, and may be any work. */
void host_saw(struct ss_check *c, struct stream *s)
{
	stream_join(c, s);
	if (s->saw.unheard)
		host_saw_all(c);
	else
		saw_stream(c, &c->host, s);
}

void host_waited(struct ss_check *c, struct stream *only)
{
	struct stream *s, *next;

	HASH_ITER(hh, c->streams, s, next)
		if (!only || s == only)
			saw_stream(c, &c->waited, s);
	only ? host_saw(c, only) : host_saw_all(c);
}

/* A wait that began at `since` has ended on `only` (NULL: on all streams of `dev`; -1: of all
 * devices). The work that these streams waited for until then has completed, too, and so have their
 * frees. */
static void tame(struct ss_check *c, struct stream *only, int dev, uint64_t since)
{
	struct stream *s, *next;

	HASH_ITER(hh, c->streams, s, next)
		if ((!only || s == only) && (dev < 0 || s->is.dev == dev) && s->wild_since <= since)
			s->saw.wild = s->saw.unheard = false;
	for (int freed = 1; freed < 4; freed += MARKED)
		for (struct block *b = c->wild_frees ? c->list[freed].newest : NULL; b; b = b->prev)
			if (b->free_wild && (!only || b->free_slot == only->slot) &&
			    (dev < 0 || b->free.stream.dev == dev) && b->freed_at <= since) {
				b->free_wild = false;
				c->wild_frees--;
			}
}

static bool has(const struct clock *k, uint32_t slot, uint64_t n)
{
	return slot < k->count && n <= k->n[slot];
}

bool may_be_ordered(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n)
{
	return slot == s->slot || has(&s->saw, slot, n) || has(&c->host, slot, n);
}

bool if_host_looked(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n)
{
	return slot != s->slot && !has(&s->saw, slot, n) && !has(&c->waited, slot, n) &&
	       has(&c->host, slot, n);
}

bool is_unbegun(const struct ss_check *c, const struct stream *s,
		const struct ss_check_unbegun *unbegun, uint32_t slot, uint64_t n)
{
	for (; unbegun && unbegun->stream; unbegun++) {
		const struct stream *of = stream_find(c, unbegun->stream);

		if (of && of->slot == slot && n > unbegun->n)
			return slot != s->slot && !has(&s->saw, slot, n);
	}
	return false;
}

struct ss_check_site site_of(const struct stream *s, const char *what, uint32_t stack)
{
	struct ss_check_site site = {.what = what, .stack = stack};

	if (s)
		site.stream = s->is;
	return site;
}

/* ---- the life of streams ---------------------------------------------------- */

/* Takes a slot for a new stream. Its positions follow those of the slot's earlier stream, which the
 * host may all have seen. */
static bool slot_take(struct ss_check *c, uint32_t *slot)
{
	uint32_t room = c->room ? c->room * 2 : 16;
	uint64_t *last;
	uint32_t *spare;

	if (c->spares) {
		*slot = c->spare[--c->spares];
		return true;
	}
	if (c->slots == c->room) {
		last = realloc(c->last, room * sizeof(*last));
		if (last)
			c->last = last;
		spare = realloc(c->spare, room * sizeof(*spare));
		if (spare)
			c->spare = spare;
		if (!last || !spare)
			return false;
		c->room = room;
	}
	c->last[c->slots] = 0;
	*slot = c->slots++;
	return true;
}

static void stream_drop(struct ss_check *c, struct stream *s)
{
	host_saw(c, s);
	HASH_DEL(c->streams, s);
	c->spare[c->spares++] = s->slot;
	clock_drop(&s->saw);
	free(s);
}

static struct stream *stream_new(struct ss_check *c, const void *key)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s) {
		s->key = key;
		HASH_ADD_PTR(c->streams, key, s);
	}
	if (s && SS_HASH_HAS(s)) {
		if (slot_take(c, &s->slot)) {
			c->opt.describe(key, &s->is, c->opt.arg);
			s->is.number = ++c->stream_number;
			s->n = c->last[s->slot];
			return s;
		}
		HASH_DEL(c->streams, s);
	}
	free(s);
	c->counts.forgotten++;
	c->is_blind = true; /* without the slot its orders would be missing */
	return NULL;
}

struct stream *stream_get(struct ss_check *c, const void *key)
{
	struct stream *s = key ? stream_find(c, key) : NULL;

	return s || !key ? s : stream_new(c, key);
}

void ss_check_stream_add(struct ss_check *c, const void *key)
{
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	s = stream_find(c, key);
	if (s)
		stream_drop(c, s);
	(void)stream_new(c, key);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_stream_end(struct ss_check *c, const void *key)
{
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	s = stream_find(c, key);
	if (s)
		stream_drop(c, s);
	pthread_mutex_unlock(&c->lock);
}

#define WITH_STREAM(name, ...) \
	void name(struct ss_check *c, const void *stream) \
	{ \
		struct stream *s; \
		pthread_mutex_lock(&c->lock); \
		s = stream_get(c, stream); \
		if (s) { \
			__VA_ARGS__; \
		} \
		pthread_mutex_unlock(&c->lock); \
	}
WITH_STREAM(ss_check_hold, stream_enqueue(c, s); stream_wild(c, s, true))
WITH_STREAM(ss_check_host_holds, stream_enqueue(c, s); stream_wild(c, s, false))
WITH_STREAM(ss_check_tell, host_saw(c, s))

uint64_t ss_check_position(struct ss_check *c, const void *stream)
{
	struct stream *s;
	uint64_t n;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	n = s ? s->n : UINT64_MAX;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* Actions of another thread at the same time come after this moment or before it: both are true. */
uint64_t ss_check_now(struct ss_check *c)
{
	return atomic_load(&c->now);
}

void ss_check_stream_synced(struct ss_check *c, const void *stream, uint64_t since)
{
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	if (s) {
		host_waited(c, s);
		tame(c, s, -1, since);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_all_synced(struct ss_check *c, int dev, uint64_t since)
{
	struct stream *s, *next;

	pthread_mutex_lock(&c->lock);
	/* The streams need no join: each stream that a stream of this device joins is among
	 * them. */
	HASH_ITER(hh, c->streams, s, next)
		if (dev < 0 || s->is.dev == dev) {
			saw_stream(c, &c->waited, s);
			s->saw.unheard ? host_saw_all(c) : saw_stream(c, &c->host, s);
		}
	tame(c, NULL, dev, since);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_blind(struct ss_check *c)
{
	pthread_mutex_lock(&c->lock);
	c->is_blind = true;
	pthread_mutex_unlock(&c->lock);
}
