/* SPDX-License-Identifier: MIT */
/* Streams: creation, queries, waits, attributes, and host functions. */
#include <pthread.h>
#include <string.h>

#include "device/command.h"
#include "device/device_queues.h"
#include "device/host_call.h"
#include "device/queue.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/handle.h"
#include "hip/pool.h"
#include "hip/stream.h"
#include "hip/submit.h"
#include "hip/thread_state.h"
#include "hip/version.h"

hipError_t stream_create_on(int device, hipStream_t *out, unsigned flags, int priority)
{
	struct sim_queue *q;

	if (!out)
		return hipErrorInvalidValue;
	if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
		return hipErrorInvalidValue;
	q = sim_device_queue_new(device, flags != hipStreamNonBlocking);
	*out = stream_handle_new(q, flags, priority < -1 ? -1 : priority > 1 ? 1 : priority);
	if (!*out) {
		sim_queue_close(q);
		return hipErrorOutOfMemory;
	}
	return hipSuccess;
}

static hipError_t create(hipStream_t *out, unsigned flags, int priority)
{
	return stream_create_on(current_device(), out, flags, priority);
}

hipError_t i_hipStreamCreate(hipStream_t *s)
{
	return create(s, hipStreamDefault, 0);
}

hipError_t i_hipStreamCreateWithFlags(hipStream_t *s, unsigned flags)
{
	return create(s, flags, 0);
}

hipError_t i_hipStreamCreateWithPriority(hipStream_t *s, unsigned flags, int priority)
{
	return create(s, flags, priority);
}

hipError_t i_hipExtStreamCreateWithCUMask(hipStream_t *s, uint32_t n, const uint32_t *mask)
{
	hipError_t e;

	if (!s)
		return hipErrorInvalidHandle;
	if (!n || !mask)
		return hipErrorInvalidValue;
	e = create(s, hipStreamDefault, 0);
	if (!e)
		memcpy(stream_of(*s)->cumask, mask, (n > 8 ? 8 : n) * sizeof *mask);
	return e;
}

hipError_t i_hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 1;
	if (greatest)
		*greatest = -1;
	return hipSuccess;
}

hipError_t i_hipStreamDestroy(hipStream_t h)
{
	struct stream *s = stream_of(h);
	struct sim_queue *q;

	if (!h || h == STREAM_LEGACY || h == hipStreamPerThread)
		return hipErrorInvalidHandle;
	if (!s)
		return hipErrorContextIsDestroyed;
	capture_stream_destroyed(s);
	if (!stream_handle_free(h, &q))
		return hipErrorContextIsDestroyed;
	sim_queue_close(q);
	return hipSuccess;
}

/* Does a wait for h, whose queue is q, wait for the blocking streams as well? It does for the null
 * stream, but not if the handle is hipStreamLegacy and the release `asks` for that queue alone. */
static bool joins_for_wait(hipStream_t h, const struct sim_queue *q, bool asks)
{
	return q->is_null && !(asks && h == STREAM_LEGACY);
}

hipError_t i_hipStreamQuery(hipStream_t h)
{
	struct sim_queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);
	bool done;

	if (e)
		return e;
	if (s && s->spoiled && V7) {
		sim_queue_unref(q);
		return hipErrorStreamCaptureUnsupported;
	}
	if (atomic_load(&captures_live)) {
		e = s ? guard_stream(s) : hipSuccess;
		if (!e && !(s && stream_capturing(s)))
			e = guard_unsafe();
		if (e) {
			sim_queue_unref(q);
			return e;
		}
	}
	sim_queue_asked(q);
	done = joins_for_wait(h, q, V6) ? sim_null_idle(q->device) :
					  sim_queue_done(q, atomic_load(&q->enqueued));
	sim_queue_unref(q);
	return done ? hipSuccess : hipErrorNotReady;
}

static void sync_end(void *q)
{
	sim_queue_sync_end(q);
}

