/* SPDX-License-Identifier: MIT */
/*
 * Thread records, the names of the exported calls, and how often each was called.
 *
 * Locks: calls_lock guards the list of threads, the names, and the rules of failures.c.
 * No other lock is taken inside it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/calls.h"

__thread struct sim_thread *sim_tls __attribute__((tls_model("initial-exec")));
_Atomic unsigned char sim_call_special[SIM_MAX_CALLS];
void (*_Atomic sim_thread_end)(struct sim_thread *t);

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_thread threads = {.next = &threads, .prev = &threads};
static uint64_t ended[SIM_MAX_CALLS]; /* counts of threads that have ended */
static const char *names[SIM_MAX_CALLS];
static pthread_key_t key;

void sim_calls_lock(void)
{
	pthread_mutex_lock(&calls_lock);
}

void sim_calls_unlock(void)
{
	pthread_mutex_unlock(&calls_lock);
}

static void thread_exit(void *arg)
{
	struct sim_thread *t = arg;
	void (*end)(struct sim_thread *) = atomic_load(&sim_thread_end);

	if (end && t->queues)
		end(t);
	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		ended[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
	t->next->prev = t->prev;
	t->prev->next = t->next;
	pthread_mutex_unlock(&calls_lock);
	sim_tls = NULL;
	free(t);
}

struct sim_thread *sim_thread_new(void)
{
	struct sim_thread *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	pthread_mutex_lock(&calls_lock);
	t->next = threads.next;
	t->prev = &threads;
	t->next->prev = t;
	threads.next = t;
	pthread_mutex_unlock(&calls_lock);
	sim_tls = t;
	pthread_setspecific(key, t);
	return t;
}

void sim_calls_register(int first, const char *const *list, int count)
{
	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < count; i++)
		names[first + i] = list[i];
	pthread_mutex_unlock(&calls_lock);
}

int sim_call_id(const char *name)
{
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

static uint64_t count_of(int id)
{
	uint64_t n = ended[id];

	for (struct sim_thread *t = threads.next; t != &threads; t = t->next)
		n += atomic_load_explicit(&t->counts[id], memory_order_relaxed);
	return n;
}

/* ---- test control, found by dlsym ---- */

uint64_t somasim_call_count(const char *name);
uint64_t somasim_total_calls(void);

uint64_t somasim_call_count(const char *name)
{
	uint64_t n = 0;
	int id;

	pthread_mutex_lock(&calls_lock);
	id = sim_call_id(name);
	if (id >= 0)
		n = count_of(id);
	pthread_mutex_unlock(&calls_lock);
	return n;
}

uint64_t somasim_total_calls(void)
{
	uint64_t n = 0;

	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		n += count_of(i);
	pthread_mutex_unlock(&calls_lock);
	return n;
}

__attribute__((constructor(102))) static void calls_init(void)
{
	pthread_key_create(&key, thread_exit);
}
