/* SPDX-License-Identifier: MIT */
/*
 * Stream and event handles. Slots live in address space that is never given
 * back, so that a stale handle is refused instead of crashing, and they are
 * reused last in, first out: a new stream does get an old stream's handle.
 *
 * Lock order: table lock, then a slot's lock; neither is held across work.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hip.h"

#define STREAM_MAGIC 0x5354524du
#define EVENT_MAGIC 0x45564e54u
#define MAX_STREAMS 65536
#define MAX_EVENTS (1u << 20)

struct table {
	char *base;
	size_t size, max;
	uint32_t used, free_head, free_tail;  /* 1-based, 0 = none */
	pthread_mutex_t lock;
};

/* A leak checker must see what handles hold: they live in mmapped memory. */
extern void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
#define ROOTS 1024

static struct table streams = { .size = sizeof(struct stream), .max = MAX_STREAMS, .lock = PTHREAD_MUTEX_INITIALIZER };
static struct table events = { .size = sizeof(struct event), .max = MAX_EVENTS, .lock = PTHREAD_MUTEX_INITIALIZER };
static _Atomic uint64_t next_stream_id = 1;

struct tls_hip {
	struct queue *q[SIM_MAX_DEVICES];
};

__attribute__((constructor)) static void handle_init(void)
{
	struct table *t[] = { &streams, &events };

	for (int i = 0; i < 2; i++) {
		t[i]->base = mmap(NULL, t[i]->size * t[i]->max, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (t[i]->base == MAP_FAILED)
			abort();
	}
}

static uint32_t *link_of(struct table *t, uint32_t n)
{
	char *p = t->base + (size_t)(n - 1) * t->size;

	return t == &streams ? &((struct stream *)p)->next_free : &((struct event *)p)->next_free;
}

static void *take(struct table *t)
{
	uint32_t n;
	void *p = NULL;

	pthread_mutex_lock(&t->lock);
	n = t->free_head;
	if (n) {
		t->free_head = *link_of(t, n);
		if (!t->free_head)
			t->free_tail = 0;
		p = t->base + (size_t)(n - 1) * t->size;
	} else if (t->used < t->max) {
		if (t->used % ROOTS == 0 && __lsan_register_root_region)
			__lsan_register_root_region(t->base + t->used * t->size, ROOTS * t->size);
		p = t->base + (size_t)t->used++ * t->size;
		pthread_mutex_init(p, NULL);          /* lock is the first member */
	}
	pthread_mutex_unlock(&t->lock);
	return p;
}

static void put(struct table *t, void *p)
{
	uint32_t n = (uint32_t)(((char *)p - t->base) / (ptrdiff_t)t->size) + 1;

	pthread_mutex_lock(&t->lock);
	*link_of(t, n) = 0;
	if (sim_opt.lifo_handles || !t->free_head) {
		*link_of(t, n) = t->free_head;
		t->free_head = n;
		if (!t->free_tail)
			t->free_tail = n;
	} else {
		*link_of(t, t->free_tail) = n;
		t->free_tail = n;
	}
	pthread_mutex_unlock(&t->lock);
}

static bool inside(struct table *t, const void *h)
{
	size_t off = (size_t)((const char *)h - t->base);

	return (const char *)h >= t->base && off < t->size * t->max && off % t->size == 0;
}

hipStream_t stream_handle_new(struct queue *q, unsigned flags, int priority)
{
	struct stream *s = take(&streams);

	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->q = q;
	s->device = q->device;
	s->flags = flags;
	s->priority = priority;
	s->id = atomic_fetch_add(&next_stream_id, 1);
	memset(s->cumask, 0xff, sizeof s->cumask);
	s->cap = NULL;
	s->spoiled = false;
	s->leaf = NULL;
	s->nleaf = 0;
	atomic_store(&s->live, STREAM_MAGIC);
	pthread_mutex_unlock(&s->lock);
	return (hipStream_t)s;
}

struct stream *stream_of(hipStream_t h)
{
	struct stream *s = (struct stream *)h;

	if (!inside(&streams, h) || atomic_load(&s->live) != STREAM_MAGIC)
		return NULL;
	return s;
}

bool stream_handle_free(hipStream_t h, struct queue **q)
{
	struct stream *s = stream_of(h);
	uint32_t magic = STREAM_MAGIC;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	if (!atomic_compare_exchange_strong(&s->live, &magic, 0)) {
		pthread_mutex_unlock(&s->lock);
		return false;
	}
	*q = s->q;
	s->q = NULL;
	pthread_mutex_unlock(&s->lock);
	put(&streams, s);
	return true;
}

/* Device reset destroys its streams; their handles dangle. */
void streams_reset(int device)
{
	for (uint32_t i = 0; i < streams.used; i++) {
		struct stream *s = (struct stream *)(streams.base + (size_t)i * streams.size);
		struct queue *q;

		if (atomic_load(&s->live) == STREAM_MAGIC && s->device == device) {
			capture_stream_gone(s);
			if (stream_handle_free((hipStream_t)s, &q))
				queue_close(q);
		}
	}
}

hipEvent_t event_handle_new(unsigned flags)
{
	struct event *e = take(&events);

	if (!e)
		return NULL;
	pthread_mutex_lock(&e->lock);
	e->flags = flags;
	e->device = cur_device();
	e->rec = NULL;
	e->ipc = NULL;
	e->ipc_seq = 0;
	e->on = NULL;
	e->cap_id = 0;
	e->nodes = NULL;
	e->nnodes = 0;
	atomic_store(&e->live, EVENT_MAGIC);
	pthread_mutex_unlock(&e->lock);
	return (hipEvent_t)e;
}

struct event *event_of(hipEvent_t h)
{
	struct event *e = (struct event *)h;

	if (!inside(&events, h) || atomic_load(&e->live) != EVENT_MAGIC)
		return NULL;
	return e;
}

hipError_t i_hipEventDestroy(hipEvent_t h)
{
	struct event *e = event_of(h);
	struct rec *r;
	uint32_t magic = EVENT_MAGIC;

	if (!h)
		return hipErrorInvalidHandle;
	if (!e || !atomic_compare_exchange_strong(&e->live, &magic, 0))
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&e->lock);
	r = e->rec;
	e->rec = NULL;
	free(e->nodes);
	e->nodes = NULL;
	pthread_mutex_unlock(&e->lock);
	rec_unref(r);
	put(&events, e);
	return hipSuccess;
}

