/* SPDX-License-Identifier: MIT */
/* Streams: the API over queue.c. */
#include <stdlib.h>
#include <string.h>

#include "hip.h"

hipError_t stream_create_on(int device, hipStream_t *out, unsigned flags, int priority)
{
	struct queue *q;

	if (!out)
		return hipErrorInvalidValue;
	if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
		return hipErrorInvalidValue;
	q = queue_new(device, flags != hipStreamNonBlocking, false);
	q->priority = priority < -1 ? -1 : priority > 1 ? 1 : priority;
	*out = stream_handle_new(q, flags, q->priority);
	if (!*out) {
		queue_close(q);
		return hipErrorOutOfMemory;
	}
	return hipSuccess;
}

static hipError_t create(hipStream_t *out, unsigned flags, int priority)
{
	return stream_create_on(cur_device(), out, flags, priority);
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

hipError_t i_hipExtStreamGetCUMask(hipStream_t h, uint32_t n, uint32_t *mask)
{
	struct stream *s = stream_of(h);

	if (!mask || !n)
		return hipErrorInvalidValue;
	for (uint32_t i = 0; i < n; i++)
		mask[i] = s && i < 8 ? s->cumask[i] : ~0u;
	return hipSuccess;
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
	struct queue *q;

	if (!h || h == LEGACY || h == hipStreamPerThread)
		return hipErrorInvalidHandle;
	if (!s)
		return hipErrorContextIsDestroyed;
	capture_stream_gone(s);
	if (!stream_handle_free(h, &q))
		return hipErrorContextIsDestroyed;
	queue_close(q);
	return hipSuccess;
}

hipError_t i_hipStreamQuery(hipStream_t h)
{
	struct queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);
	bool done;

	if (e)
		return e;
	if (s && s->spoiled && V7) {
		queue_unref(q);
		return hipErrorStreamCaptureUnsupported;
	}
	if (atomic_load(&captures_live)) {
		e = s ? guard_stream(s) : hipSuccess;
		if (!e && !(s && stream_capturing(s)))
			e = guard_unsafe();
		if (e) {
			queue_unref(q);
			return e;
		}
	}
	done = q->is_null ? device_idle_null(q->device) : queue_done(q, atomic_load(&q->enqueued));
	queue_unref(q);
	return done ? hipSuccess : hipErrorNotReady;
}

hipError_t i_hipStreamSynchronize(hipStream_t h)
{
	struct queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);

	if (e)
		return e;
	/* After a capture that failed it is "capturing" for good. */
	if (s && s->spoiled && V7) {
		queue_unref(q);
		return hipErrorStreamCaptureUnsupported;
	}
	if (atomic_load(&captures_live)) {
		e = s ? guard_stream(s) : hipSuccess;
		if (!e)
			e = guard_unsafe();
		if (e) {
			queue_unref(q);
			return e;
		}
	}
	queue_drain(q);
	pools_release(q->device);
	queue_unref(q);
	return hipSuccess;
}

hipError_t i_hipStreamWaitEvent(hipStream_t h, hipEvent_t event, unsigned flags)
{
	struct queue *q;
	struct stream *s;
	struct event *ev = event_of(event);
	struct rec *r = NULL;
	struct ipc_event *ipc;
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
		queue_unref(q);
		return e;
	}
	/* The wait binds to the record that the event holds now. */
	pthread_mutex_lock(&ev->lock);
	r = rec_ref(ev->rec);
	ipc = ev->ipc;
	n = ev->ipc_seq;
	if (ipc && !n)
		n = ipc_event_recorded(ipc);
	pthread_mutex_unlock(&ev->lock);
	if (ipc) {
		struct cmd *c = cmd_new(C_IPC_WAIT);

		c->ipc.ev = ipc;
		c->ipc.n = n;
		enqueue(q, c);
	} else if (r && r->q != q && !rec_done(r)) {
		struct cmd *c = cmd_new(C_MARKER);

		cmd_dep(c, r->q, r->seq);
		enqueue(q, c);
	}
	rec_unref(r);
	queue_unref(q);
	return hipSuccess;
}

