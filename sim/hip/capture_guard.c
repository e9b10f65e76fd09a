/* SPDX-License-Identifier: MIT */
/*
 * What calls beside a capture may do, and which of them lose it: the capture
 * table, by version and mode.
 *
 * Locks: cap_lock (capture.c).
 */
#include "capture.h"

/* CHECK_STREAM_CAPTURE_SUPPORTED: calls that may wait or touch the device. */
hipError_t guard_unsafe(void)
{
	int mode;
	bool hit = false;

	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)))
		return hipSuccess;
	mode = sim_self()->capture_mode;
	if (mode == hipStreamCaptureModeRelaxed)
		return hipSuccess;
	pthread_mutex_lock(&cap_lock);
	for (struct capture *c = captures; c; c = c->next) {
		bool mine = c->mode != hipStreamCaptureModeRelaxed && pthread_equal(c->thread, pthread_self());
		bool global = mode == hipStreamCaptureModeGlobal && c->mode == hipStreamCaptureModeGlobal;

		if (!mine && !global)
			continue;
		hit = true;
		if (V6)
			c->invalid = true;
	}
	pthread_mutex_unlock(&cap_lock);
	return hit ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

/* Any capture at all, whoever began it and in which mode. */
static hipError_t guard_any(hipError_t e, bool global_only, bool inv)
{
	bool hit = false;

	pthread_mutex_lock(&cap_lock);
	for (struct capture *c = captures; c; c = c->next) {
		if (global_only && c->mode != hipStreamCaptureModeGlobal)
			continue;
		hit = true;
		if (inv)
			c->invalid = true;
	}
	pthread_mutex_unlock(&cap_lock);
	return hit ? e : hipSuccess;
}

hipError_t guard_sync_copy(void)
{
	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)))
		return hipSuccess;
	return guard_any(hipErrorStreamCaptureImplicit, !V6, V6);
}

hipError_t guard_device_sync(void)
{
	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)) || !V6)
		return hipSuccess;
	return guard_any(hipErrorStreamCaptureUnsupported, false, true);
}

/* Pools as objects: beside a capture in global mode, or one of this thread that is not
 * relaxed. The thread's own mode is not asked, and the capture lives on. */
hipError_t guard_mempool(void)
{
	bool hit = false;

	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)) || !V7)
		return hipSuccess;
	pthread_mutex_lock(&cap_lock);
	for (struct capture *c = captures; c; c = c->next)
		hit |= c->mode == hipStreamCaptureModeGlobal ||
		       (c->mode == hipStreamCaptureModeThreadLocal &&
			pthread_equal(c->thread, pthread_self()));
	pthread_mutex_unlock(&cap_lock);
	return hit ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t guard_stream(struct stream *s)
{
	hipError_t e = hipSuccess;

	pthread_mutex_lock(&cap_lock);
	if (s->cap) {
		e = hipErrorStreamCaptureUnsupported;
		if (V6)
			s->cap->invalid = true;
	}
	pthread_mutex_unlock(&cap_lock);
	return e;
}

/* 6.4.3 takes an event for a captured one when the stream on which it was last recorded is
 * captured now, however long before that was, and be it another stream of the same handle;
 * in every mode. (5.7.1 and 7.2.4 do not; observed.) */
static struct capture *capture_of(struct event *ev)
{
	struct capture *c = capture_by_id(ev->cap_id);
	struct stream *s = stream_of(ev->on);

	return c || !V6 || V7 || !s ? c : s->cap;
}

hipError_t guard_event_query(struct event *ev, bool sync)
{
	struct capture *c;

	pthread_mutex_lock(&cap_lock);
	c = capture_of(ev);
	if (c && V6)
		c->invalid = true;
	pthread_mutex_unlock(&cap_lock);
	if (c)
		return V6 ? hipErrorCapturedEvent : hipSuccess;
	return sync || V7 ? guard_unsafe() : hipSuccess;
}

bool blocking_capture_on(int device, struct stream *except)
{
	bool hit = false;

	pthread_mutex_lock(&cap_lock);
	for (struct capture *c = captures; c; c = c->next)
		for (size_t i = 0; i < c->nstreams; i++)
			if (c->streams[i] != except && c->streams[i]->device == device &&
			    c->streams[i]->flags != hipStreamNonBlocking)
				hit = true;
	pthread_mutex_unlock(&cap_lock);
	return hit;
}

bool stream_capturing(struct stream *s)
{
	bool yes;

	if (!s || !atomic_load(&captures_live))
		return false;
	pthread_mutex_lock(&cap_lock);
	yes = s->cap != NULL;
	pthread_mutex_unlock(&cap_lock);
	return yes;
}
