/* SPDX-License-Identifier: MIT */
/* Threads with two streams each, ordered by events: each block is filled and read by device
 * work, freed, and reused. */
#include <pthread.h>

#include "test.h"

#define THREADS 4
#define ROUNDS 150

static void *run(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	hipStream_t s[2];
	hipEvent_t e;
	char *host;

	OK(hipStreamCreateWithFlags(&s[0], seed % 2 ? hipStreamNonBlocking : hipStreamDefault));
	OK(hipStreamCreateWithFlags(&s[1], hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipHostMalloc((void **)&host, 8192, 0));
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = 4096 + rand_r(&seed) % 100000;
		int v = rand_r(&seed) & 0x7f, async = rand_r(&seed) & 1;
		char *p;

		if (async)
			OK(hipMallocAsync((void **)&p, n, s[0]));
		else
			OK(hipMalloc((void **)&p, n));
		OK(hipMemsetAsync(p, v, n, s[0]));
		OK(hipEventRecord(e, s[0]));
		OK(hipStreamWaitEvent(s[1], e, 0));
		OK(hipMemcpyAsync(host, p, 4096, hipMemcpyDeviceToHost, s[1]));
		OK(hipMemcpyAsync(host + 4096, p + n - 4096, 4096, hipMemcpyDeviceToHost, s[1]));
		if (async) {
			OK(hipFreeAsync(p, s[1]));
			OK(hipStreamSynchronize(s[1]));
		} else {
			OK(hipStreamSynchronize(s[1]));
			OK(hipFree(p));
		}
		CHECK(host[0] == v && host[4095] == v && host[4096] == v && host[8191] == v);
		if (i % 25 == 24) {
			OK(hipStreamDestroy(s[1]));
			OK(hipStreamCreateWithFlags(&s[1], hipStreamNonBlocking));
			OK(hipDeviceSynchronize());
		}
	}
	OK(hipStreamDestroy(s[0]));
	OK(hipStreamDestroy(s[1]));
	OK(hipEventDestroy(e));
	OK(hipHostFree(host));
	return NULL;
}

int main(void)
{
	pthread_t th[THREADS];
	size_t f, t;

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&th[i], NULL, run, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
	OK(hipDeviceSynchronize());
	OK(hipMemGetInfo(&f, &t));
	CHECK(f == t);
	return 0;
}
