/* SPDX-License-Identifier: MIT */
/*
 * What a checker costs: `check ROUNDS` allocates, launches a kernel with the block and frees,
 * with eight blocks of different sizes in flight, and waits every 64 rounds. Prints microseconds
 * per round and, of all threads, of processor time: medians of nine runs. The kernel does nothing,
 * or on CUDA's driver, for its own checker, reads the block.
 */
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"
#include "tests/check/code_writer.h"

#define LIVE 8
#define RUNS 9

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* The software device runs this for the kernel `four`: a command that does nothing. */
void somasim_kernel_four(void **args);
extern const size_t somasim_kernel_four_args[];
__attribute__((visibility("default"))) const size_t somasim_kernel_four_args[] = {8, 8, 4, 8, 0};
__attribute__((visibility("default"))) void somasim_kernel_four(void **args)
{
	(void)args;
}

/* Of a pointer, a size, a number and a pointer. */
static hipFunction_t kernel_of_device(void)
{
	static const char *const kernels[] = {"four", "plip", NULL};
	hipFunction_t (*of_cuda)(const char *) = symbol("somacuda_kernel");
	static struct code_writer code;
	hipFunction_t kernel;
	hipModule_t module;

	if (of_cuda)
		return of_cuda("check");
	CHECK(hipModuleLoadData(&module, code_object(&code, kernels)));
	CHECK(hipModuleGetFunction(&kernel, module, "four"));
	return kernel;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 2000;
	unsigned value = 0;
	size_t words = 64;
	double took[RUNS], cpu[RUNS];
	hipFunction_t kernel;
	hipStream_t stream;
	void *p[LIVE] = {NULL}, *wrong;

	if (rounds < 1)
		die("usage: check ROUNDS");
	CHECK(hipMalloc(&wrong, 64));
	kernel = kernel_of_device();
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	for (int run = 0; run < RUNS; run++) {
		double start = now_ns(), cpu_start = cpu_us();

		for (int i = 0; i < rounds; i++) {
			void **at = &p[i % LIVE];

			if (*at)
				CHECK(hipFreeAsync(*at, stream));
			CHECK(hipMallocAsync(at, 1000 * (size_t)(i % LIVE + 1), stream));
			CHECK(hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream,
						    (void *[]){at, &words, &value, &wrong}, NULL));
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
