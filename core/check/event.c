/* SPDX-License-Identifier: MIT */
/* Events: the clocks of records, and their use by waits and synchronizations. */
#include <stdlib.h>

#include "core/check/state.h"

static struct event *event_get(struct ss_check *c, const void *key)
{
	struct event *e = NULL;

	HASH_FIND_PTR(c->events, &key, e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (e) {
		e->key = key;
		HASH_ADD_PTR(c->events, key, e);
		if (SS_HASH_HAS(e))
			return e;
	}
	free(e);
	c->counts.forgotten++;
	c->is_blind = true;
	return NULL;
}

void ss_check_record_begin(struct ss_check *c, const void *event)
{
	struct event *e;

	pthread_mutex_lock(&c->lock);
	e = event_get(c, event);
	if (e)
		e->overlaps |= e->recording++ != 0;
	pthread_mutex_unlock(&c->lock);
}

/* The clock is read after the real call, so it also covers commands that other threads have put on
 * the stream meanwhile. `stream` NULL: the event was recorded in a way that gives it no clock. */
void ss_check_record_end(struct ss_check *c, const void *event, const void *stream, bool ok)
{
	struct stream *s;
	struct event *e;

	pthread_mutex_lock(&c->lock);
	e = event_get(c, event);
	s = stream_get(c, stream);
	if (e && e->recording)
		e->recording--;
	if (e && ok && s) {
		stream_enqueue(c, s);
		clock_drop(&e->clock);
		clock_merge(c, &e->clock, &s->saw);
		clock_raise(c, &e->clock, s->slot, s->n);
		e->unknown = e->forever || e->overlaps;
	} else if (e && ok) {
		e->unknown = true;
	}
	if (e && !e->recording)
		e->overlaps = false;
	pthread_mutex_unlock(&c->lock);
}

void ss_check_event_unknown(struct ss_check *c, const void *event, bool forever)
{
	struct event *e;

	pthread_mutex_lock(&c->lock);
	e = event_get(c, event);
	if (e) {
		e->unknown = true;
		e->forever |= forever;
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_event_end(struct ss_check *c, const void *event)
{
	struct event *e = NULL;

	pthread_mutex_lock(&c->lock);
	HASH_FIND_PTR(c->events, &event, e);
	if (e) {
		HASH_DEL(c->events, e);
		clock_drop(&e->clock);
		free(e);
	}
	pthread_mutex_unlock(&c->lock);
}

static bool is_unknown(const struct event *e)
{
	return !e || e->unknown || e->recording;
}

void ss_check_wait(struct ss_check *c, const void *stream, const void *event)
{
	struct stream *s;
	struct event *e;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	e = event_get(c, event);
	if (s) {
		stream_enqueue(c, s);
		if (is_unknown(e) || e->clock.wild)
			stream_wild(c, s, is_unknown(e) || e->clock.unheard);
		if (e)
			clock_merge(c, &s->saw, &e->clock);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_event_synced(struct ss_check *c, const void *event)
{
	struct event *e;

	pthread_mutex_lock(&c->lock);
	e = event_get(c, event);
	if (e)
		clock_merge(c, &c->waited, &e->clock);
	if (is_unknown(e) || e->clock.unheard)
		host_saw_all(c);
	else
		clock_merge(c, &c->host, &e->clock);
	pthread_mutex_unlock(&c->lock);
}
