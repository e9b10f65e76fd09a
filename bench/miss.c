/* SPDX-License-Identifier: MIT */
/* Counts the hits of another stream during a miss whose driver call takes 50 ms (SOMASIM_COST). */
#include <pthread.h>

#include "bench/bench.h"

static atomic_int state;

static void *misses(void *arg)
{
	hipStream_t stream;
	void *p;

	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	while (state != 1)
		;
	state = 2;
	CHECK(hipMallocAsync(&p, 256ull << 20, stream));
	state = 3;
	return arg;
}

int main(void)
{
	hipStream_t stream;
	pthread_t thread;
	double start = 0;
	long hits = 0;
	void *p, *kept;

	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	/* So that no idle memory goes back to make room for the miss. */
	CHECK(hipMallocAsync(&kept, 4096, stream));
	CHECK(hipMallocAsync(&p, 4096, stream));
	CHECK(hipFreeAsync(p, stream));
	if (pthread_create(&thread, NULL, misses, NULL))
		die("no thread");
	state = 1;
	while (state < 2)
		;
	start = now_ns();
	while (state < 3) {
		CHECK(hipMallocAsync(&p, 4096, stream));
		CHECK(hipFreeAsync(p, stream));
		hits++;
	}
	printf("ms %.1f\nhits %ld\n", (now_ns() - start) / 1e6, hits);
	pthread_join(thread, NULL);
	return 0;
}
