/* SPDX-License-Identifier: MIT */
/*
 * The device's queues: one worker thread each, running late and out of step.
 * A command depends on positions of other queues; a position that was reached
 * stays reached, because every queue runs in order.
 *
 * Lock order: a device's stream list (dev[].lock), then one queue's lock.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip.h"

#define LAZY_BYTES (64ull << 20) /* never given back */

static struct {
	pthread_mutex_t lock;
	struct queue list;
	struct queue *null;
	atomic_int ready;
} dev[SIM_MAX_DEVICES];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t next_queue = 1;

static void init(void)
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++) {
		pthread_mutex_init(&dev[i].lock, NULL);
		dev[i].list.next = dev[i].list.prev = &dev[i].list;
	}
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct queue *queue_new(int device, bool blocking, bool is_null)
{
	struct queue *q = calloc(1, sizeof *q);
	uint64_t s;

	if (!q)
		abort();
	pthread_once(&once, init);
	atomic_init(&q->refs, 1);
	q->device = device;
	q->blocking = blocking;
	q->is_null = is_null;
	q->id = atomic_fetch_add(&next_queue, 1);
	s = sim_opt.seed * 0x9e3779b97f4a7c15ULL + q->id;
	q->rng = sim_mix(&s);
	snprintf(q->name, sizeof q->name, "stream %llu of device %d%s",
		 (unsigned long long)q->id, device, is_null ? " (null)" : "");
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_cond_init(&q->progress, NULL);
	if (!is_null) {
		pthread_mutex_lock(&dev[device].lock);
		q->next = &dev[device].list;
		q->prev = dev[device].list.prev;
		q->prev->next = q->next->prev = q;
		q->listed = true;
		pthread_mutex_unlock(&dev[device].lock);
	}
	return q;
}

struct queue *queue_ref(struct queue *q)
{
	atomic_fetch_add(&q->refs, 1);
	return q;
}

void queue_unref(struct queue *q)
{
	if (!q || atomic_fetch_sub(&q->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->progress);
	free(q);
}

static void unlist(struct queue *q)
{
	pthread_mutex_lock(&dev[q->device].lock);
	if (q->listed) {
		q->next->prev = q->prev;
		q->prev->next = q->next;
		q->listed = false;
	}
	pthread_mutex_unlock(&dev[q->device].lock);
}

/* The handle is gone; work that was enqueued still runs. Drops a reference. */
void queue_close(struct queue *q)
{
	bool worker;

	pthread_mutex_lock(&q->lock);
	q->closing = true;
	worker = q->worker;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	if (!worker)
		unlist(q);
	queue_unref(q);
}

/* Late, by a seeded amount: what a busy device looks like from outside. */
static void dawdle(struct queue *q)
{
	uint64_t r;
	long us = 0;

	if (!sim_opt.delay_us && !sim_opt.stall_pct)
		return;
	r = sim_mix(&q->rng);
	if (sim_opt.delay_us && (long)(r % 100) < sim_opt.delay_pct)
		us = (long)((r >> 8) % (uint64_t)(sim_opt.delay_us + 1));
	if ((long)((r >> 40) % 100) < sim_opt.stall_pct)
		us += sim_opt.stall_ms * 1000;
	if (us) {
		struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

		nanosleep(&ts, NULL);
	}
}

static void *worker(void *arg)
{
	struct queue *q = arg;
	struct cmd *c;
	uint64_t seq;

	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (q->stalled || (!q->head && !q->closing))
			pthread_cond_wait(&q->work, &q->lock);
		c = q->head;
		if (!c)
			break;
		q->head = c->next;
		if (!q->head)
			q->tail = NULL;
		pthread_mutex_unlock(&q->lock);

		for (int i = 0; i < c->ndeps; i++)
			queue_wait(c->deps[i].q, c->deps[i].seq);
		dawdle(q);
		sim_vmm_settle();
		sim_device_work = q->name;
		cmd_run(c);
		sim_device_work = NULL;
		/* Gone before its position is reached: who waits for the
		 * position may count memory. */
		seq = c->seq;
		cmd_free(c);

		pthread_mutex_lock(&q->lock);
		atomic_store_explicit(&q->completed, seq, memory_order_release);
		pthread_cond_broadcast(&q->progress);
	}
	q->worker = false;
	pthread_mutex_unlock(&q->lock);
	unlist(q);
	queue_unref(q);
	return NULL;
}

/* Caller holds q->lock. */
static void start_worker(struct queue *q)
{
	pthread_attr_t attr;
	pthread_t th;

	sim_say_seed();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	queue_ref(q);
	if (pthread_create(&th, &attr, worker, q)) {
		fputs("somasim: no thread for a stream\n", stderr);
		abort();
	}
	pthread_attr_destroy(&attr);
	q->worker = true;
	/* As the runtime's hardware queues, their scratch and the code of its own kernels. */
	if (sim_opt.quirk[SIM_Q_LAZY_QUEUES])
		sim_charge(q->device, LAZY_BYTES);
}

static uint64_t append(struct queue *q, struct cmd *c)
{
	uint64_t seq;

	pthread_mutex_lock(&q->lock);
	c->seq = seq = atomic_load(&q->enqueued) + 1;
	if (c->kind == C_RECORD)
		c->rec->seq = seq;
	atomic_store(&q->enqueued, seq);
	if (q->tail)
		q->tail->next = c;
	else
		q->head = c;
	q->tail = c;
	if (!q->worker)
		start_worker(q);
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&q->lock);
	return seq;
}

