/* SPDX-License-Identifier: MIT */
/*
 * Handles of streams and events: slots in address space that is never released.
 *
 * Locks: a table's lock, and a slot's lock. Neither is taken inside the other, and neither is
 * held across a call.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/options.h"
#include "device/queue.h"
#include "hip/handle.h"
#include "hip/thread_state.h"

#define STREAM_MAGIC 0x5354524du
#define EVENT_MAGIC 0x45564e54u
#define MAX_STREAMS 65536
#define MAX_EVENTS (1u << 20)
#define ROOT_SLOTS 1024             /* slots that are registered with a leak checker at once */

struct table {
	char *base;
	size_t size, max;                    /* of a slot in bytes; number of slots */
	uint32_t used, free_head, free_tail; /* numbers of slots from 1 on, 0 = none */
	pthread_mutex_t lock;
};

/* A leak checker must see the memory that handles refer to, which mmap hides from it. */
extern void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));

static struct table streams = {
	.size = sizeof(struct stream),
	.max = MAX_STREAMS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
static struct table events = {
	.size = sizeof(struct event),
	.max = MAX_EVENTS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

__attribute__((constructor)) static void handle_init(void)
{
	struct table *t[] = {&streams, &events};

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
		if (t->used % ROOT_SLOTS == 0 && __lsan_register_root_region)
			__lsan_register_root_region(t->base + t->used * t->size,
						    ROOT_SLOTS * t->size);
		p = t->base + (size_t)t->used++ * t->size;
		pthread_mutex_init(p, NULL); /* the first member of both kinds */
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

hipStream_t stream_handle_new(struct sim_queue *q, unsigned flags, int priority)
{
	struct stream *s = take(&streams);

	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->queue = q;
	s->device = q->device;
	s->flags = flags;
	s->priority = priority;
	memset(s->cumask, 0xff, sizeof s->cumask);
	s->capture = NULL;
	s->spoiled = false;
	atomic_store(&s->detached, false);
	s->leaf = NULL;
	s->leaf_count = 0;
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

bool stream_handle_free(hipStream_t h, struct sim_queue **q)
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
	*q = s->queue;
	s->queue = NULL;
	pthread_mutex_unlock(&s->lock);
	put(&streams, s);
	return true;
}

void stream_each(int device, void (*fn)(struct stream *s))
{
	for (uint32_t i = 0; i < streams.used; i++) {
		struct stream *s = (struct stream *)(streams.base + (size_t)i * streams.size);

		if (atomic_load(&s->live) == STREAM_MAGIC && s->device == device)
			fn(s);
	}
}

hipEvent_t event_handle_new(unsigned flags)
{
	struct event *e = take(&events);

	if (!e)
		return NULL;
	pthread_mutex_lock(&e->lock);
	e->flags = flags;
	e->device = current_device();
	e->record = NULL;
	e->shared = NULL;
	e->shared_seq = 0;
	e->recorded_on = NULL;
	e->capture_id = 0;
	e->nodes = NULL;
	e->node_count = 0;
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

bool event_handle_free(hipEvent_t h, struct sim_record **record)
{
	struct event *e = event_of(h);
	uint32_t magic = EVENT_MAGIC;

	if (!e || !atomic_compare_exchange_strong(&e->live, &magic, 0))
		return false;
	pthread_mutex_lock(&e->lock);
	*record = e->record;
	e->record = NULL;
	free(e->nodes);
	e->nodes = NULL;
	pthread_mutex_unlock(&e->lock);
	put(&events, e);
	return true;
}
