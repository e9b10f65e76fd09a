/* SPDX-License-Identifier: MIT */
/*
 * What a launch costs: `launch ROUNDS` launches a kernel with eight pointers into blocks, whose
 * metadata a code object has, and waits every 64 rounds. Prints microseconds of processor time of
 * the launching thread per launch: the median of nine runs. With `count`, one run in counted(), for
 * callgrind.
 */
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"
#include "tests/check/code_writer.h"

#define ARGS 8
#define RUNS 9
#define BATCH 64

static hipFunction_t kernel;
static hipStream_t stream;
static void *block[ARGS], *args[ARGS];

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

__attribute__((noinline)) static void counted(int launches)
{
	for (int i = 0; i < launches; i++)
		CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, stream, args, NULL));
}

/* Of the launches, without the waits. */
static double run(int rounds)
{
	double took = 0;

	for (int i = 0; i < rounds; i += BATCH) {
		double start = cpu_us();

		counted(BATCH);
		took += cpu_us() - start;
		CHECK(hipStreamSynchronize(stream));
	}
	return took / rounds;
}

int main(int argc, char **argv)
{
	static const char *const kernels[] = {"eight", "pppppppp", NULL};
	int rounds = argc > 1 ? atoi(argv[1]) / BATCH * BATCH : 0;
	static struct code_writer code;
	double took[RUNS];
	hipModule_t module;

	if (rounds < 1)
		die("usage: launch ROUNDS [count]; ROUNDS is 64 at least");
	CHECK(hipModuleLoadData(&module, code_object(&code, kernels)));
	CHECK(hipModuleGetFunction(&kernel, module, "eight"));
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int i = 0; i < ARGS; i++) {
		CHECK(hipMallocAsync(&block[i], 4096, stream));
		args[i] = &block[i];
	}
	if (argc > 2) {
		run(rounds);
		printf("launches %d\n", rounds);
		return 0;
	}
	for (int i = 0; i < RUNS; i++)
		took[i] = run(rounds);
	printf("us %.3f\n", median(took, RUNS));
	return 0;
}
