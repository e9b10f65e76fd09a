/* SPDX-License-Identifier: MIT */
/*
 * The queues of each device: implicit order between the null queue and the blocking ones,
 * waits for the whole device, and the per-thread queues.
 *
 * Locks: a device's list lock. A queue's lock is taken inside it.
 */
#include <stdlib.h>

#include "device/calls.h"
#include "device/command.h"
#include "device/device_queues.h"
#include "device/options.h"
#include "device/queue.h"
#include "device/start.h"

static struct {
	pthread_mutex_t lock;
	struct sim_queue list; /* head of the queues except the null one */
	struct sim_queue *null;
} dev[SIM_MAX_DEVICES];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t ended_busy;

static void init(void)
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++) {
		pthread_mutex_init(&dev[i].lock, NULL);
		dev[i].list.next = dev[i].list.prev = &dev[i].list;
	}
}

static void lock(int device)
{
	pthread_once(&once, init);
	pthread_mutex_lock(&dev[device].lock);
}

static void unlock(int device)
{
	pthread_mutex_unlock(&dev[device].lock);
}

/* Loop over the listed queues of a device; the caller holds its lock. */
#define EACH_QUEUE(q, device) \
	for (struct sim_queue *q = dev[device].list.next; q != &dev[device].list; q = q->next)

static void unlist(struct sim_queue *q)
{
	lock(q->device);
	if (q->listed) {
		q->next->prev = q->prev;
		q->prev->next = q->next;
		q->listed = false;
	}
	unlock(q->device);
}

struct sim_queue *sim_device_queue_new(int device, bool blocking)
{
	struct sim_queue *q = sim_queue_new(device, blocking, false);

	q->retired = unlist;
	lock(device);
	q->next = &dev[device].list;
	q->prev = dev[device].list.prev;
	q->prev->next = q->next->prev = q;
	q->listed = true;
	unlock(device);
	return q;
}

struct sim_queue *sim_null_queue(int device)
{
	struct sim_queue *q;

	lock(device);
	if (!dev[device].null)
		dev[device].null = sim_queue_new(device, true, true);
	q = sim_queue_ref(dev[device].null);
	unlock(device);
	return q;
}

/* c waits for all commands that are on q now. */
static void depend_on(struct sim_command *c, struct sim_queue *q)
{
	uint64_t n = atomic_load(&q->enqueued);

	if (n && !sim_queue_done(q, n))
		sim_command_depend(c, q, n);
}

/* The host waits while the queue is full. */
static void wait_for_room(struct sim_queue *q)
{
	uint64_t n = atomic_load(&q->enqueued);

	if (sim_opt.queue && n >= (uint64_t)sim_opt.queue)
		sim_queue_wait(q, n - (uint64_t)sim_opt.queue + 1);
}

uint64_t sim_enqueue(struct sim_queue *q, struct sim_command *c)
{
	int device = q->device;
	uint64_t seq;

	wait_for_room(q);
	if (!q->is_null && !q->blocking)
		return sim_queue_append(q, c);
	/* A command is ordered after those that are already enqueued on the other queues.
	 * One lock for all queues of the device makes "already" unambiguous. */
	lock(device);
	if (q->is_null) {
		EACH_QUEUE(b, device)
			if (b->blocking)
				depend_on(c, b);
	} else if (dev[device].null) {
		depend_on(c, dev[device].null);
	}
	seq = sim_queue_append(q, c);
	unlock(device);
	return seq;
}

/* Positions of several queues, collected under the lock and waited for without it. */
struct snapshot {
	struct sim_position *d;
	size_t n, cap;
};

static void add_queue(struct snapshot *s, struct sim_queue *q, uint64_t seq)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->d = realloc(s->d, s->cap * sizeof *s->d);
		if (!s->d)
			abort();
	}
	s->d[s->n++] = (struct sim_position){sim_queue_ref(q), seq};
}

static void add_enqueued(struct snapshot *s, struct sim_queue *q)
{
	uint64_t seq = atomic_load(&q->enqueued);

	if (seq)
		add_queue(s, q, seq);
}

static void wait_all(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++) {
		sim_queue_wait(s->d[i].queue, s->d[i].seq);
		sim_queue_unref(s->d[i].queue);
	}
	free(s->d);
}

/* The last positions of the null queue and of the queues that are joined to it. */
static struct snapshot null_enqueued(int device)
{
	struct snapshot s = {0};

	lock(device);
	if (dev[device].null)
		add_enqueued(&s, dev[device].null);
	EACH_QUEUE(b, device)
		if (b->blocking)
			add_enqueued(&s, b);
	unlock(device);
	return s;
}

void sim_queue_drain(struct sim_queue *q)
{
	struct snapshot s;

	if (!q->is_null) {
		sim_queue_wait(q, atomic_load(&q->enqueued));
		return;
	}
	s = null_enqueued(q->device);
	wait_all(&s);
}

void sim_device_drain(int device)
{
	struct snapshot s = {0};

	lock(device);
	if (dev[device].null)
		add_enqueued(&s, dev[device].null);
	EACH_QUEUE(b, device)
		add_enqueued(&s, b);
	unlock(device);
	wait_all(&s);
}

void sim_device_finish(int device)
{
	struct snapshot s = {0};

	lock(device);
	if (dev[device].null)
		add_queue(&s, dev[device].null, 0);
	EACH_QUEUE(b, device)
		add_queue(&s, b, 0);
	unlock(device);
	for (size_t i = 0; i < s.n; i++)
		sim_queue_wait(s.d[i].queue, atomic_load(&s.d[i].queue->enqueued));
	wait_all(&s);
}

bool sim_null_idle(int device)
{
	struct snapshot s = null_enqueued(device);
	bool idle = true;

	for (size_t i = 0; i < s.n; i++) {
		idle &= sim_queue_done(s.d[i].queue, s.d[i].seq);
		sim_queue_unref(s.d[i].queue);
	}
	free(s.d);
	return idle;
}

void sim_device_drop(int device)
{
	lock(device);
	EACH_QUEUE(q, device)
		sim_queue_drop(q);
	if (dev[device].null)
		sim_queue_drop(dev[device].null);
	unlock(device);
	sim_device_drain(device);
}

/* ---- per-thread queues ---- */

static void thread_end(struct sim_thread *t)
{
	if (sim_is_dead())
		return;
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (t->queues[i]) {
			if (!sim_queue_done(t->queues[i], atomic_load(&t->queues[i]->enqueued)))
				atomic_fetch_add(&ended_busy, 1);
			sim_queue_close(t->queues[i]);
		}
	free(t->queues);
	t->queues = NULL;
}

struct sim_queue *sim_thread_queue(int device)
{
	struct sim_thread *t = sim_self();

	if (!t->queues) {
		t->queues = calloc(SIM_MAX_DEVICES, sizeof *t->queues);
		if (!t->queues)
			abort();
		atomic_store(&sim_thread_end, thread_end);
	}
	if (!t->queues[device])
		t->queues[device] = sim_device_queue_new(device, true);
	return sim_queue_ref(t->queues[device]);
}

/* ---- test control, found by dlsym ---- */

uint64_t somasim_threads_left_busy(void);

uint64_t somasim_threads_left_busy(void)
{
	return atomic_load(&ended_busy);
}
