/* SPDX-License-Identifier: MIT */
/*
 * The loop of the training course: 100 times an allocation of 16 MiB, a kernel of
 * 200 us, a free; loop classic|async|none STREAMS, a thread per stream. Prints
 * milliseconds, and the blocks that the device was asked for per stream; `none` is the
 * kernels alone.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench/bench.h"

#define ROUNDS 100
#define BLOCK (16 << 20)
#define KERNEL_NS 200000

static char how;
static int streams;

/* Bytes that the device reports as free. Nothing goes back during the loop. */
static double left(void)
{
	uint64_t (*bytes)(int) = symbol("somasim_device_free_bytes");

	if (!bytes)
		die("not on the software device");
	return (double)bytes(0);
}

/* What the kernel takes of the device. */
__attribute__((visibility("default"))) void somasim_kernel_busy(void **args);
__attribute__((visibility("default"))) void somasim_kernel_busy(void **args)
{
	struct timespec ts;
	long end;

	(void)args;
	/* Otherwise each sleep ends up to 50 us late, by a different time each. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	end = ts.tv_nsec + KERNEL_NS;
	ts.tv_sec += end / 1000000000;
	ts.tv_nsec = end % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *worker(void *arg)
{
	void (*reg)(const void *, void (*)(void **)) = symbol("somasim_register_kernel");
	static char kernel;
	hipStream_t stream = NULL;
	void *p = NULL;

	if (!reg)
		die("not on the software device");
	reg(&kernel, somasim_kernel_busy);
	if (streams > 1 || how == 'a')
		CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int i = 0; i < ROUNDS; i++) {
		if (how == 'c')
			CHECK(hipMalloc(&p, BLOCK));
		else if (how == 'a')
			CHECK(hipMallocAsync(&p, BLOCK, stream));
		CHECK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream));
		if (how == 'c')
			CHECK(hipFree(p));
		else if (how == 'a')
			CHECK(hipFreeAsync(p, stream));
	}
	CHECK(hipStreamSynchronize(stream));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[16];
	double start, ms, before;
	void *p = NULL;

	if (argc != 3 || (streams = atoi(argv[2])) < 1 || streams > 16)
		die("usage: loop classic|async|none STREAMS");
	how = argv[1][0];
	CHECK(hipFree(NULL));
	before = left();
	/* The start of the runtime and of the shim is not part of the loop. */
	CHECK(hipMalloc(&p, BLOCK));
	CHECK(hipFree(p));
	start = now_ns();
	for (int i = 0; i < streams; i++)
		if (pthread_create(&thread[i], NULL, worker, NULL))
			die("no thread");
	for (int i = 0; i < streams; i++)
		pthread_join(thread[i], NULL);
	ms = (now_ns() - start) / 1e6;
	printf("ms %.2f blocks %.1f\n", ms, (before - left()) / BLOCK / streams);
	return 0;
}