hipError_t i_hipStreamGetFlags(hipStream_t h, unsigned *flags)
{
	struct stream *s = stream_of(h);

	if (!flags)
		return hipErrorInvalidValue;
	if (h && h != LEGACY && h != hipStreamPerThread && !s)
		return hipErrorContextIsDestroyed;
	*flags = s ? s->flags : 0;
	return hipSuccess;
}

hipError_t i_hipStreamGetPriority(hipStream_t h, int *priority)
{
	struct stream *s = stream_of(h);

	if (!priority)
		return hipErrorInvalidValue;
	if (h && h != LEGACY && h != hipStreamPerThread && !s)
		return hipErrorContextIsDestroyed;
	*priority = s ? s->priority : 0;
	return hipSuccess;
}

hipError_t i_hipStreamGetDevice(hipStream_t h, hipDevice_t *device)
{
	struct stream *s = stream_of(h);

	if (!device)
		return hipErrorInvalidValue;
	if (h && h != LEGACY && h != hipStreamPerThread && !s)
		return hipErrorContextIsDestroyed;
	*device = s ? s->device : cur_device();
	return hipSuccess;
}

hipError_t i_hipStreamGetId(hipStream_t h, unsigned long long *id)
{
	struct queue *q;
	struct stream *s;
	hipError_t e;

	if (!id)
		return hipErrorInvalidValue;
	e = resolve(h, &q, &s);
	if (e)
		return e;
	*id = q->id;
	queue_unref(q);
	return hipSuccess;
}

hipError_t i_hipStreamAttachMemAsync(hipStream_t h, void *p, size_t n, unsigned flags)
{
	return p ? submit(h, cmd_new(C_MARKER), false) : hipErrorInvalidValue;
}

hipError_t i_hipStreamCopyAttributes(hipStream_t dst, hipStream_t src)
{
	return hipSuccess;
}

/* ---- host functions ---- */

struct call {
	struct cmd *c;
	bool done;
	struct call *next;
};

static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t call_done = PTHREAD_COND_INITIALIZER;
static struct call *calls, **calls_end = &calls;
static bool caller_up;

/* One thread for all, as ROCr's async-event thread: a slow function delays
 * the functions of other streams. */
static void *caller(void *arg)
{
	pthread_mutex_lock(&call_lock);
	for (;;) {
		struct call *k;

		while (!calls)
			pthread_cond_wait(&call_work, &call_lock);
		k = calls;
		calls = k->next;
		if (!calls)
			calls_end = &calls;
		pthread_mutex_unlock(&call_lock);
		if (k->c->kind == C_CALLBACK)
			k->c->host.cb(k->c->host.stream, hipSuccess, k->c->host.arg);
		else
			k->c->host.fn(k->c->host.arg);
		pthread_mutex_lock(&call_lock);
		k->done = true;
		pthread_cond_broadcast(&call_done);
	}
	return NULL;
}

void host_call(struct cmd *c)
{
	struct call k = { c, false, NULL };
	pthread_t th;

	pthread_mutex_lock(&call_lock);
	if (!caller_up) {
		if (pthread_create(&th, NULL, caller, NULL))
			abort();
		pthread_detach(th);
		caller_up = true;
	}
	*calls_end = &k;
	calls_end = &k.next;
	pthread_cond_signal(&call_work);
	while (!k.done)
		pthread_cond_wait(&call_done, &call_lock);
	pthread_mutex_unlock(&call_lock);
}

hipError_t i_hipLaunchHostFunc(hipStream_t h, hipHostFn_t fn, void *arg)
{
	struct cmd *c;

	if (!fn)
		return hipErrorInvalidValue;
	c = cmd_new(C_HOST);
	c->host.fn = fn;
	c->host.arg = arg;
	return submit(h, c, false);
}

