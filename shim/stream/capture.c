/* SPDX-License-Identifier: MIT */
/*
 * The streams that are being captured, and the begin call of each capture. A capture starts with a
 * begin call, spreads to a stream that waits for an event recorded in the capture, and ends for all
 * its streams with the end call on the stream where the capture began. Fast paths only read the
 * counter ss_captures.
 *
 * Locks: capture_lock (streams, events). Leaf; not held across a call.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "driver/rocm/resolve.h"
#include "shim/alloc/device_wait.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/pools.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/stream/capture.h"
#include "shim/stream/timeline.h"

struct member {
	struct ss_timeline *tl;     /* the stream */
	struct ss_timeline *origin; /* the stream where its capture began */
	hipStreamCaptureMode mode;  /* mode of the capture */
	pthread_t thread;           /* thread that began the capture */
	UT_hash_handle hh;
};

struct captured_event {
	hipEvent_t event;
	struct ss_timeline *origin;
	UT_hash_handle hh;
};

static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
static struct member *members;
static struct captured_event *events;

static bool joins_null(const struct ss_timeline *tl)
{
	return ss_timeline_kind(tl) != SS_TL_NONBLOCKING;
}

static void live(int more)
{
	atomic_fetch_add(&ss_captures, more);
	ss_slow_reasons_add(more);
}

/* Lock held. `by`: the member whose capture tl joins, or NULL if tl begins a capture. False: out of
 * host memory, or tl is in a capture already. */
static bool member_add(struct ss_timeline *tl, const struct member *by, hipStreamCaptureMode mode)
{
	struct ss_timeline *origin = by ? by->origin : tl;
	struct member *m;

	HASH_FIND_PTR(members, &tl, m);
	if (m)
		return false;
	m = calloc(1, sizeof(*m));
	if (!m)
		return false;
	m->tl = tl;
	m->origin = origin;
	m->mode = by ? by->mode : mode;
	m->thread = by ? by->thread : pthread_self();
	HASH_ADD_PTR(members, tl, m);
	if (!SS_HASH_HAS(m)) {
		free(m);
		return false;
	}
	if (tl == origin)
		live(1);
	if (joins_null(tl))
		atomic_fetch_add(&ss_captures_blocking, 1);
	return true;
}

static void member_drop(struct member *m)
{
	HASH_DEL(members, m);
	ss_timeline_set_capturing(ss_core, m->tl, false);
	if (joins_null(m->tl))
		atomic_fetch_sub(&ss_captures_blocking, 1);
	if (m->tl == m->origin)
		live(-1);
	free(m);
}

/* The capture that began on `origin` is over. */
static void end(struct ss_timeline *origin)
{
	struct member *m, *next_m;
	struct captured_event *e, *next_e;

	pthread_mutex_lock(&capture_lock);
	HASH_ITER(hh, events, e, next_e)
		if (e->origin == origin) {
			HASH_DEL(events, e);
			free(e);
		}
	HASH_ITER(hh, members, m, next_m)
		if (m->origin == origin)
			member_drop(m);
	pthread_mutex_unlock(&capture_lock);
}

bool ss_capture_has_event(hipEvent_t event)
{
	struct captured_event *e;

	pthread_mutex_lock(&capture_lock);
	HASH_FIND_PTR(events, &event, e);
	pthread_mutex_unlock(&capture_lock);
	return e != NULL;
}

void ss_capture_event_set(hipEvent_t event, struct ss_timeline *tl)
{
	struct captured_event *e;
	struct member *m;

	pthread_mutex_lock(&capture_lock);
	HASH_FIND_PTR(members, &tl, m);
	HASH_FIND_PTR(events, &event, e);
	if (m && !e) {
		e = calloc(1, sizeof(*e));
		if (e) {
			e->event = event;
			HASH_ADD_PTR(events, event, e);
			if (!SS_HASH_HAS(e)) {
				free(e);
				e = NULL;
			}
		}
	}
	if (m && e)
		e->origin = m->origin;
	pthread_mutex_unlock(&capture_lock);
}

void ss_capture_event_clear(hipEvent_t event)
{
	struct captured_event *e;

	pthread_mutex_lock(&capture_lock);
	HASH_FIND_PTR(events, &event, e);
	if (e) {
		HASH_DEL(events, e);
		free(e);
	}
	pthread_mutex_unlock(&capture_lock);
}

/* Waits for the calls that enqueue work on the stream, or query the stream, right now. */
static void begin(hipStream_t stream, struct ss_timeline *tl)
{
	ss_timeline_set_capturing(ss_core, tl, true);
	ss_stream_pins_pass(stream);
}

bool ss_capture_join(hipStream_t stream, struct ss_timeline *tl, hipEvent_t event)
{
	struct captured_event *e;
	struct member *by = NULL;
	bool added = false;

	pthread_mutex_lock(&capture_lock);
	HASH_FIND_PTR(events, &event, e);
	if (e)
		HASH_FIND_PTR(members, &e->origin, by);
	if (by)
		added = member_add(tl, by, by->mode);
	pthread_mutex_unlock(&capture_lock);
	if (added)
		begin(stream, tl);
	return added;
}

/* Does the capture of m's stream restrict the calling thread? A capture in thread-local mode
 * restricts its own thread only. */
static bool concerns_me(const struct member *m)
{
	return m->mode == hipStreamCaptureModeGlobal ||
	       (m->mode == hipStreamCaptureModeThreadLocal &&
		pthread_equal(m->thread, pthread_self()));
}

/* As in the runtime from 6.0 on: while a blocking stream of the device is captured, hipMallocAsync
 * on another stream is an error, and the capture goes on. The call is no error if the capture or
 * the calling thread is in relaxed mode, in which the runtime's error is a defect (known problem
 * C13). */
