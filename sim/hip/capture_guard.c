/* SPDX-License-Identifier: MIT */
/*
 * The capture table: which calls are legal while some stream captures, and which invalidate the
 * capture, by release and mode.
 *
 * Locks: capture_lock (capture.c).
 */
#include "device/macros.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/capture_state.h"
#include "hip/handle.h"
#include "hip/thread_state.h"
#include "hip/version.h"

/* CHECK_STREAM_CAPTURE_SUPPORTED of the real runtime. */
hipError_t guard_unsafe(void)
{
	int mode;
	bool hit = false;

	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)))
		return hipSuccess;
	mode = thread_state()->capture_mode;
	if (mode == hipStreamCaptureModeRelaxed)
		return hipSuccess;
	pthread_mutex_lock(&capture_lock);
	for (struct capture *c = captures; c; c = c->next) {
		bool mine = c->mode != hipStreamCaptureModeRelaxed &&
			    pthread_equal(c->thread, pthread_self());
		bool global = mode == hipStreamCaptureModeGlobal &&
			      c->mode == hipStreamCaptureModeGlobal;

		if (!mine && !global)
			continue;
		hit = true;
		if (V6)
			c->invalid = true;
	}
	pthread_mutex_unlock(&capture_lock);
	return hit ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

/* Fails with e if any thread captures (in global mode, with global_only set), and then
 * invalidates those captures if told to. */
static hipError_t guard_any(hipError_t e, bool global_only, bool invalidate)
{
	bool hit = false;

	pthread_mutex_lock(&capture_lock);
	for (struct capture *c = captures; c; c = c->next) {
		if (global_only && c->mode != hipStreamCaptureModeGlobal)
			continue;
		hit = true;
		if (invalidate)
			c->invalid = true;
	}
	pthread_mutex_unlock(&capture_lock);
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

/* These calls fail if there is a capture in global mode, or a thread-local one of this thread.
 * The thread's own mode does not matter, and the capture stays valid. */
hipError_t guard_mempool(void)
{
	bool hit = false;

	if (likely(!atomic_load_explicit(&captures_live, memory_order_acquire)) || !V7)
		return hipSuccess;
	pthread_mutex_lock(&capture_lock);
	for (struct capture *c = captures; c; c = c->next)
		hit |= c->mode == hipStreamCaptureModeGlobal ||
		       (c->mode == hipStreamCaptureModeThreadLocal &&
			pthread_equal(c->thread, pthread_self()));
	pthread_mutex_unlock(&capture_lock);
	return hit ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

hipError_t guard_stream(struct stream *s)
{
	hipError_t e = hipSuccess;

	pthread_mutex_lock(&capture_lock);
	if (s->capture) {
		e = hipErrorStreamCaptureUnsupported;
		if (V6)
			s->capture->invalid = true;
	}
	pthread_mutex_unlock(&capture_lock);
	return e;
}

/* The capture to which an event belongs, or NULL. On 6.4.3 an event also belongs to the
 * capture of the stream on which it was last recorded, however long ago, and even if the
 * handle is another stream's by now. 5.7.1 and 7.2.4 do not do this. (All observed.) */
static struct capture *capture_of(struct event *ev)
{
	struct capture *c = capture_by_id(ev->capture_id);
	struct stream *s = stream_of(ev->recorded_on);

	return c || !V6 || V7 || !s ? c : s->capture;
}

hipError_t guard_event(struct event *ev, bool sync)
{
	struct capture *c;

	pthread_mutex_lock(&capture_lock);
	c = capture_of(ev);
	if (c && V6)
		c->invalid = true;
	pthread_mutex_unlock(&capture_lock);
	if (c)
		return V6 ? hipErrorCapturedEvent : hipSuccess;
	return sync || V7 ? guard_unsafe() : hipSuccess;
}

bool blocking_capture_on(int device, struct stream *except)
{
	bool hit = false;

	pthread_mutex_lock(&capture_lock);
	for (struct capture *c = captures; c; c = c->next)
		for (size_t i = 0; i < c->stream_count; i++)
			if (c->streams[i] != except && c->streams[i]->device == device &&
			    c->streams[i]->flags != hipStreamNonBlocking)
				hit = true;
	pthread_mutex_unlock(&capture_lock);
	return hit;
}
