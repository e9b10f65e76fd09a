/* SPDX-License-Identifier: MIT */
/*
 * A thread that has waited for its stream leaves it idle. The runtime takes the stream
 * down with the thread, and where commands are in flight on it then, another thread may
 * crash in the runtime: so no marker of ours may be among them.
 */
#include <pthread.h>

#include "test.h"

static pthread_barrier_t turn;
static void *kept[64];
static hipStream_t other;

/* Others have missed on what this thread freed, so its next call records a marker. */
static void *leave(void *arg)
{
	void *p[64];

	for (int i = 0; i < 64; i++)
		OK(hipMallocAsync(&p[i], 1 << 20, hipStreamPerThread));
	OK(hipMemsetAsync(p[0], 1, 1 << 20, hipStreamPerThread));
	for (int i = 0; i < 64; i++)
		OK(hipFreeAsync(p[i], hipStreamPerThread));
	OK(hipStreamSynchronize(hipStreamPerThread));
	for (int i = 0; i < 64; i++)
		OK(hipMallocAsync(&p[i], 1 << 20, hipStreamPerThread));
	for (int i = 0; i < 64; i++)
		OK(hipFreeAsync(p[i], hipStreamPerThread));
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	OK(hipMallocAsync(&p[0], 1 << 20, hipStreamPerThread));
	OK(hipFreeAsync(p[0], hipStreamPerThread));
	return arg;
}

/* An object with a destructor that frees on the thread's stream comes later than ours:
 * its memory is not lost, and its marker is waited for as well. */
static pthread_key_t late;

static void free_late(void *p)
{
	OK(hipFreeAsync(p, hipStreamPerThread));
}

static void *leave_late(void *arg)
{
	void *p;

	OK(hipMallocAsync(&p, 4096, hipStreamPerThread));
	OK(hipMemsetAsync(p, 1, 4096, hipStreamPerThread));
	OK(hipStreamSynchronize(hipStreamPerThread));
	CHECK(!pthread_setspecific(late, p));
	return arg;
}

static uint64_t markers(void)
{
	return sim_count("hipEventRecord") + sim_count("hipStreamWriteValue64");
}

int main(void)
{
	uint64_t (*busy)(void) = (uint64_t (*)(void))sim_call("somasim_threads_left_busy");
	uint64_t recorded;
	hipMemPool_t pool;
	uint64_t used;
	pthread_t t;

	if (!busy)
		return SKIP;
	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	pthread_barrier_init(&turn, NULL, 2);
	for (int round = 0; round < 5; round++) {
		CHECK(!pthread_create(&t, NULL, leave, NULL));
		pthread_barrier_wait(&turn);
		for (int i = 0; i < 64; i++)
			OK(hipMallocAsync(&kept[i], 1 << 20, other));
		recorded = markers();
		pthread_barrier_wait(&turn);
		pthread_join(t, NULL);
		/* Or nothing is shown here. */
		CHECK(markers() > recorded);
		CHECK(busy() == 0);
		for (int i = 0; i < 64; i++)
			OK(hipFreeAsync(kept[i], other));
		OK(hipStreamSynchronize(other));
	}
	CHECK(!pthread_key_create(&late, free_late));
	CHECK(!pthread_create(&t, NULL, leave_late, NULL));
	pthread_join(t, NULL);
	CHECK(busy() == 0);
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
	CHECK(used == 0);
	return 0;
}