bool ss_capture_refuses_alloc(int dev)
{
	hipStreamCaptureMode mine = hipStreamCaptureModeRelaxed;
	struct member *m, *next;
	bool refuses = false;

	if (ss_runtime()->major < 6)
		return false;
	pthread_mutex_lock(&capture_lock);
	HASH_ITER(hh, members, m, next)
		refuses |= joins_null(m->tl) && ss_timeline_device(m->tl) == dev && concerns_me(m);
	pthread_mutex_unlock(&capture_lock);
	if (!refuses || REAL(hipThreadExchangeStreamCaptureMode, &mine) != hipSuccess)
		return refuses;
	refuses = mine != hipStreamCaptureModeRelaxed;
	(void)REAL(hipThreadExchangeStreamCaptureMode, &mine);
	return refuses;
}

/* The rule for pools.c. From 7.0 on the runtime neither creates nor destroys a pool, nor makes a
 * pool current, during a capture in global mode, or during a capture of the calling thread in
 * thread-local mode. The thread's own mode and the device do not matter, and the capture goes
 * on. */
static bool forbids_pools(void)
{
	struct member *m, *next;
	bool forbids = false;

	if (ss_runtime()->major < 7)
		return false;
	pthread_mutex_lock(&capture_lock);
	HASH_ITER(hh, members, m, next)
		forbids |= concerns_me(m);
	pthread_mutex_unlock(&capture_lock);
	return forbids;
}

void ss_capture_drop_stream(struct ss_timeline *tl)
{
	struct member *m;
	bool origin;

	pthread_mutex_lock(&capture_lock);
	HASH_FIND_PTR(members, &tl, m);
	origin = m && m->origin == tl;
	if (m && !origin)
		member_drop(m);
	pthread_mutex_unlock(&capture_lock);
	if (origin)
		end(tl);
}

/* A reset destroys the streams of the device, and ends their captures. */
void ss_capture_drop_device(int dev)
{
	struct member *m, *next;
	struct ss_timeline *tl;

	while (ss_capture_live()) {
		tl = NULL;
		pthread_mutex_lock(&capture_lock);
		HASH_ITER(hh, members, m, next)
			if (ss_timeline_device(m->tl) == dev)
				tl = m->tl;
		pthread_mutex_unlock(&capture_lock);
		if (!tl)
			break;
		ss_capture_drop_stream(tl);
	}
}

/* ---- the calls ---------------------------------------------------------- */

/* Called before the real begin, so that nothing of ours is enqueued on the stream once the stream
 * captures. The caller undoes the announcement if the real call fails. False: out of host memory,
 * then the capture must not begin. */
static bool announce(hipStream_t stream, struct ss_timeline *tl, hipStreamCaptureMode mode,
		     bool *added)
{
	*added = false;
	ss_pools_set_capture_rule(forbids_pools);
	if (!tl)
		return true;
	pthread_mutex_lock(&capture_lock);
	*added = member_add(tl, NULL, mode);
	pthread_mutex_unlock(&capture_lock);
	if (*added)
		begin(stream, tl);
	return *added || ss_timeline_capturing(tl);
}

#define RETURN_CAPTURE(handle, mode, name, ...) do { \
	struct ss_timeline *tl_ = ss_stream_or_null(handle); \
	hipError_t e_; \
	bool added_; \
	if (!announce(handle, tl_, mode, &added_)) \
		return ss_fail(hipErrorOutOfMemory); \
	e_ = REAL(name, __VA_ARGS__); \
	if (added_ && e_ != hipSuccess) \
		end(tl_); \
	return ss_result(e_); \
} while (0)

hipError_t do_hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
	RETURN_CAPTURE(stream, mode, hipStreamBeginCapture, stream, mode);
}

hipError_t do_hipStreamBeginCapture_spt(hipStream_t stream, hipStreamCaptureMode mode)
{
	RETURN_CAPTURE(ss_spt_stream(stream), mode, hipStreamBeginCapture_spt, stream, mode);
}

hipError_t do_hipStreamBeginCaptureToGraph(hipStream_t stream, hipGraph_t graph,
					   const hipGraphNode_t *deps, const SS_EDGE_DATA *data,
					   size_t count, hipStreamCaptureMode mode)
{
	RETURN_CAPTURE(stream, mode, hipStreamBeginCaptureToGraph, stream, graph, deps, data, count,
		       mode);
}

/* A failed end may have ended the capture (invalidated, unjoined) or not (another thread's).
 * Only the runtime knows. */
static hipError_t ended(hipStream_t stream, struct ss_timeline *tl, hipError_t err)
{
	hipStreamCaptureStatus status = hipStreamCaptureStatusNone;

	if (!tl || !ss_timeline_capturing(tl))
		return ss_result(err);
	if (err != hipSuccess && (REAL(hipStreamIsCapturing, stream, &status) != hipSuccess ||
				  status != hipStreamCaptureStatusNone))
		return ss_fail(err);
	end(tl);
	return err == hipSuccess ? ss_result(err) : ss_fail(err);
}

hipError_t do_hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
	struct ss_timeline *tl = ss_stream_or_null(stream);

	return ended(stream, tl, REAL(hipStreamEndCapture, stream, graph));
}

hipError_t do_hipStreamEndCapture_spt(hipStream_t stream, hipGraph_t *graph)
{
	struct ss_timeline *tl = ss_stream_or_null(ss_spt_stream(stream));

	return ended(ss_spt_stream(stream), tl, REAL(hipStreamEndCapture_spt, stream, graph));
}
