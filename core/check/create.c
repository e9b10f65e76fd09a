/* SPDX-License-Identifier: MIT */
/* Makes the checker, and drops all its knowledge. */
#include <stdlib.h>

#include "core/check/state.h"

struct ss_check *ss_check_create(const struct ss_check_options *options)
{
	struct ss_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opt = *options;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void ss_check_destroy(struct ss_check *c)
{
	struct stream *s, *next;
	struct event *e, *next_event;

	if (!c)
		return;
	HASH_ITER(hh, c->events, e, next_event) {
		HASH_DEL(c->events, e);
		clock_drop(&e->clock);
		free(e);
	}
	HASH_ITER(hh, c->streams, s, next) {
		HASH_DEL(c->streams, s);
		clock_drop(&s->saw);
		free(s);
	}
	blocks_drop(c);
	findings_drop(c);
	pools_drop(c);
	clock_drop(&c->host);
	clock_drop(&c->waited);
	free(c->last);
	free(c->spare);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