hipError_t i_hipStreamAddCallback(hipStream_t h, hipStreamCallback_t cb, void *arg, unsigned flags)
{
	struct cmd *c;

	if (!cb || flags)
		return hipErrorInvalidValue;
	c = cmd_new(C_CALLBACK);
	c->host.cb = cb;
	c->host.stream = h;
	c->host.arg = arg;
	return submit(h, c, false);
}

/* ---- write and wait values: executed at once, never captured ---- */

static hipError_t value_op(hipStream_t h, enum cmd_kind kind, void *p, uint64_t v, unsigned flags,
			   uint64_t mask, bool wide)
{
	struct sim_alloc a;
	struct queue *q;
	struct stream *s;
	struct cmd *c;
	hipError_t e;

	if (!p || (kind == C_WAITVAL && flags > hipStreamWaitValueNor))
		return hipErrorInvalidValue;
	/* Any memory that HIP or HSA knows; plain malloc is not. */
	if (!sim_find(p, &a))
		return hipErrorInvalidValue;
	e = resolve(h, &q, &s);
	if (e)
		return e;
	c = cmd_new(kind);
	c->val.ptr = p;
	c->val.value = v;
	c->val.mask = mask;
	c->val.flags = flags;
	c->val.wide = wide;
	enqueue(q, c);
	queue_unref(q);
	return hipSuccess;
}

hipError_t i_hipStreamWriteValue32(hipStream_t h, void *p, uint32_t v, unsigned flags)
{
	return value_op(h, C_WRITE, p, v, 0, ~0ULL, false);
}

hipError_t i_hipStreamWriteValue64(hipStream_t h, void *p, uint64_t v, unsigned flags)
{
	return value_op(h, C_WRITE, p, v, 0, ~0ULL, true);
}

hipError_t i_hipStreamWaitValue32(hipStream_t h, void *p, uint32_t v, unsigned flags, uint32_t mask)
{
	return value_op(h, C_WAITVAL, p, v, flags, mask, false);
}

hipError_t i_hipStreamWaitValue64(hipStream_t h, void *p, uint64_t v, unsigned flags, uint64_t mask)
{
	return value_op(h, C_WAITVAL, p, v, flags, mask, true);
}

/* hipStreamBatchMemOpParams of 6.4: a union of 48 bytes. */
struct batch_op {
	int op;
	void *address;
	uint64_t value;
	unsigned flags;
	void *alias;
	uint64_t pad;
};

hipError_t i_hipStreamBatchMemOp(hipStream_t h, unsigned count, void *params, unsigned flags)
{
	struct batch_op *op = params;

	if (!op || !count || count > 256 || flags)
		return hipErrorInvalidValue;
	for (unsigned i = 0; i < count; i++) {
		bool wide = op[i].op == 4 || op[i].op == 5;
		hipError_t e;

		if (op[i].op == 1 || op[i].op == 4)
			e = value_op(h, C_WAITVAL, op[i].address, op[i].value, op[i].flags, ~0ULL, wide);
		else if (op[i].op == 2 || op[i].op == 5)
			e = value_op(h, C_WRITE, op[i].address, op[i].value, 0, ~0ULL, wide);
		else
			e = op[i].op == 3 ? hipSuccess : hipErrorInvalidValue;
		if (e)
			return e;
	}
	return hipSuccess;
}

/* ---- test control ---- */

#pragma GCC visibility push(default)
int somasim_stall_stream(hipStream_t h);
int somasim_release_stream(hipStream_t h);
#pragma GCC visibility pop

static int stall(hipStream_t h, int on)
{
	struct sim_thread *t = sim_self();
	struct queue *q;
	struct stream *s;

	(void)t;
	if (resolve_any(h, &q, &s))
		return -1;
	pthread_mutex_lock(&q->lock);
	q->stalled = on;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	queue_unref(q);
	return 0;
}

/* From now on the stream starts no command (one that runs is finished). */
int somasim_stall_stream(hipStream_t h)
{
	return stall(h, 1);
}

int somasim_release_stream(hipStream_t h)
{
	return stall(h, 0);
}
