/* SPDX-License-Identifier: MIT */
/*
 * One thread runs at a time, and at any branch of the core it may lose its turn to another one,
 * which the seed decides. So a seed is the same program each time, and races that need years of bad
 * luck show within minutes. Not seen are those of the memory model; the thread sanitizer looks for
 * them.
 *
 * The core is compiled with -fsanitize-coverage=trace-pc, which calls a function of ours at each
 * branch. Whatever would block (--wrap) gives the turn away instead.
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/personality.h>
#include <unistd.h>

#include "schedule.h"

#define MAIN MOST_THREADS
#define LONG 200000 /* turns */

void __sanitizer_cov_trace_pc(void);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __real_pthread_once(pthread_once_t *once, void (*init)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*init)(void));
int __real_sched_yield(void);
int __wrap_sched_yield(void);

static __thread int me = -1; /* -1: not one of those that take turns */
static sem_t turn[MOST_THREADS + 1], parked;
static bool ready[MOST_THREADS + 1];
static int threads;
static uint64_t rng, turns;
static unsigned left, mean; /* branches until the turn ends, and how many there are in the mean */

static unsigned below(unsigned n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((rng >> 33) % n);
}

/* The turn goes to somebody. */
static void pass_turn(void)
{
	int self = me, to;

	turns++;
	left = 1 + below(2 * mean);
	do
		to = (int)below((unsigned)threads + 1);
	while (!ready[to = to == threads ? MAIN : to]);
	if (to == self)
		return;
	sem_post(&turn[to]);
	while (sem_wait(&turn[self]))
		;
}

void __sanitizer_cov_trace_pc(void)
{
	if (me >= 0 && --left == 0)
		pass_turn();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (me < 0)
		return __real_pthread_mutex_lock(m);
	while (pthread_mutex_trylock(m))
		pass_turn();
	return 0;
}

/* Whoever waits for a condition looks at it again. */
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (me < 0)
		return __real_pthread_cond_wait(c, m);
	pthread_mutex_unlock(m);
	pass_turn();
	return __wrap_pthread_mutex_lock(m);
}

/* What runs once is not interrupted, since the others would block. */
int __wrap_pthread_once(pthread_once_t *once, void (*init)(void))
{
	int self = me;

	me = -1;
	__real_pthread_once(once, init);
	me = self;
	return 0;
}

int __wrap_sched_yield(void)
{
	if (me < 0)
		return __real_sched_yield();
	pass_turn();
	return 0;
}

/*
 * Addresses decide where the core finds things in its tables, so they must be the same each time.
 * Without permission to turn randomization off a seed is another program each time.
 */
static __attribute__((constructor)) void same_addresses(int argc, char **argv)
{
	int now = personality(0xffffffff);

	(void)argc;
	mallopt(M_ARENA_MAX, 1);
	if (now != -1 && !(now & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned)now | ADDR_NO_RANDOMIZE) != -1)
		execv("/proc/self/exe", argv);
}

void schedule_create(int count, uint64_t random)
{
	static const unsigned means[] = {200, 500, 2000, 10000};
	cpu_set_t one;

	rng = random;
	mean = means[below(4)];
	left = 1;
	threads = count;
	for (int i = 0; i <= MAIN; i++) {
		sem_init(&turn[i], 0, 0);
		ready[i] = i == MAIN;
	}
	sem_init(&parked, 0, 0);
	/* The turn goes around faster on one processor. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	me = MAIN;
}

void schedule_wait(int index)
{
	if (me < 0) {
		me = index;
		sem_post(&parked);
		while (sem_wait(&turn[index]))
			;
		return;
	}
	ready[index] = false;
	pass_turn();
}

void schedule_began(void)
{
	while (sem_wait(&parked))
		;
}

void schedule_round(void (*meanwhile)(void))
{
	bool busy = true;

	for (int i = 0; i < threads; i++)
		ready[i] = true;
	while (busy) {
		meanwhile();
		pass_turn();
		busy = false;
		for (int i = 0; i < threads; i++)
			busy |= ready[i];
	}
}

bool schedule_long(void)
{
	return turns > LONG;
}

void schedule_destroy(void (*join)(int index))
{
	me = -1;
	ready[MAIN] = false; /* it waits for the thread that ends */
	for (int i = 0; i < threads; i++) {
		ready[i] = true;
		sem_post(&turn[i]);
		join(i);
		ready[i] = false;
	}
	for (int i = 0; i <= MAIN; i++)
		sem_destroy(&turn[i]);
	sem_destroy(&parked);
}
