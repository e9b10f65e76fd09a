/* SPDX-License-Identifier: MIT */
/* The figures of SOMACUDA_STATS: the most device memory that was in use, by the driver's own
 * figure, and the calls of the driver. A thread looks every 5 ms. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/driver.h"

bool driver_counts;
_Atomic uint64_t driver_calls[DRIVER_CALLS];

static _Atomic uint64_t used_at_start, used_most;
static pid_t process; /* 0: not started */

static uint64_t used_now(void)
{
	size_t left = 0, total = 0;

	return driver.cuMemGetInfo && !driver.cuMemGetInfo(&left, &total) ? total - left : 0;
}

static void *watch(void *context)
{
	struct timespec pause = {0, 5000000};

	if (driver.cuCtxSetCurrent(context))
		return NULL;
	for (;;) {
		uint64_t used = used_now();

		if (used > atomic_load(&used_most))
			atomic_store(&used_most, used);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* The first context starts the figures. */
static void begin(int device)
{
	CUcontext c = NULL;
	pthread_t t;

	if (process || driver.cuCtxGetCurrent(&c))
		return;
	process = getpid();
	for (int i = 0; i < DRIVER_CALLS; i++)
		atomic_store(&driver_calls[i], 0);
	atomic_store(&used_at_start, used_now());
	if (!pthread_create(&t, NULL, watch, c))
		pthread_detach(t);
}

static bool worth_a_word(const char *call)
{
	return !strncmp(call, "cuMem", 5) || !strncmp(call, "cuEvent", 7) ||
	       !strncmp(call, "cuStream", 8) || !strncmp(call, "cuLaunch", 8) ||
	       strstr(call, "Synchronize");
}

__attribute__((destructor)) static void figures_print(void)
{
	static const char *const names[] = {
#define C(name, version, params) #name,
#include "cuda/driver_calls.h"
#undef C
	};
	uint64_t least = atomic_load(&used_at_start), most = atomic_load(&used_most);

	if (!process || process != getpid())
		return;
	fprintf(stderr, "somacuda: device memory at most %.1f MiB above the start;",
		most > least ? (double)(most - least) / 1048576.0 : 0.0);
	for (int i = 0; i < DRIVER_CALLS; i++)
		if (atomic_load(&driver_calls[i]) && worth_a_word(names[i]))
			fprintf(stderr, " %s %llu", names[i] + 2,
				(unsigned long long)atomic_load(&driver_calls[i]));
	fprintf(stderr, "\n");
}

__attribute__((constructor)) static void figures_init(void)
{
	const char *on = getenv("SOMACUDA_STATS");

	driver_counts = on && atoi(on);
	if (driver_counts)
		context_when_made(begin);
}
