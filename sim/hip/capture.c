/* SPDX-License-Identifier: MIT */
/*
 * Stream capture: which streams are in which capture, what a call does to
 * captures that live beside it, by version and mode.
 *
 * Locks: cap_lock guards every capture and the capture fields of streams and
 * events. It is taken after nothing and only graph allocation is called in it.
 */
#include <stdlib.h>
#include <string.h>

#include "capture.h"

atomic_int captures_live;

pthread_mutex_t cap_lock = PTHREAD_MUTEX_INITIALIZER;
struct capture *captures;
static uint64_t next_id;

static struct node **copy_nodes(struct node *const *n, size_t count)
{
	struct node **c = malloc((count + 1) * sizeof *c);

	if (!c)
		abort();
	if (count)
		memcpy(c, n, count * sizeof *c);
	return c;
}

static void set_leaf(struct stream *s, struct node *const *n, size_t count)
{
	struct node **c = copy_nodes(n, count);

	free(s->leaf);
	s->leaf = c;
	s->nleaf = count;
}

static void join(struct capture *c, struct stream *s)
{
	c->streams = realloc(c->streams, (c->nstreams + 1) * sizeof *c->streams);
	if (!c->streams)
		abort();
	c->streams[c->nstreams++] = s;
	s->cap = c;
}

