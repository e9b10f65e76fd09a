/* SPDX-License-Identifier: MIT */
/*
 * Events, those of this process and those shared with others.
 *
 * Locks: an event's slot lock guards what it holds; nothing is called with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "hip.h"

/* One shared page: how often the event was recorded, how far that went. */
struct ipc_event {
	_Atomic uint64_t recorded, done;
	_Atomic uint32_t owner;
	int fd;                       /* the creator's descriptor */
};

hipError_t i_hipEventCreateWithFlags(hipEvent_t *out, unsigned flags)
{
	const unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess |
		0x20000000u /* hipEventDisableSystemFence */ | hipEventReleaseToDevice | hipEventReleaseToSystem;

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

static hipError_t record(hipEvent_t event, hipStream_t h)
{
	struct event *ev = event_of(event);
	struct queue *q;
	struct stream *s;
	struct rec *r, *old;
	struct cmd *c;
	hipError_t e;

	if (!event)
		return hipErrorInvalidHandle;
	if (!ev)
		return hipErrorContextIsDestroyed;
	e = resolve(h, &q, &s);
	if (e)
		return e;
	if (q->device != ev->device) {
		queue_unref(q);
		return hipErrorInvalidHandle;
	}
	if (atomic_load(&captures_live) && s && stream_capturing(s)) {
		bool ok = capture_record(s, ev);

		queue_unref(q);
		return ok ? hipSuccess : hipErrorStreamCaptureInvalidated;
	}
	r = rec_new(q);
	c = cmd_new(C_RECORD);
	c->rec = rec_ref(r);
	enqueue(q, c);
	pthread_mutex_lock(&ev->lock);
	old = ev->rec;
	ev->rec = r;
	ev->on = h;
	ev->cap_id = 0;
	free(ev->nodes);
	ev->nodes = NULL;
	ev->nnodes = 0;
	if (ev->ipc) {
		uint64_t n = atomic_fetch_add(&ev->ipc->recorded, 1) + 1;
		struct cmd *d = cmd_new(C_IPC_RECORD);

		ev->ipc_seq = n;
		d->ipc.ev = ev->ipc;
		d->ipc.n = n;
		pthread_mutex_unlock(&ev->lock);
		enqueue(q, d);
	} else {
		pthread_mutex_unlock(&ev->lock);
	}
	rec_unref(old);
	queue_unref(q);
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

static struct rec *held(struct event *ev, struct ipc_event **ipc, uint64_t *n)
{
	struct rec *r;

	pthread_mutex_lock(&ev->lock);
	r = rec_ref(ev->rec);
	*ipc = ev->ipc;
	*n = ev->ipc_seq ? ev->ipc_seq : ev->ipc ? atomic_load(&ev->ipc->recorded) : 0;
	pthread_mutex_unlock(&ev->lock);
	return r;
}

hipError_t i_hipEventQuery(hipEvent_t event)
{
	struct event *ev = event_of(event);
	struct ipc_event *ipc;
	struct rec *r;
	hipError_t e;
	uint64_t n;

	if (!event)
		return hipErrorInvalidHandle;
	if (!ev)
		return hipErrorContextIsDestroyed;
	if (atomic_load(&captures_live) && (e = guard_event_query(ev, false)))
		return e;
	r = held(ev, &ipc, &n);
	if (ipc)
		e = atomic_load(&ipc->done) >= n ? hipSuccess : hipErrorNotReady;
	else
		e = !r || rec_done(r) ? hipSuccess : hipErrorNotReady;
	rec_unref(r);
	return e;
}

hipError_t i_hipEventSynchronize(hipEvent_t event)
{
	struct event *ev = event_of(event);
	struct ipc_event *ipc;
	struct rec *r;
	hipError_t e;
	uint64_t n;

	if (!event)
		return hipErrorInvalidHandle;
	if (!ev)
		return hipErrorContextIsDestroyed;
	if (atomic_load(&captures_live) && (e = guard_event_query(ev, true)))
		return e;
	r = held(ev, &ipc, &n);
	if (ipc)
		ipc_event_wait(ipc, n);
	else if (r)
		queue_wait(r->q, r->seq);
	rec_unref(r);
	pools_release(ev->device);
	return hipSuccess;
}

hipError_t i_hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
	struct event *a = event_of(start), *b = event_of(stop);
	struct ipc_event *ipc;
	struct rec *ra, *rb;
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
	ra = held(a, &ipc, &n);
	rb = held(b, &ipc, &n);
	if (!ra || !rb || ra->q->device != rb->q->device)
		e = hipErrorInvalidHandle;
	else if (!rec_done(ra) || !rec_done(rb))
		e = hipErrorNotReady;
	else
		*ms = (float)(int64_t)(atomic_load(&rb->t) - atomic_load(&ra->t)) / 1e6f;
	rec_unref(ra);
	rec_unref(rb);
	return e;
}

/* ---- between processes ---- */

void ipc_event_done(struct ipc_event *ev, uint64_t n)
{
	atomic_store(&ev->done, n);
}

void ipc_event_wait(struct ipc_event *ev, uint64_t n)
{
	struct timespec ts = { 0, 50000 };

	while (atomic_load(&ev->done) < n)
		nanosleep(&ts, NULL);
}

/* An opened event has no record of its own: it follows its creator's. */
uint64_t ipc_event_recorded(struct ipc_event *ev)
{
	return atomic_load(&ev->recorded);
}

struct event_handle {
	uint32_t magic, pid;
	int32_t fd;
};
#define EVENT_HANDLE 0x45484e44u

hipError_t i_hipIpcGetEventHandle(hipIpcEventHandle_t *out, hipEvent_t event)
{
	struct event *ev = event_of(event);
	struct event_handle h = { EVENT_HANDLE, (uint32_t)getpid(), -1 };
	struct ipc_event *p;

	if (!out)
		return hipErrorInvalidValue;
	if (!ev)
		return hipErrorInvalidHandle;
	if (!(ev->flags & hipEventInterprocess))
		return hipErrorInvalidHandle;
	if (!ev->ipc) {
		int fd = memfd_create("somasim-event", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, (off_t)SIM_PAGE))
			return hipErrorOutOfMemory;
		p = mmap(NULL, SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			return hipErrorOutOfMemory;
		p->fd = fd;
		atomic_store(&p->owner, (uint32_t)getpid());
		pthread_mutex_lock(&ev->lock);
		ev->ipc = p;
		struct rec *r = ev->rec;

		/* A record made before the export counts as the first one. */
		if (r && !rec_done(r)) {
			struct cmd *c = cmd_new(C_IPC_RECORD);

			atomic_store(&p->recorded, 1);
			ev->ipc_seq = 1;
			c->ipc.ev = p;
			c->ipc.n = 1;
			cmd_dep(c, r->q, r->seq);
			enqueue(r->q, c);
		}
		pthread_mutex_unlock(&ev->lock);
	}
	h.fd = ev->ipc->fd;
	memset(out, 0, sizeof *out);
	memcpy(out, &h, sizeof h);
	return hipSuccess;
}

hipError_t i_hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle)
{
	struct event_handle h;
	struct ipc_event *p;
	struct event *ev;
	int fd;

	if (!out)
		return hipErrorInvalidValue;
	memcpy(&h, &handle, sizeof h);
	if (h.magic != EVENT_HANDLE)
		return hipErrorInvalidValue;
	if (h.pid == (uint32_t)getpid())
		return hipErrorInvalidContext;
	fd = sim_open_peer_fd(h.pid, h.fd);
	if (fd < 0)
		return hipErrorInvalidValue;
	p = lseek(fd, 0, SEEK_END) == (off_t)SIM_PAGE ?
		mmap(NULL, SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	close(fd);
	if (p == MAP_FAILED)
		return hipErrorInvalidValue;
	*out = event_handle_new(hipEventDisableTiming | hipEventInterprocess);
	ev = event_of(*out);
	if (!ev)
		return hipErrorOutOfMemory;
	ev->ipc = p;
	return hipSuccess;
}
