/* SPDX-License-Identifier: MIT */
/*
 * What the checker costs: `check ROUNDS` allocates, launches a kernel with the block and frees,
 * with eight blocks of different sizes in flight, and waits every 64 rounds. Prints microseconds
 * per round and, of all threads, of processor time: medians of nine runs.
 */
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"

#define LIVE 8
#define RUNS 9

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void nothing(void **args)
{
	(void)args;
}

int main(int argc, char **argv)
{
	void (*reg)(const void *, void (*)(void **)) = symbol("somasim_register_kernel");
	int rounds = argc > 1 ? atoi(argv[1]) : 2000;
	static char kernel;
	double took[RUNS], cpu[RUNS];
	hipStream_t stream;
	void *p[LIVE] = {NULL};

	if (!reg || rounds < 1)
		die("usage: check ROUNDS, on the software device");
	reg(&kernel, nothing);
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int run = 0; run < RUNS; run++) {
		double start = now_ns(), cpu_start = cpu_us();

		for (int i = 0; i < rounds; i++) {
			void **at = &p[i % LIVE];

			if (*at)
				CHECK(hipFreeAsync(*at, stream));
			CHECK(hipMallocAsync(at, 1000 * (size_t)(i % LIVE + 1), stream));
			CHECK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1},
					      (void *[]){at}, 0, stream));
			if (i % 64 == 63)
				CHECK(hipStreamSynchronize(stream));
		}
		CHECK(hipStreamSynchronize(stream));
		took[run] = (now_ns() - start) / 1e3 / rounds;
		cpu[run] = (cpu_us() - cpu_start) / rounds;
	}
	for (int i = 0; i < LIVE; i++)
		CHECK(hipFreeAsync(p[i], stream));
	printf("us %.2f cpu %.2f\n", median(took, RUNS), median(cpu, RUNS));
	return 0;
}