hipError_t i_hipStreamSynchronize(hipStream_t h)
{
	struct sim_queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);

	if (e)
		return e;
	/* Quirk capture-spoils: after a capture that failed, the stream seems to capture. */
	if (s && s->spoiled && V7) {
		sim_queue_unref(q);
		return hipErrorStreamCaptureUnsupported;
	}
	if (atomic_load(&captures_live)) {
		e = s ? guard_stream(s) : hipSuccess;
		if (!e)
			e = guard_unsafe();
		if (e) {
			sim_queue_unref(q);
			return e;
		}
	}
	sim_queue_sync_begin(q);
	pthread_cleanup_push(sync_end, q); /* a program may cancel a thread that waits */
	if (joins_for_wait(h, q, V7))
		sim_queue_drain(q);
	else
		sim_queue_wait(q, atomic_load(&q->enqueued));
	pthread_cleanup_pop(1);
	pools_release(q->device);
	sim_queue_unref(q);
	return hipSuccess;
}

/* For a question about a stream, to be answered in *out. *s is NULL for the default streams. */
static hipError_t asked_about(hipStream_t h, const void *out, struct stream **s)
{
	*s = stream_of(h);
	if (!out)
		return hipErrorInvalidValue;
	if (h && h != STREAM_LEGACY && h != hipStreamPerThread && !*s)
		return hipErrorContextIsDestroyed;
	return hipSuccess;
}

hipError_t i_hipStreamGetFlags(hipStream_t h, unsigned *flags)
{
	struct stream *s;
	hipError_t e = asked_about(h, flags, &s);

	if (!e)
		*flags = s ? s->flags : 0;
	return e;
}

hipError_t i_hipStreamGetPriority(hipStream_t h, int *priority)
{
	struct stream *s;
	hipError_t e = asked_about(h, priority, &s);

	if (!e)
		*priority = s ? s->priority : 0;
	return e;
}

hipError_t i_hipStreamGetDevice(hipStream_t h, hipDevice_t *device)
{
	struct stream *s;
	hipError_t e = asked_about(h, device, &s);

	if (!e)
		*device = s ? s->device : current_device();
	return e;
}

#pragma GCC visibility push(default)
int hipGetStreamDeviceId(hipStream_t h)
{
	struct stream *s = stream_of(h);

	return s ? s->device : h ? -1 : current_device();
}
#pragma GCC visibility pop

hipError_t i_hipStreamAttachMemAsync(hipStream_t h, void *p, size_t n, unsigned flags)
{
	return p ? submit(h, sim_marker(), false) : hipErrorInvalidValue;
}

static void destroy_stream(struct stream *s)
{
	struct sim_queue *q;

	capture_stream_destroyed(s);
	if (stream_handle_free((hipStream_t)s, &q))
		sim_queue_close(q);
}

void streams_reset(int device)
{
	stream_each(device, destroy_stream);
}

/* ---- host functions ---- */

hipError_t i_hipLaunchHostFunc(hipStream_t h, hipHostFn_t fn, void *arg)
{
	return fn ? submit(h, sim_host_command(fn, arg), false) : hipErrorInvalidValue;
}

/* The arguments of hipStreamAddCallback. */
struct callback {
	hipStreamCallback_t fn;
	hipStream_t stream;
	void *arg;
};

static void call_back(void *arg)
{
	struct callback *b = arg;

	b->fn(b->stream, hipSuccess, b->arg);
}

hipError_t i_hipStreamAddCallback(hipStream_t h, hipStreamCallback_t fn, void *arg, unsigned flags)
{
	struct sim_command *c;
	struct callback *b;

	if (!fn || flags)
		return hipErrorInvalidValue;
	b = sim_blob_new(sizeof *b, NULL);
	*b = (struct callback){fn, h, arg};
	c = sim_host_command(call_back, b);
	c->owned = b;
	return submit(h, c, false);
}

/* ---- test control, found by dlsym ---- */

#pragma GCC visibility push(default)
int somasim_stall_stream(hipStream_t h);
int somasim_release_stream(hipStream_t h);
int somasim_synchronizing(hipStream_t h);
#pragma GCC visibility pop

static int stall(hipStream_t h, bool on)
{
	struct sim_queue *q;
	struct stream *s;

	if (resolve_detached(h, &q, &s))
		return -1;
	sim_queue_stall(q, on);
	sim_queue_unref(q);
	return 0;
}

int somasim_stall_stream(hipStream_t h)
{
	return stall(h, true);
}

int somasim_release_stream(hipStream_t h)
{
	return stall(h, false);
}

int somasim_synchronizing(hipStream_t h)
{
	struct sim_queue *q;
	struct stream *s;
	int threads;

	if (resolve_detached(h, &q, &s))
		return -1;
	threads = atomic_load(&q->synchronizers);
	sim_queue_unref(q);
	return threads;
}
