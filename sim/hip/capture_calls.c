/* SPDX-License-Identifier: MIT */
/*
 * The entry points of stream capture.
 *
 * Locks: capture_lock (capture.c). The graphs' lock is taken inside it.
 */
#include <stdlib.h>
#include <string.h>

#include "device/options.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/capture_state.h"
#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/handle.h"
#include "hip/submit.h"
#include "hip/thread_state.h"
#include "hip/version.h"

static uint64_t last_id; /* of a capture; under capture_lock */

static hipError_t begin(hipStream_t h, hipStreamCaptureMode mode, struct graph *given,
			struct node *const *deps, size_t n)
{
	struct stream *s = stream_of(h);
	struct capture *c;

	if (!h || h == STREAM_LEGACY)
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
	pthread_mutex_lock(&capture_lock);
	if (s->capture) {
		pthread_mutex_unlock(&capture_lock);
		free(c);
		return hipErrorIllegalState;
	}
	c->id = ++last_id;
	c->mode = mode;
	c->origin = s;
	c->thread = pthread_self();
	c->graph = given ? given : graph_new();
	c->given = given != NULL;
	capture_join(c, s);
	capture_set_leaf(s, deps, n);
	capture_start(c);
	pthread_mutex_unlock(&capture_lock);
	return hipSuccess;
}

hipError_t i_hipStreamBeginCapture(hipStream_t h, hipStreamCaptureMode mode)
{
	return begin(h, mode, NULL, NULL, 0);
}

hipError_t i_hipStreamBeginCaptureToGraph(hipStream_t h, hipGraph_t graph,
					  const hipGraphNode_t *deps, const void *edges, size_t n,
					  hipStreamCaptureMode mode)
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
	if (!h || h == STREAM_LEGACY || h == hipStreamPerThread)
		return hipErrorIllegalState;
	if (!s)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&capture_lock);
	c = s->capture;
	if (!c)
		e = hipErrorIllegalState;
	else if (c->origin != s)
		e = hipErrorStreamCaptureUnmatched;
	else if (c->mode != hipStreamCaptureModeRelaxed &&
		 !pthread_equal(c->thread, pthread_self()))
		e = hipErrorStreamCaptureWrongThread;
	if (e) {
		pthread_mutex_unlock(&capture_lock);
		return e;
	}
	if (c->invalid) {
		e = hipErrorStreamCaptureInvalidated;
		s->spoiled = sim_opt.quirk[SIM_Q_CAPTURE_SPOILS];
	} else {
		for (size_t i = 0; i < c->stream_count && !e; i++)
			if (c->streams[i] != s &&
			    !graph_joined(s->leaf, s->leaf_count, c->streams[i]->leaf,
					  c->streams[i]->leaf_count))
				e = hipErrorStreamCaptureUnjoined;
		if (s->spoiled && !e) {
			c->graph->spoiled = true;
			s->spoiled = false;
		}
	}
	given = c->given;
	g = capture_finish(c);
	pthread_mutex_unlock(&capture_lock);
	if (e && !given) {
		graph_free(g);
		g = NULL;
	}
	*out = e ? NULL : (hipGraph_t)g;
	return e;
}

hipError_t i_hipStreamIsCapturing(hipStream_t h, hipStreamCaptureStatus *status)
{
	struct stream *s = stream_of(h);

	if (!status)
		return hipErrorInvalidValue;
	*status = hipStreamCaptureStatusNone;
	if (!h || h == STREAM_LEGACY)
		return V6 && blocking_capture_on(current_device(), NULL) ?
			       hipErrorStreamCaptureImplicit :
			       hipSuccess;
	if (h == hipStreamPerThread)
		return hipSuccess;
	if (!s)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&capture_lock);
	if (s->capture)
		*status = s->capture->invalid ? hipStreamCaptureStatusInvalidated :
						hipStreamCaptureStatusActive;
	pthread_mutex_unlock(&capture_lock);
	return hipSuccess;
}

hipError_t i_hipStreamGetCaptureInfo_v2(hipStream_t h, hipStreamCaptureStatus *status,
					unsigned long long *id, hipGraph_t *graph,
					const hipGraphNode_t **deps, size_t *n)
{
	struct stream *s = stream_of(h);
	hipError_t e = i_hipStreamIsCapturing(h, status);

	if (e || !s)
		return e;
	pthread_mutex_lock(&capture_lock);
	if (s->capture) {
		if (id)
			*id = s->capture->id;
		if (graph)
			*graph = (hipGraph_t)s->capture->graph;
		if (deps)
			*deps = (const hipGraphNode_t *)s->leaf;
		if (n)
			*n = s->leaf_count;
	}
	pthread_mutex_unlock(&capture_lock);
	return hipSuccess;
}

hipError_t i_hipStreamGetCaptureInfo(hipStream_t h, hipStreamCaptureStatus *status,
				     unsigned long long *id)
{
	return i_hipStreamGetCaptureInfo_v2(h, status, id, NULL, NULL, NULL);
}

hipError_t i_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
	int old = thread_state()->capture_mode;

	if (!mode || *mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	thread_state()->capture_mode = (int)*mode;
	*mode = (hipStreamCaptureMode)old;
	return hipSuccess;
}
