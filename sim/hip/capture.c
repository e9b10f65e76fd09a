/* SPDX-License-Identifier: MIT */
/*
 * Captures in progress: which streams take part, and what calls on them do instead of work.
 *
 * Locks: capture_lock. An event's lock, the graphs' lock, and what graph memory takes are taken
 * inside it.
 */
#include <stdlib.h>
#include <string.h>

#include "device/command.h"
#include "device/macros.h"
#include "device/record.h"
#include "hip/allocation.h"
#include "hip/capture.h"
#include "hip/capture_state.h"
#include "hip/graph.h"
#include "hip/graph_memory.h"
#include "hip/handle.h"

atomic_int captures_live;
pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
struct capture *captures;

static struct node **copy_nodes(struct node *const *n, size_t count)
{
	struct node **c = malloc((count + 1) * sizeof *c);

	if (!c)
		abort();
	if (count)
		memcpy(c, n, count * sizeof *c);
	return c;
}

void capture_set_leaf(struct stream *s, struct node *const *n, size_t count)
{
	struct node **c = copy_nodes(n, count);

	free(s->leaf);
	s->leaf = c;
	s->leaf_count = count;
}

void capture_join(struct capture *c, struct stream *s)
{
	c->streams = realloc(c->streams, (c->stream_count + 1) * sizeof *c->streams);
	if (!c->streams)
		abort();
	c->streams[c->stream_count++] = s;
	s->capture = c;
}

struct capture *capture_by_id(uint64_t id)
{
	for (struct capture *c = captures; c && id; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

void capture_start(struct capture *c)
{
	c->next = captures;
	captures = c;
	atomic_fetch_add(&captures_live, 1);
}

struct graph *capture_finish(struct capture *c)
{
	struct graph *g = c->graph;

	for (size_t i = 0; i < c->stream_count; i++) {
		c->streams[i]->capture = NULL;
		free(c->streams[i]->leaf);
		c->streams[i]->leaf = NULL;
		c->streams[i]->leaf_count = 0;
	}
	for (struct capture **p = &captures; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	free(c->streams);
	free(c);
	atomic_fetch_sub(&captures_live, 1);
	return g;
}

bool stream_capturing(struct stream *s)
{
	bool yes;

	if (!s || !atomic_load(&captures_live))
		return false;
	pthread_mutex_lock(&capture_lock);
	yes = s->capture != NULL;
	pthread_mutex_unlock(&capture_lock);
	return yes;
}

/* Records a command as a node, with the graph memory that it is about, or NULL. */
static bool add(struct stream *s, enum node_type type, struct sim_command *c,
		struct graph_alloc *alloc, hipError_t *e)
{
	struct node *n;

	pthread_mutex_lock(&capture_lock);
	if (!s->capture) {
		pthread_mutex_unlock(&capture_lock);
		return false;
	}
	if (s->capture->invalid) {
		sim_command_free(c);
		*e = hipErrorStreamCaptureInvalidated;
	} else {
		n = node_add(s->capture->graph, type, c, s->leaf, s->leaf_count);
		n->alloc = alloc;
		capture_set_leaf(s, &n, 1);
		*e = hipSuccess;
	}
	pthread_mutex_unlock(&capture_lock);
	return true;
}

bool capture_submit(struct stream *s, struct sim_command *c, hipError_t *e)
{
	return add(s, node_type_of(c), c, NULL, e);
}

bool capture_record(struct stream *s, struct event *ev)
{
	struct sim_record *old;

	pthread_mutex_lock(&capture_lock);
	if (!s->capture || s->capture->invalid) {
		pthread_mutex_unlock(&capture_lock);
		return false;
	}
	pthread_mutex_lock(&ev->lock);
	free(ev->nodes);
	ev->nodes = copy_nodes(s->leaf, s->leaf_count);
	ev->node_count = s->leaf_count;
	ev->capture_id = s->capture->id;
	old = ev->record;
	ev->record = NULL;
	pthread_mutex_unlock(&ev->lock);
	pthread_mutex_unlock(&capture_lock);
	sim_record_unref(old);
	return true;
}

bool capture_wait(struct stream *s, struct event *ev, hipError_t *e)
{
	struct capture *c;
	struct node **n;
	bool handled = true;

	pthread_mutex_lock(&capture_lock);
	c = capture_by_id(ev->capture_id);
	*e = hipSuccess;
	if (c) {
		if (c->invalid || (s->capture && s->capture->invalid)) {
			*e = hipErrorStreamCaptureInvalidated;
		} else if (!s->capture || s->capture == c) {
			if (!s->capture) {
				capture_join(c, s);
				capture_set_leaf(s, NULL, 0);
			}
			n = malloc((s->leaf_count + ev->node_count + 1) * sizeof *n);
			if (!n)
				abort();
			if (s->leaf_count)
				memcpy(n, s->leaf, s->leaf_count * sizeof *n);
			if (ev->node_count)
				memcpy(n + s->leaf_count, ev->nodes, ev->node_count * sizeof *n);
			capture_set_leaf(s, n, s->leaf_count + ev->node_count);
			free(n);
		} else {
			s->capture->invalid = true;
			*e = hipErrorStreamCaptureMerge;
		}
	} else if (s->capture) {
		if (s->capture->invalid) {
			*e = hipErrorStreamCaptureInvalidated;
		} else if (ev->record || ev->shared) {
			s->capture->invalid = true;
			*e = hipErrorStreamCaptureIsolation;
		}
	} else {
		handled = false;
	}
	pthread_mutex_unlock(&capture_lock);
	return handled;
}

bool capture_alloc(struct stream *s, void **ptr, size_t size, hipError_t *e)
{
	struct graph_alloc *ga;
	struct sim_command *c;
	void *p;

	if (!stream_capturing(s))
		return false;
	*e = graph_alloc_new(size, s->device, &ga);
	if (*e)
		return true;
	p = ga->ptr;
	c = graph_alloc_command(ga);
	if (!add(s, NODE_ALLOC, c, ga, e)) {
		sim_command_free(c);
		return false;
	}
	if (!*e)
		*ptr = p;
	return true;
}

bool capture_free(struct stream *s, void *ptr, hipError_t *e)
{
	struct sim_alloc a;
	struct sim_command *c;

	if (!stream_capturing(s))
		return false;
	if (!hip_find(ptr, &a) || a.ownertype != OWNER_GRAPH) {
		*e = hipErrorInvalidValue;
		return true;
	}
	c = graph_free_command(a.owner);
	if (!add(s, NODE_FREE, c, a.owner, e)) {
		sim_command_free(c);
		return false;
	}
	return true;
}

void capture_stream_destroyed(struct stream *s)
{
	struct capture *c;
	struct graph *g = NULL;

	if (likely(!atomic_load(&captures_live)))
		return;
	pthread_mutex_lock(&capture_lock);
	c = s->capture;
	if (c && c->origin == s) {
		bool given = c->given;

		g = capture_finish(c);
		if (given)
			g = NULL;
	} else if (c) {
		c->invalid = true;
		for (size_t i = 0; i < c->stream_count; i++)
			if (c->streams[i] == s)
				c->streams[i--] = c->streams[--c->stream_count];
		s->capture = NULL;
	}
	pthread_mutex_unlock(&capture_lock);
	if (g)
		graph_free(g);
}
