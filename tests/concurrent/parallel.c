/* SPDX-License-Identifier: MIT */
/* The system runs the threads, all at the same time. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "concurrent.h"
#include "schedule.h"

#define LONG 20000 /* waits for the device */

static pthread_barrier_t go, stop;
static atomic_int busy;
static int threads;

void schedule_create(int count, uint64_t random)
{
	(void)random;
	threads = count;
	pthread_barrier_init(&go, NULL, (unsigned)count + 1);
	pthread_barrier_init(&stop, NULL, (unsigned)count + 1);
}

void schedule_wait(int index)
{
	static __thread bool begun;

	(void)index;
	if (begun) {
		atomic_fetch_sub(&busy, 1);
		pthread_barrier_wait(&stop);
	}
	begun = true;
	pthread_barrier_wait(&go);
}

void schedule_began(void)
{
}

void schedule_round(void (*meanwhile)(void))
{
	struct timespec t = {0, 20000};

	busy = threads;
	pthread_barrier_wait(&go);
	while (busy) {
		meanwhile();
		nanosleep(&t, NULL);
	}
	pthread_barrier_wait(&stop);
}

bool schedule_long(void)
{
	return device_waits() > LONG;
}

void schedule_destroy(void (*join)(int index))
{
	pthread_barrier_wait(&go);
	for (int i = 0; i < threads; i++)
		join(i);
	pthread_barrier_destroy(&go);
	pthread_barrier_destroy(&stop);
}
