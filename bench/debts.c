/* SPDX-License-Identifier: MIT */
/*
 * The cost of hipFree's wait for a program that has only the null stream: hipMalloc, one piece of
 * device work, hipFree, over and over. bench/debts.sh compares the modes of SOMASHIM_FREE_SYNC.
 *   debts LOOPS
 * A line per loop: its name, and microseconds per turn. `kernel` is a kernel of 10 us, `memset`
 * writes the block.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "bench/bench.h"

#define KERNEL_NS 10000

static const struct loop {
	const char *name;
	size_t size;
	bool memset;
} loops[] = {
	{"kernel-64K", 64 << 10, false},
	{"kernel-4M", 4 << 20, false},
	{"memset-64K", 64 << 10, true},
	{"memset-4M", 4 << 20, true},
};

static void body(void **args)
{
	double end = now_ns() + KERNEL_NS;

	(void)args;
	while (now_ns() < end)
		;
}

static char kernel;

static void turn(const struct loop *l)
{
	void *p = NULL;

	CHECK(hipMalloc(&p, l->size));
	if (l->memset)
		CHECK(hipMemsetAsync(p, 0, l->size, NULL));
	else
		CHECK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
	CHECK(hipFree(p));
}

int main(int argc, char **argv)
{
	void (*reg)(const void *, void (*)(void **)) = symbol("somasim_register_kernel");
	int turns = argc == 2 ? atoi(argv[1]) : 0;

	if (turns < 1)
		die("usage: debts LOOPS");
	if (!reg)
		die("not on the software device");
	reg(&kernel, body);
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		double start;

		for (int k = 0; k < 10; k++)
			turn(&loops[i]);
		CHECK(hipDeviceSynchronize());
		start = now_ns();
		for (int k = 0; k < turns; k++)
			turn(&loops[i]);
		CHECK(hipDeviceSynchronize());
		printf("%s %.2f\n", loops[i].name, (now_ns() - start) / 1e3 / turns);
	}
	return 0;
}
