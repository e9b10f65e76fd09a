/* SPDX-License-Identifier: MIT */
/*
 * Queues and their worker threads.
 *
 * Locks: a queue's lock. Nothing is taken inside it, and no command runs with it held.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/arena.h"
#include "device/command.h"
#include "device/fault.h"
#include "device/host_access.h"
#include "device/options.h"
#include "device/queue.h"
#include "device/random.h"
#include "device/record.h"
#include "device/virtual_memory.h"

#define LAZY_BYTES (64ull << 20)   /* quirk lazy-queues; never released */

static _Atomic uint64_t next_queue = 1;
/* The number of commands so far, and a sum over them: for each, the commands of its queue that were
 * not done when it came. */
static _Atomic uint64_t appended, found_before;

struct sim_queue *sim_queue_new(int device, bool blocking, bool is_null)
{
	struct sim_queue *q = calloc(1, sizeof *q);
	uint64_t s;

	if (!q)
		abort();
	atomic_init(&q->refs, 1);
	q->device = device;
	q->blocking = blocking;
	q->is_null = is_null;
	q->id = atomic_fetch_add(&next_queue, 1);
	s = sim_opt.seed * 0x9e3779b97f4a7c15ULL + q->id;
	q->random = sim_random(&s);
	snprintf(q->name, sizeof q->name, "stream %llu of device %d%s", (unsigned long long)q->id,
		 device, is_null ? " (null)" : "");
	pthread_mutex_init(&q->lock, NULL);
	pthread_mutex_init(&q->synchronizes, NULL);
	pthread_cond_init(&q->work, NULL);
	pthread_cond_init(&q->progress, NULL);
	return q;
}

struct sim_queue *sim_queue_ref(struct sim_queue *q)
{
	atomic_fetch_add(&q->refs, 1);
	return q;
}

void sim_queue_unref(struct sim_queue *q)
{
	if (!q || atomic_fetch_sub(&q->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_mutex_destroy(&q->synchronizes);
	pthread_cond_destroy(&q->work);
	pthread_cond_destroy(&q->progress);
	free(q);
}

void sim_queue_close(struct sim_queue *q)
{
	bool worker;

	pthread_mutex_lock(&q->lock);
	q->closing = true;
	worker = q->has_worker;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
	if (!worker && q->retired)
		q->retired(q);
	sim_queue_unref(q);
}

/* Sleeps for a seeded time, so that a command is as late as on a busy device. */
static void delay(struct sim_queue *q)
{
	uint64_t r;
	long us = 0;

	if (!sim_opt.delay_us && !sim_opt.stall_pct)
		return;
	r = sim_random(&q->random);
	if (sim_opt.delay_us && (long)(r % 100) < sim_opt.delay_pct)
		us = (long)((r >> 8) % (uint64_t)(sim_opt.delay_us + 1));
	if ((long)((r >> 40) % 100) < sim_opt.stall_pct)
		us += sim_opt.stall_ms * 1000;
	if (us) {
		struct timespec ts = {us / 1000000, us % 1000000 * 1000};

		nanosleep(&ts, NULL);
	}
}

static void *worker(void *arg)
{
	struct sim_queue *q = arg;
	struct sim_command *c;
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

		for (int i = 0; i < c->dep_count; i++)
			sim_queue_wait(c->deps[i].queue, c->deps[i].seq);
		delay(q);
		sim_vmm_settle();
		sim_work_begin(q->name);
		if (c->run)
			c->run(c);
		sim_work_end();
		/* Freed before its position is reached: whoever waits for the position may
		 * look at free memory next. */
		seq = c->seq;
		sim_command_free(c);

		pthread_mutex_lock(&q->lock);
		atomic_store_explicit(&q->completed, seq, memory_order_release);
		pthread_cond_broadcast(&q->progress);
	}
	q->has_worker = false;
	pthread_mutex_unlock(&q->lock);
	if (q->retired)
		q->retired(q);
	sim_queue_unref(q);
	return NULL;
}

/* Caller holds q->lock. */
static void start_worker(struct sim_queue *q)
{
	pthread_attr_t attr;
	pthread_t th;

	sim_print_seed();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 512 * 1024);
	sim_queue_ref(q);
	if (pthread_create(&th, &attr, worker, q)) {
		fputs("somasim: no thread for a stream\n", stderr);
		abort();
	}
	pthread_attr_destroy(&attr);
	q->has_worker = true;
	/* The runtime takes this memory for a hardware queue, its scratch memory and its
	 * kernels. */
	if (sim_opt.quirk[SIM_Q_LAZY_QUEUES])
		sim_charge(q->device, LAZY_BYTES);
}

