/* SPDX-License-Identifier: MIT */
/* A library that the program links, or opens: its destructor frees. In one that is linked it runs
 * after all that the preload itself has at the end of the process. */
#include <hip/hip_runtime_api.h>
#include <stddef.h>

static void *classic, *pooled;
static int again;

__attribute__((visibility("default"))) int static_frees_allocate(int twice);

int static_frees_allocate(int twice)
{
	again = twice;
	return hipMallocAsync(&pooled, 3 << 20, NULL) || hipMalloc(&classic, 5 << 20);
}

__attribute__((destructor)) static void frees(void)
{
	for (int i = 0; classic && i <= again; i++) {
		(void)hipFree(classic);
		(void)hipFreeAsync(pooled, NULL);
	}
}
