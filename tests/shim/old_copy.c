/* SPDX-License-Identifier: MIT */
/*
 * Stands for a version of the library that knows nothing of copies: it exports what every version
 * does, and its hipMalloc calls that of the next object behind it.
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT char somashim_report[4096];

static int calls;

EXPORT hipError_t hipMalloc(void **ptr, size_t size)
{
	hipError_t (*next)(void **, size_t) = (hipError_t(*)(void **, size_t))dlsym(RTLD_NEXT,
										    "hipMalloc");

	calls++;
	return next ? next(ptr, size) : hipErrorNotInitialized;
}

__attribute__((destructor)) static void say(void)
{
	printf("old: calls %d\n", calls);
	fflush(stdout);
}
