/* SPDX-License-Identifier: MIT */
/*
 * Host functions of streams. As ROCr's thread for asynchronous events, one thread calls all
 * of them, so a slow function delays the functions of other streams.
 *
 * Locks: lock guards the list of calls. Nothing is taken inside it, and it is not held while
 * a function runs.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device/command.h"
#include "device/host_call.h"

struct call {
	struct sim_command *c;
	bool done;
	struct call *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static struct call *calls, **calls_end = &calls;
static bool has_worker;

static void *worker(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct call *k;

		while (!calls)
			pthread_cond_wait(&work, &lock);
		k = calls;
		calls = k->next;
		if (!calls)
			calls_end = &calls;
		pthread_mutex_unlock(&lock);
		k->c->host.fn(k->c->host.arg);
		pthread_mutex_lock(&lock);
		k->done = true;
		pthread_cond_broadcast(&progress);
	}
	return NULL;
}

static void run_host(struct sim_command *c)
{
	struct call k = {c, false, NULL};
	pthread_t th;

	pthread_mutex_lock(&lock);
	if (!has_worker) {
		if (pthread_create(&th, NULL, worker, NULL))
			abort();
		pthread_detach(th);
		has_worker = true;
	}
	*calls_end = &k;
	calls_end = &k.next;
	pthread_cond_signal(&work);
	while (!k.done)
		pthread_cond_wait(&progress, &lock);
	pthread_mutex_unlock(&lock);
}

struct sim_command *sim_host_command(void (*fn)(void *arg), void *arg)
{
	struct sim_command *c = sim_command_new(SIM_CMD_HOST, run_host);

	c->host.fn = fn;
	c->host.arg = arg;
	return c;
}
