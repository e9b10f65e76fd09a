/* SPDX-License-Identifier: MIT */
/*
 * A thread that has waited for its stream leaves it idle. The runtime destroys the stream
 * with the thread, and if commands are in flight then, another thread may crash in the
 * runtime. So no marker of ours may be among them.
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

/* Threads that end leave nothing behind: the device is idle then, though nobody has waited for
 * all of it, and a later thread's stream takes an earlier one's place. */
static pthread_key_t last;

static void free_last(void *p)
{
	if ((uintptr_t)p >> 20 & 1)
		OK(hipFree(p));
	else
		OK(hipFreeAsync(p, hipStreamPerThread));
}

static void *come_and_go(void *arg)
{
	void *p;

	OK(hipMallocAsync(&p, 1 << 20, hipStreamPerThread));
	OK(hipMemsetAsync(p, 1, 1 << 20, hipStreamPerThread));
	if (arg)
		CHECK(!pthread_setspecific(last, p));
	else
		OK(hipFreeAsync(p, hipStreamPerThread));
	return NULL;
}

static void leave_nothing(bool in_a_key)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	pthread_t t[16];

	OK(hipDeviceSetMemPool(0, pool));
	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 16; i++)
			CHECK(!pthread_create(&t[i], NULL, come_and_go, in_a_key ? &last : NULL));
		for (int i = 0; i < 16; i++)
			pthread_join(t[i], NULL);
		/* The runtime has taken the stream down before a key's destructor, and can't be
		 * asked for it: what is freed there completes with the device. */
		if (in_a_key)
			OK(hipDeviceSynchronize());
	}
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == 0);
	CHECK(figure(pool, hipMemPoolAttrReservedMemHigh) <= 64 << 20);
	OK(hipMemPoolTrimTo(pool, 0));
	if (in_a_key)
		OK(hipDeviceSynchronize());
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
	OK(hipMemPoolDestroy(pool));
}

static uint64_t markers(void)
{
	return sim_count("hipEventRecord") + sim_count("hipStreamWriteValue64");
}

int main(void)
{
	uint64_t (*busy)(void) = (uint64_t(*)(void))sim_call("somasim_threads_left_busy");
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
	OK(hipDeviceSynchronize()); /* what was freed in the key's destructor completes */
	CHECK(!pthread_key_create(&last, free_last));
	leave_nothing(false);
	leave_nothing(true);
	return 0;
}
