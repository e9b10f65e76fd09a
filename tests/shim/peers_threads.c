/* SPDX-License-Identifier: MIT */
/*
 * A thread per device gives its device access to the memory of all others at the same time,
 * as programs with many devices do at their start, while other threads allocate there. No
 * access may be lost. Each round runs in a process of its own, because access is given
 * once.
 *
 *   peers_threads enable|pool ROUNDS
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reach.h"
#include "test.h"

#define DEVICES 8
#define BLOCKS 4

static pthread_barrier_t start;
static hipMemPool_t pool; /* of device 0, or NULL: hipMalloc's of every device */
static void *block[DEVICES][BLOCKS];

static void *enable(void *arg)
{
	int me = (int)(intptr_t)arg;
	hipMemAccessDesc d = {{hipMemLocationTypeDevice, me}, hipMemAccessFlagsProtReadWrite};

	OK(hipSetDevice(me));
	pthread_barrier_wait(&start);
	if (pool)
		OK(hipMemPoolSetAccess(pool, &d, 1));
	for (int i = 0; i < DEVICES && !pool; i++)
		if (i != me)
			OK(hipDeviceEnablePeerAccess(i, 0));
	return NULL;
}

static void *allocate(void *arg)
{
	int dev = (int)(intptr_t)arg;

	OK(hipSetDevice(dev));
	pthread_barrier_wait(&start);
	for (int i = 0; i < BLOCKS; i++)
		if (pool)
			OK(hipMallocFromPoolAsync(&block[dev][i], 64 << 20, pool, NULL));
		else
			OK(hipMalloc(&block[dev][i], 64 << 20));
	return NULL;
}

static void round_of(bool pools)
{
	pthread_t t[2 * DEVICES];
	int allocating = pools ? 1 : DEVICES;

	if (pools)
		pool = make_pool(0, hipMemHandleTypeNone);
	pthread_barrier_init(&start, NULL, (unsigned)(DEVICES + allocating));
	for (intptr_t i = 0; i < DEVICES; i++)
		pthread_create(&t[i], NULL, enable, (void *)i);
	for (intptr_t i = 0; i < allocating; i++)
		pthread_create(&t[DEVICES + i], NULL, allocate, (void *)i);
	for (int i = 0; i < DEVICES + allocating; i++)
		pthread_join(t[i], NULL);
	for (int d = 0; d < allocating; d++)
		for (int i = 0; i < BLOCKS; i++)
			CHECK(reach(block[d][i]) == DEVICES);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0, status;

	CHECK(preloaded() && argc > 1);
	if (!rounds)
		round_of(!strcmp(argv[1], "pool"));
	for (int i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (!pid) {
			execl("/proc/self/exe", argv[0], argv[1], NULL);
			_exit(127);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	}
	return 0;
}