/* ---- per-thread default streams ---- */

static _Atomic uint64_t left_busy;

#pragma GCC visibility push(default)
uint64_t somasim_threads_left_busy(void);
#pragma GCC visibility pop

/* Streams that went with their thread while commands were in flight: where the real
 * runtime may crash, in another thread that joins them just then. */
uint64_t somasim_threads_left_busy(void)
{
	return atomic_load(&left_busy);
}

static void thread_gone(struct sim_thread *t)
{
	struct tls_hip *h = t->hip;

	if (!h || atomic_load(&sim_dead))
		return;
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (h->q[i]) {
			if (!queue_done(h->q[i], atomic_load(&h->q[i]->enqueued)))
				atomic_fetch_add(&left_busy, 1);
			queue_close(h->q[i]);
		}
	free(h);
	t->hip = NULL;
}

struct queue *thread_queue(int device)
{
	struct sim_thread *t = sim_self();
	struct tls_hip *h = t->hip;

	if (!h) {
		h = t->hip = calloc(1, sizeof *h);
		if (!h)
			abort();
		atomic_store(&sim_thread_gone, thread_gone);
	}
	if (!h->q[device])
		h->q[device] = queue_new(device, true, false);
	return queue_ref(h->q[device]);
}

hipError_t resolve_any(hipStream_t h, struct queue **q, struct stream **s)
{
	struct stream *st;

	*s = NULL;
	if (h == NULL || (h == LEGACY && !V57 && !V52)) {
		*q = null_queue(cur_device());
		return hipSuccess;
	}
	if (h == hipStreamPerThread) {
		*q = thread_queue(cur_device());
		return hipSuccess;
	}
	st = stream_of(h);
	if (!st)
		return hipErrorContextIsDestroyed;
	pthread_mutex_lock(&st->lock);
	*q = st->q ? queue_ref(st->q) : NULL;
	pthread_mutex_unlock(&st->lock);
	if (!*q)
		return hipErrorContextIsDestroyed;
	*s = st;
	return hipSuccess;
}

hipError_t resolve(hipStream_t h, struct queue **q, struct stream **s)
{
	hipError_t e = resolve_any(h, q, s);

	if (!e && *s && atomic_load(&(*s)->detached)) {
		queue_unref(*q);
		return (hipError_t)916; /* hipErrorStreamDetached */
	}
	return e;
}

hipError_t submit(hipStream_t h, struct cmd *c, bool wait)
{
	struct queue *q;
	struct stream *s;
	hipError_t e = resolve(h, &q, &s);
	uint64_t seq;

	if (e) {
		cmd_free(c);
		return e;
	}
	if (unlikely(s && atomic_load(&captures_live)) && capture_submit(s, c, &e)) {
		queue_unref(q);
		return e;
	}
	seq = enqueue(q, c);
	if (wait)
		queue_wait(q, seq);
	queue_unref(q);
	return hipSuccess;
}