static void dep_on(struct cmd *c, struct queue *q)
{
	uint64_t n = atomic_load(&q->enqueued);

	if (n && !queue_done(q, n))
		cmd_dep(c, q, n);
}

uint64_t enqueue(struct queue *q, struct cmd *c)
{
	pthread_mutex_t *l = &dev[q->device].lock;
	uint64_t seq;

	if (!q->is_null && !q->blocking)
		return append(q, c);
	/* Implicit order exists between commands only, and only towards what
	 * is enqueued already: one lock makes "already" mean one thing. */
	pthread_mutex_lock(l);
	if (q->is_null) {
		for (struct queue *b = dev[q->device].list.next; b != &dev[q->device].list; b = b->next)
			if (b->blocking)
				dep_on(c, b);
	} else if (dev[q->device].null) {
		dep_on(c, dev[q->device].null);
	}
	seq = append(q, c);
	pthread_mutex_unlock(l);
	return seq;
}

bool queue_done(struct queue *q, uint64_t seq)
{
	return atomic_load_explicit(&q->completed, memory_order_acquire) >= seq;
}

void queue_wait(struct queue *q, uint64_t seq)
{
	if (queue_done(q, seq))
		return;
	pthread_mutex_lock(&q->lock);
	while (!queue_done(q, seq))
		pthread_cond_wait(&q->progress, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

struct queue *null_queue(int device)
{
	struct queue *q;

	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
	if (!dev[device].null)
		dev[device].null = queue_new(device, true, true);
	q = queue_ref(dev[device].null);
	pthread_mutex_unlock(&dev[device].lock);
	return q;
}

struct snapshot {
	struct dep *d;
	size_t n, cap;
};

static void list_queue(struct snapshot *s, struct queue *q, uint64_t seq)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->d = realloc(s->d, s->cap * sizeof *s->d);
		if (!s->d)
			abort();
	}
	s->d[s->n++] = (struct dep){ queue_ref(q), seq };
}

static void snap(struct snapshot *s, struct queue *q)
{
	uint64_t seq = atomic_load(&q->enqueued);

	if (seq && !queue_done(q, seq))
		list_queue(s, q, seq);
}

static void snap_wait(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++) {
		queue_wait(s->d[i].q, s->d[i].seq);
		queue_unref(s->d[i].q);
	}
	free(s->d);
}

void queue_drain(struct queue *q)
{
	struct snapshot s = { 0 };

	if (!q->is_null) {
		queue_wait(q, atomic_load(&q->enqueued));
		return;
	}
	/* Waiting for the null stream joins the blocking ones. */
	pthread_mutex_lock(&dev[q->device].lock);
	snap(&s, q);
	for (struct queue *b = dev[q->device].list.next; b != &dev[q->device].list; b = b->next)
		if (b->blocking)
			snap(&s, b);
	pthread_mutex_unlock(&dev[q->device].lock);
	snap_wait(&s);
}

void device_drain(int device)
{
	struct snapshot s = { 0 };

	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
	if (dev[device].null)
		snap(&s, dev[device].null);
	for (struct queue *b = dev[device].list.next; b != &dev[device].list; b = b->next)
		snap(&s, b);
	pthread_mutex_unlock(&dev[device].lock);
	snap_wait(&s);
}

/* As SyncAllStreams of the runtime: stream after stream, each to the end that it has
 * when its turn comes, work that came meanwhile included. */
void device_finish(int device)
{
	struct snapshot s = { 0 };

	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
	if (dev[device].null)
		list_queue(&s, dev[device].null, 0);
	for (struct queue *b = dev[device].list.next; b != &dev[device].list; b = b->next)
		list_queue(&s, b, 0);
	pthread_mutex_unlock(&dev[device].lock);
	for (size_t i = 0; i < s.n; i++) {
		queue_wait(s.d[i].q, atomic_load(&s.d[i].q->enqueued));
		queue_unref(s.d[i].q);
	}
	free(s.d);
}

/* What a query of the null stream asks: nothing left on it or joined to it. */
bool device_idle_null(int device)
{
	struct snapshot s = { 0 };
	size_t n;

	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
	if (dev[device].null)
		snap(&s, dev[device].null);
	for (struct queue *b = dev[device].list.next; b != &dev[device].list; b = b->next)
		if (b->blocking)
			snap(&s, b);
	pthread_mutex_unlock(&dev[device].lock);
	n = s.n;
	for (size_t i = 0; i < n; i++)
		queue_unref(s.d[i].q);
	free(s.d);
	return n == 0;
}

/* Device reset: commands that have not started never will. */
void device_drop_queues(int device)
{
	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
	for (struct queue *b = dev[device].list.next;; b = b->next) {
		struct queue *q = b == &dev[device].list ? dev[device].null : b;
		struct cmd *c = NULL;

		if (q) {
			pthread_mutex_lock(&q->lock);
			c = q->head;
			q->head = q->tail = NULL;
			if (c && !q->stalled) {
				/* Positions must still be reached, in order. */
				struct cmd *m = cmd_new(C_MARKER);

				m->seq = atomic_load(&q->enqueued);
				q->head = q->tail = m;
			} else if (c) {
				struct cmd *m = cmd_new(C_MARKER);

				m->seq = atomic_load(&q->enqueued);
				q->head = q->tail = m;
				q->stalled = 0;
			}
			pthread_cond_broadcast(&q->work);
			pthread_mutex_unlock(&q->lock);
		}
		while (c) {
			struct cmd *n = c->next;

			cmd_free(c);
			c = n;
		}
		if (b == &dev[device].list)
			break;
	}
	pthread_mutex_unlock(&dev[device].lock);
	device_drain(device);
}
