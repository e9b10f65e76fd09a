/* SPDX-License-Identifier: MIT */
/*
 * A thread of a real-time policy waits for a lock whose holder it has preempted. A waiter that only
 * spins or yields never lets the holder run again. Skipped where the policy is not permitted.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/lock.h"

#define OFTEN 200 /* uses in a row after which the lock has an owner */
#define LOW 1     /* priorities */
#define HIGH 2

static struct ss_bias bias;
static struct ss_spin spin;
static sem_t held;
static atomic_bool waiting;

static void bias_hold(void)
{
	for (int i = 0; i < OFTEN; i++) {
		ss_bias_lock(&bias);
		ss_bias_unlock(&bias);
	}
	ss_bias_lock(&bias); /* as the owner, where the kernel offers the barrier */
}

static void bias_release(void)
{
	ss_bias_unlock(&bias);
}

static void bias_take(void)
{
	ss_bias_lock(&bias);
	ss_bias_unlock(&bias);
}

static void bias_visit(void)
{
	ss_bias_visit(&bias);
	ss_bias_unlock(&bias);
}

static void spin_hold(void)
{
	ss_spin_lock(&spin);
}

static void spin_release(void)
{
	ss_spin_unlock(&spin);
}

static void spin_take(void)
{
	ss_spin_lock(&spin);
	ss_spin_unlock(&spin);
}

static const struct wait {
	const char *what;
	void (*hold)(void), (*release)(void), (*take)(void);
} waits[] = {
	{"a biased lock is visited", bias_hold, bias_release, bias_visit},
	{"a biased lock is taken", bias_hold, bias_release, bias_take},
	{"a spin lock is taken", spin_hold, spin_release, spin_take},
};

static void *low(void *arg)
{
	const struct wait *w = arg;

	(void)ss_thread_record();
	w->hold();
	sem_post(&held); /* the other thread runs from here until it sleeps */
	while (!atomic_load(&waiting))
		;
	w->release();
	return NULL;
}

static void *high(void *arg)
{
	const struct wait *w = arg;

	(void)ss_thread_record();
	while (sem_wait(&held))
		;
	atomic_store(&waiting, true);
	w->take();
	return NULL;
}

/* On the processor `cpu`. An error of pthread_create(). */
static int start(pthread_t *thread, int priority, int cpu, void *(*fn)(void *), const void *arg)
{
	struct sched_param param = {.sched_priority = priority};
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	err = pthread_create(thread, &attr, fn, (void *)(uintptr_t)arg);
	pthread_attr_destroy(&attr);
	return err;
}

int main(void)
{
	int cpu = sched_getcpu(), err;
	pthread_t a, b;

	alarm(60); /* a wait that never sleeps does not end */
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		printf("%s\n", waits[i].what);
		fflush(stdout);
		sem_init(&held, 0, 0);
		atomic_store(&waiting, false);
		err = start(&b, HIGH, cpu, high, &waits[i]);
		if (err) {
			printf("skipped: no thread of SCHED_FIFO: %s\n", strerror(err));
			return 77;
		}
		err = start(&a, LOW, cpu, low, &waits[i]);
		if (err) {
			fprintf(stderr, "no second thread: %s\n", strerror(err));
			return 1;
		}
		pthread_join(a, NULL);
		pthread_join(b, NULL);
	}
	return 0;
}
