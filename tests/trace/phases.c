/* SPDX-License-Identifier: MIT */
/*
 * A program that says what it is doing by roctx: `trace_phases LIBRARY|none`. The library is one
 * that the loader has not when the first range begins, as that of a plug-in.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hip/hip_runtime_api.h>

#define MIB ((size_t)1 << 20)
#define CHECK(condition) do { \
	if (!(condition)) { \
		fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
		exit(1); \
	} \
} while (0)

/* The preload has them; the program runs without it, too. */
__attribute__((weak)) int roctxRangePushA(const char *message);
__attribute__((weak)) int roctxRangePop(void);
__attribute__((weak)) void roctxMarkA(const char *message);
__attribute__((weak)) uint64_t roctxRangeStartA(const char *message);
__attribute__((weak)) void roctxRangeStop(uint64_t id);

static void *take(size_t mib)
{
	void *p;

	CHECK(hipMalloc(&p, mib * MIB) == hipSuccess);
	return p;
}

int main(int argc, char **argv)
{
	bool real = strcmp(argv[1], "none") != 0;
	void *weights = take(8), *kept[3] = {NULL}, *large;
	void *library = NULL;

	CHECK(argc == 2 && roctxRangePushA);
	CHECK(roctxRangePushA("init") == 0);
	CHECK(roctxRangePop() == 0);
	CHECK(roctxRangePop() == 0); /* one too many */
	if (real)
		CHECK((library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)));
	roctxMarkA("loaded");
	uint64_t all = roctxRangeStartA("all steps");
	for (int i = 0; i < 3; i++) {
		CHECK(roctxRangePushA("step") == 0);
		CHECK(roctxRangePushA("forward") == (real ? 1 : 0));
		large = take(16 + 16 * (i == 1));
		kept[i] = take(1);
		CHECK(hipFree(large) == hipSuccess);
		roctxRangePop();
		roctxRangePop();
	}
	roctxRangeStop(all);
	roctxRangePushA("left open");
	CHECK(hipFree(weights) == hipSuccess);
	if (real) {
		const int *calls = dlsym(library, "roctx_calls");
		CHECK(calls && calls[0] == 1 && calls[1] == 7 && calls[2] == 6 && calls[3] == 1 &&
		      calls[4] == 1);
	}
	for (int i = 0; i < 3; i++)
		CHECK(hipFree(kept[i]) == hipSuccess);
	return 0;
}
