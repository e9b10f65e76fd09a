/* SPDX-License-Identifier: MIT */
/*
 * Threads that are older and younger than the shim, and streams that end with their thread.
 */
#include <pthread.h>

#include "test.h"

#define THREADS 8

static pthread_barrier_t gate;

static void *work(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	unsigned char got[64];
	hipEvent_t e;
	void *p, *q;

	pthread_barrier_wait(&gate); /* all of them are the first to call */
	for (int i = 0; i < 50; i++) {
		OK(hipMallocAsync(&p, 4096 + me, hipStreamPerThread));
		OK(hipMemsetAsync(p, (int)me, 4096 + me, hipStreamPerThread));
		OK(hipMalloc(&q, 300));
		OK(hipMemsetAsync(q, (int)me + 64, 300, hipStreamPerThread));
		OK(hipMemcpyAsync(got, p, sizeof(got), hipMemcpyDeviceToHost, hipStreamPerThread));
		OK(hipStreamSynchronize(hipStreamPerThread));
		CHECK(got[0] == me && got[63] == me);
		OK(hipMemcpyAsync(got, q, sizeof(got), hipMemcpyDeviceToHost, hipStreamPerThread));
		OK(hipEventCreate(&e));
		OK(hipEventRecord(e, hipStreamPerThread));
		OK(hipEventSynchronize(e));
		OK(hipEventDestroy(e));
		CHECK(got[0] == me + 64 && got[63] == me + 64);
		OK(hipFree(q));
		OK(hipFreeAsync(p, hipStreamPerThread));
	}
	return NULL;
}

static void generation(int n)
{
	pthread_t t[THREADS];

	pthread_barrier_init(&gate, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&gate);
}

int main(void)
{
	CHECK(preloaded());
	for (int i = 0; i < 5; i++)
		generation(THREADS);
	OK(hipDeviceSynchronize());
	return 0;
}