uint64_t sim_queue_append(struct sim_queue *q, struct sim_command *c)
{
	uint64_t seq;

	pthread_mutex_lock(&q->lock);
	c->seq = seq = atomic_load(&q->enqueued) + 1;
	if (c->kind == SIM_CMD_RECORD)
		c->record->seq = seq;
	atomic_store(&q->enqueued, seq);
	atomic_fetch_add(&appended, 1);
	atomic_fetch_add(&found_before, seq - 1 - atomic_load(&q->completed));
	if (q->tail)
		q->tail->next = c;
	else
		q->head = c;
	q->tail = c;
	if (!q->has_worker)
		start_worker(q);
	pthread_cond_signal(&q->work);
	pthread_mutex_unlock(&q->lock);
	return seq;
}

static _Atomic uint64_t asked_while_waiting;

void sim_queue_sync_begin(struct sim_queue *q)
{
	atomic_fetch_add(&q->synchronizers, 1);
	if (sim_opt.quirk[SIM_Q_QUERY_WAITS])
		pthread_mutex_lock(&q->synchronizes);
}

void sim_queue_sync_end(struct sim_queue *q)
{
	if (sim_opt.quirk[SIM_Q_QUERY_WAITS])
		pthread_mutex_unlock(&q->synchronizes);
	atomic_fetch_sub(&q->synchronizers, 1);
}

void sim_queue_asked(struct sim_queue *q)
{
	if (atomic_load(&q->synchronizers))
		atomic_fetch_add(&asked_while_waiting, 1);
	if (sim_opt.quirk[SIM_Q_QUERY_WAITS]) {
		pthread_mutex_lock(&q->synchronizes);
		pthread_mutex_unlock(&q->synchronizes);
	}
}

/* Test control, found by dlsym: how often a stream was asked in which a thread waited. */
uint64_t somasim_asked_while_waiting(void);

uint64_t somasim_asked_while_waiting(void)
{
	return atomic_load(&asked_while_waiting);
}

/* Test control, found by dlsym: by how many commands a stream was behind the host, in the mean. */
uint64_t somasim_mean_behind(void);

uint64_t somasim_mean_behind(void)
{
	uint64_t n = atomic_load(&appended);

	return n ? atomic_load(&found_before) / n : 0;
}

bool sim_queue_done(struct sim_queue *q, uint64_t seq)
{
	return atomic_load_explicit(&q->completed, memory_order_acquire) >= seq;
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

void sim_queue_wait(struct sim_queue *q, uint64_t seq)
{
	/* The lock is taken in any case. A program that is built with the thread sanitizer knows by
	 * it that the command comes before what the program does next: the sanitizer sees no atomic
	 * variable of this library. */
	pthread_mutex_lock(&q->lock);
	pthread_cleanup_push(unlock, &q->lock); /* a program may cancel a thread that waits */
	while (!sim_queue_done(q, seq))
		pthread_cond_wait(&q->progress, &q->lock);
	pthread_cleanup_pop(1);
}

void sim_queue_drop(struct sim_queue *q)
{
	struct sim_command *c, *next;

	pthread_mutex_lock(&q->lock);
	c = q->head;
	if (c) {
		/* One marker reaches all the positions at once. */
		q->head = q->tail = sim_marker();
		q->head->seq = atomic_load(&q->enqueued);
		q->stalled = false;
		pthread_cond_broadcast(&q->work);
	}
	pthread_mutex_unlock(&q->lock);
	for (; c; c = next) {
		next = c->next;
		sim_command_free(c);
	}
}

void sim_queue_stall(struct sim_queue *q, bool stalled)
{
	pthread_mutex_lock(&q->lock);
	q->stalled = stalled;
	pthread_cond_broadcast(&q->work);
	pthread_mutex_unlock(&q->lock);
}
