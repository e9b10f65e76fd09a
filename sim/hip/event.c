/* SPDX-License-Identifier: MIT */
/*
 * Events: records, queries, and waits of streams.
 *
 * Locks: an event's lock guards what it holds.
 */
#include <stdlib.h>

#include "device/command.h"
#include "device/device_queues.h"
#include "device/queue.h"
#include "device/record.h"
#include "device/shared_event.h"
#include "hip/capture.h"
#include "hip/capture_guard.h"
#include "hip/entry_points.h"
#include "hip/event.h"
#include "hip/handle.h"
#include "hip/pool.h"
#include "hip/submit.h"

/* hipEventDisableSystemFence, which Debian 12's header does not have. */
#define DISABLE_SYSTEM_FENCE 0x20000000u

hipError_t i_hipEventCreateWithFlags(hipEvent_t *out, unsigned flags)
{
	const unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess |
			       DISABLE_SYSTEM_FENCE | hipEventReleaseToDevice |
			       hipEventReleaseToSystem;

	if (!out || (flags & ~known))
		return hipErrorInvalidValue;
	if ((flags & hipEventReleaseToDevice) && (flags & hipEventReleaseToSystem))
		return hipErrorInvalidValue;
	if ((flags & hipEventInterprocess) && !(flags & hipEventDisableTiming))
		return hipErrorInvalidValue;
	*out = event_handle_new(flags);
	return *out ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t i_hipEventCreate(hipEvent_t *out)
{
	return i_hipEventCreateWithFlags(out, 0);
}

hipError_t i_hipEventDestroy(hipEvent_t h)
{
	struct sim_record *r;

	if (!h)
		return hipErrorInvalidHandle;
	if (!event_handle_free(h, &r))
		return hipErrorContextIsDestroyed;
	sim_record_unref(r);
	return hipSuccess;
}

static hipError_t record(hipEvent_t event, hipStream_t h)
{
	struct event *ev = event_of(event);
	struct sim_queue *q;
	struct stream *s;
	struct sim_record *r, *old;
	hipError_t e;

	if (!event)
		return hipErrorInvalidHandle;
	if (!ev)
		return hipErrorContextIsDestroyed;
	e = resolve(h, &q, &s);
	if (e)
		return e;
	if (q->device != ev->device) {
		sim_queue_unref(q);
		return hipErrorInvalidHandle;
	}
	if (atomic_load(&captures_live) && s && stream_capturing(s)) {
		bool ok = capture_record(s, ev);

		sim_queue_unref(q);
		return ok ? hipSuccess : hipErrorStreamCaptureInvalidated;
	}
	sim_queue_asked(q);
	r = sim_record_new(q);
	sim_enqueue(q, sim_record_command(r));
	pthread_mutex_lock(&ev->lock);
	old = ev->record;
	ev->record = r;
	ev->recorded_on = h;
	ev->capture_id = 0;
	free(ev->nodes);
	ev->nodes = NULL;
	ev->node_count = 0;
	if (ev->shared) {
		struct sim_command *d;

		ev->shared_seq = sim_shared_event_record(ev->shared);
		d = sim_shared_record_command(ev->shared, ev->shared_seq);
		pthread_mutex_unlock(&ev->lock);
		sim_enqueue(q, d);
	} else {
		pthread_mutex_unlock(&ev->lock);
	}
	sim_record_unref(old);
	sim_queue_unref(q);
	return hipSuccess;
}

hipError_t i_hipEventRecord(hipEvent_t event, hipStream_t h)
{
	return record(event, h);
}

hipError_t i_hipEventRecordWithFlags(hipEvent_t event, hipStream_t h, unsigned flags)
{
	return flags > 1 ? hipErrorInvalidValue : record(event, h);
}

struct sim_record *event_record_now(struct event *ev, struct sim_shared_event **shared, uint64_t *n)
{
	struct sim_record *r;

	pthread_mutex_lock(&ev->lock);
	r = sim_record_ref(ev->record);
	*shared = ev->shared;
	/* An event that was opened here has no record of its own: it follows its creator's. */
	*n = ev->shared_seq ? ev->shared_seq :
	     ev->shared     ? sim_shared_event_recorded(ev->shared) :
			      0;
	pthread_mutex_unlock(&ev->lock);
	return r;
}

/* May the application query the event, or wait for it? */
static hipError_t usable(hipEvent_t event, bool wait, struct event **ev)
{
	*ev = event_of(event);
	if (!event)
		return hipErrorInvalidHandle;
	if (!*ev)
		return hipErrorContextIsDestroyed;
	return atomic_load(&captures_live) ? guard_event(*ev, wait) : hipSuccess;
}

hipError_t i_hipEventQuery(hipEvent_t event)
{
	struct sim_shared_event *shared;
	struct sim_record *r;
	struct event *ev;
	hipError_t e = usable(event, false, &ev);
	uint64_t n;

	if (e)
		return e;
	r = event_record_now(ev, &shared, &n);
	if (shared)
		e = sim_shared_event_done(shared, n) ? hipSuccess : hipErrorNotReady;
	else
		e = !r || sim_record_done(r) ? hipSuccess : hipErrorNotReady;
	sim_record_unref(r);
	return e;
}

hipError_t i_hipEventSynchronize(hipEvent_t event)
{
	struct sim_shared_event *shared;
	struct sim_record *r;
	struct event *ev;
	hipError_t e = usable(event, true, &ev);
	uint64_t n;

	if (e)
		return e;
	r = event_record_now(ev, &shared, &n);
	if (shared)
		sim_shared_event_wait(shared, n);
	else if (r)
		sim_queue_wait(r->queue, r->seq);
	sim_record_unref(r);
	pools_release(ev->device);
	return hipSuccess;
}

hipError_t i_hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
	struct event *a = event_of(start), *b = event_of(stop);
	struct sim_shared_event *shared;
	struct sim_record *ra, *rb;
	hipError_t e = hipSuccess;
	uint64_t n;

	if (!ms)
		return hipErrorInvalidValue;
	if (!start || !stop)
		return hipErrorInvalidHandle;
	if (!a || !b)
		return hipErrorContextIsDestroyed;
	if ((a->flags | b->flags) & hipEventDisableTiming)
		return hipErrorInvalidHandle;
	ra = event_record_now(a, &shared, &n);
	rb = event_record_now(b, &shared, &n);
	if (!ra || !rb || ra->queue->device != rb->queue->device)
		e = hipErrorInvalidHandle;
	else if (!sim_record_done(ra) || !sim_record_done(rb))
		e = hipErrorNotReady;
	else
		*ms = (float)(int64_t)(atomic_load(&rb->time_ns) - atomic_load(&ra->time_ns)) /
		      1e6f;
	sim_record_unref(ra);
	sim_record_unref(rb);
	return e;
}

hipError_t i_hipStreamWaitEvent(hipStream_t h, hipEvent_t event, unsigned flags)
{
	struct sim_queue *q;
	struct stream *s;
	struct event *ev = event_of(event);
	struct sim_record *r;
	struct sim_shared_event *shared;
	uint64_t n;
	hipError_t e;

	if (!event)
		return hipErrorInvalidHandle;
	if (!ev)
		return hipErrorContextIsDestroyed;
	if (flags)
		return hipErrorInvalidValue;
	e = resolve(h, &q, &s);
	if (e)
		return e;
	if (atomic_load(&captures_live) && s && capture_wait(s, ev, &e)) {
		sim_queue_unref(q);
		return e;
	}
	/* The wait is for the record that the event holds now, not for later ones. */
	r = event_record_now(ev, &shared, &n);
	if (shared) {
		sim_enqueue(q, sim_shared_wait_command(shared, n));
	} else if (r && r->queue != q && !sim_record_done(r)) {
		struct sim_command *c = sim_marker();

		sim_command_depend(c, r->queue, r->seq);
		sim_enqueue(q, c);
	}
	sim_record_unref(r);
	sim_queue_unref(q);
	return hipSuccess;
}