struct capture *capture_by_id(uint64_t id)
{
	for (struct capture *c = captures; c && id; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

/* ---- what capturing streams do instead of working ---- */

static struct node *add(struct stream *s, struct cmd *c)
{
	struct node *n = node_add(s->cap->graph, c, s->leaf, s->nleaf);

	set_leaf(s, &n, 1);
	return n;
}

bool capture_submit(struct stream *s, struct cmd *c, hipError_t *e)
{
	pthread_mutex_lock(&cap_lock);
	if (!s->cap) {
		pthread_mutex_unlock(&cap_lock);
		return false;
	}
	if (s->cap->invalid) {
		cmd_free(c);
		*e = hipErrorStreamCaptureInvalidated;
	} else {
		add(s, c);
		*e = hipSuccess;
	}
	pthread_mutex_unlock(&cap_lock);
	return true;
}

bool capture_record(struct stream *s, struct event *ev)
{
	struct rec *old;

	pthread_mutex_lock(&cap_lock);
	if (!s->cap || s->cap->invalid) {
		pthread_mutex_unlock(&cap_lock);
		return false;
	}
	pthread_mutex_lock(&ev->lock);
	free(ev->nodes);
	ev->nodes = copy_nodes(s->leaf, s->nleaf);
	ev->nnodes = s->nleaf;
	ev->cap_id = s->cap->id;
	old = ev->rec;
	ev->rec = NULL;
	pthread_mutex_unlock(&ev->lock);
	pthread_mutex_unlock(&cap_lock);
	rec_unref(old);
	return true;
}

bool capture_wait(struct stream *s, struct event *ev, hipError_t *e)
{
	struct capture *c;
	struct node **n;
	bool handled = true;

	pthread_mutex_lock(&cap_lock);
	c = capture_by_id(ev->cap_id);
	*e = hipSuccess;
	if (c) {
		if (c->invalid || (s->cap && s->cap->invalid)) {
			*e = hipErrorStreamCaptureInvalidated;
		} else if (!s->cap || s->cap == c) {
			if (!s->cap) {
				join(c, s);
				set_leaf(s, NULL, 0);
			}
			n = malloc((s->nleaf + ev->nnodes + 1) * sizeof *n);
			if (!n)
				abort();
			if (s->nleaf)
				memcpy(n, s->leaf, s->nleaf * sizeof *n);
			if (ev->nnodes)
				memcpy(n + s->nleaf, ev->nodes, ev->nnodes * sizeof *n);
			set_leaf(s, n, s->nleaf + ev->nnodes);
			free(n);
		} else {
			s->cap->invalid = true;
			*e = hipErrorStreamCaptureMerge;
		}
	} else if (s->cap) {
		if (s->cap->invalid) {
			*e = hipErrorStreamCaptureInvalidated;
		} else if (ev->rec || ev->ipc) {
			s->cap->invalid = true;
			*e = hipErrorStreamCaptureIsolation;
		}
	} else {
		handled = false;
	}
	pthread_mutex_unlock(&cap_lock);
	return handled;
}

bool capture_alloc(struct stream *s, void **ptr, size_t size, hipError_t *e)
{
	struct graph_alloc *ga;
	struct cmd *c;

	if (!stream_capturing(s))
		return false;
	*e = graph_alloc_new(size, s->device, &ga);
	if (*e)
		return true;
	c = cmd_new(C_ALLOC);
	c->mem.ga = ga;
	c->mem.ptr = ga->ptr;
	c->mem.size = size;
	c->mem.device = s->device;
	if (!capture_submit(s, c, e)) {
		cmd_free(c);
		return false;
	}
	if (!*e)
		*ptr = c->mem.ptr;
	return true;
}

bool capture_free(struct stream *s, void *ptr, hipError_t *e)
{
	struct sim_alloc a;
	struct cmd *c;

	if (!stream_capturing(s))
		return false;
	if (!hip_find(ptr, &a) || a.ownertype != O_GRAPH) {
		*e = hipErrorInvalidValue;
		return true;
	}
	c = cmd_new(C_FREE);
	c->mem.ga = a.owner;
	c->mem.ptr = ptr;
	atomic_fetch_add(&c->mem.ga->refs, 1);
	if (capture_submit(s, c, e))
		return true;
	cmd_free(c);
	return false;
}

/* Caller holds the lock. */
static struct graph *finish(struct capture *c)
{
	struct graph *g = c->graph;

	for (size_t i = 0; i < c->nstreams; i++) {
		c->streams[i]->cap = NULL;
		free(c->streams[i]->leaf);
		c->streams[i]->leaf = NULL;
		c->streams[i]->nleaf = 0;
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

void capture_stream_gone(struct stream *s)
{
	struct capture *c;
	struct graph *g = NULL;

	if (likely(!atomic_load(&captures_live)))
		return;
	pthread_mutex_lock(&cap_lock);
	c = s->cap;
	if (c && c->origin == s) {
		bool given = c->given;

		g = finish(c);
		if (given)
			g = NULL;
	} else if (c) {
		c->invalid = true;
		for (size_t i = 0; i < c->nstreams; i++)
			if (c->streams[i] == s)
				c->streams[i--] = c->streams[--c->nstreams];
		s->cap = NULL;
	}
	pthread_mutex_unlock(&cap_lock);
	if (g)
		graph_free(g);
}

/* ---- the API ---- */

static hipError_t begin(hipStream_t h, hipStreamCaptureMode mode, struct graph *given,
			struct node *const *deps, size_t n)
{
	struct stream *s = stream_of(h);
	struct capture *c;

	if (!h || h == LEGACY)
		return hipErrorStreamCaptureUnsupported;
	if (mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	/* The per-thread stream cannot capture on this device. */
	if (h == hipStreamPerThread)
		return hipErrorStreamCaptureUnsupported;
	if (!s)
		return hipErrorContextIsDestroyed;
	c = calloc(1, sizeof *c);
	if (!c)
		return hipErrorOutOfMemory;
	pthread_mutex_lock(&cap_lock);
	if (s->cap) {
		pthread_mutex_unlock(&cap_lock);
		free(c);
		return hipErrorIllegalState;
	}
	c->id = ++next_id;
	c->mode = mode;
	c->origin = s;
	c->thread = pthread_self();
	c->graph = given ? given : graph_new();
	c->given = given != NULL;
	join(c, s);
	set_leaf(s, deps, n);
	c->next = captures;
	captures = c;
	atomic_fetch_add(&captures_live, 1);
	pthread_mutex_unlock(&cap_lock);
	return hipSuccess;
}

hipError_t i_hipStreamBeginCapture(hipStream_t h, hipStreamCaptureMode mode)
{
	return begin(h, mode, NULL, NULL, 0);
}

hipError_t i_hipStreamBeginCapture_spt(hipStream_t h, hipStreamCaptureMode mode)
{
	return i_hipStreamBeginCapture(SPT(h), mode);
}

hipError_t i_hipStreamBeginCaptureToGraph(hipStream_t h, hipGraph_t graph, const hipGraphNode_t *deps, const void *edges, size_t n, hipStreamCaptureMode mode)
{
	if (!graph_of(graph) || (n && !deps))
		return hipErrorInvalidValue;
	return begin(h, mode, graph_of(graph), (struct node *const *)deps, n);
}

hipError_t i_hipStreamEndCapture(hipStream_t h, hipGraph_t *out)
{
	struct stream *s = stream_of(h);
	struct capture *c;
	struct graph *g;
	hipError_t e = hipSuccess;
	bool given;

	if (!out)
		return hipErrorInvalidValue;
	if (!h || h == LEGACY || h == hipStreamPerThread)
		return hipErrorIllegalState;
	if (!s)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&cap_lock);
	c = s->cap;
	if (!c)
		e = hipErrorIllegalState;
	else if (c->origin != s)
		e = hipErrorStreamCaptureUnmatched;
	else if (c->mode != hipStreamCaptureModeRelaxed && !pthread_equal(c->thread, pthread_self()))
		e = hipErrorStreamCaptureWrongThread;
	if (e) {
		pthread_mutex_unlock(&cap_lock);
		return e;
	}
	if (c->invalid) {
		e = hipErrorStreamCaptureInvalidated;
		s->spoiled = sim_opt.quirk[SIM_Q_CAPTURE_SPOILS];
	} else {
		for (size_t i = 0; i < c->nstreams && !e; i++)
			if (c->streams[i] != s && !graph_joined(s->leaf, s->nleaf, c->streams[i]->leaf, c->streams[i]->nleaf))
				e = hipErrorStreamCaptureUnjoined;
		if (s->spoiled && !e) {
			graph_spoil(c->graph);
			s->spoiled = false;
		}
	}
	given = c->given;
	g = finish(c);
	pthread_mutex_unlock(&cap_lock);
	if (e && !given) {
		graph_free(g);
		g = NULL;
	}
	*out = e ? NULL : (hipGraph_t)g;
	return e;
}

hipError_t i_hipStreamEndCapture_spt(hipStream_t h, hipGraph_t *out)
{
	return i_hipStreamEndCapture(SPT(h), out);
}

hipError_t i_hipStreamIsCapturing(hipStream_t h, hipStreamCaptureStatus *status)
{
	struct stream *s = stream_of(h);

	if (!status)
		return hipErrorInvalidValue;
	*status = hipStreamCaptureStatusNone;
	if (!h || h == LEGACY)
		return V6 && blocking_capture_on(cur_device(), NULL) ? hipErrorStreamCaptureImplicit : hipSuccess;
	if (h == hipStreamPerThread)
		return hipSuccess;
	if (!s)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&cap_lock);
	if (s->cap)
		*status = s->cap->invalid ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
	pthread_mutex_unlock(&cap_lock);
	return hipSuccess;
}

hipError_t i_hipStreamIsCapturing_spt(hipStream_t h, hipStreamCaptureStatus *status)
{
	return i_hipStreamIsCapturing(SPT(h), status);
}

hipError_t i_hipStreamGetCaptureInfo_v2(hipStream_t h, hipStreamCaptureStatus *status, unsigned long long *id, hipGraph_t *graph, const hipGraphNode_t **deps, size_t *n)
{
	struct stream *s = stream_of(h);
	hipError_t e = i_hipStreamIsCapturing(h, status);

	if (e || !s)
		return e;
	pthread_mutex_lock(&cap_lock);
	if (s->cap) {
		if (id)
			*id = s->cap->id;
		if (graph)
			*graph = (hipGraph_t)s->cap->graph;
		if (deps)
			*deps = (const hipGraphNode_t *)s->leaf;
		if (n)
			*n = s->nleaf;
	}
	pthread_mutex_unlock(&cap_lock);
	return hipSuccess;
}

hipError_t i_hipStreamGetCaptureInfo(hipStream_t h, hipStreamCaptureStatus *status, unsigned long long *id)
{
	return i_hipStreamGetCaptureInfo_v2(h, status, id, NULL, NULL, NULL);
}

hipError_t i_hipStreamGetCaptureInfo_spt(hipStream_t h, hipStreamCaptureStatus *status, unsigned long long *id)
{
	return i_hipStreamGetCaptureInfo(SPT(h), status, id);
}

hipError_t i_hipStreamGetCaptureInfo_v2_spt(hipStream_t h, hipStreamCaptureStatus *status, unsigned long long *id, hipGraph_t *graph, const hipGraphNode_t **deps, size_t *n)
{
	return i_hipStreamGetCaptureInfo_v2(SPT(h), status, id, graph, deps, n);
}

hipError_t i_hipStreamUpdateCaptureDependencies(hipStream_t h, hipGraphNode_t *deps, size_t n, unsigned flags)
{
	struct stream *s = stream_of(h);
	hipError_t e = hipSuccess;

	if (!s)
		return hipErrorContextIsDestroyed;
	if ((n && !deps) || flags > 1)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&cap_lock);
	if (!s->cap) {
		e = hipErrorIllegalState;
	} else if (flags == hipStreamSetCaptureDependencies) {
		set_leaf(s, (struct node *const *)deps, n);
	} else {
		struct node **all = malloc((s->nleaf + n + 1) * sizeof *all);

		if (!all)
			abort();
		if (s->nleaf)
			memcpy(all, s->leaf, s->nleaf * sizeof *all);
		if (n)
			memcpy(all + s->nleaf, deps, n * sizeof *all);
		set_leaf(s, all, s->nleaf + n);
		free(all);
	}
	pthread_mutex_unlock(&cap_lock);
	return e;
}

hipError_t i_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
	struct sim_thread *t = sim_self();
	int old = t->capture_mode;

	if (!mode || *mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	t->capture_mode = (int)*mode;
	*mode = (hipStreamCaptureMode)old;
	return hipSuccess;
}
