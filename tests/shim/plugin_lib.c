/* SPDX-License-Identifier: MIT */
/* A plugin that is linked with HIP; the program that loads it is not. */
#include <hip/hip_runtime_api.h>

__attribute__((visibility("default"))) int plugin_run(void);

int plugin_run(void)
{
	hipStream_t s;
	void *p;

	if (hipStreamCreate(&s) != hipSuccess)
		return 1;
	for (int i = 0; i < 10; i++)
		if (hipMallocAsync(&p, 1 << 20, s) != hipSuccess ||
		    hipMemsetAsync(p, i, 1 << 20, s) != hipSuccess ||
		    hipFreeAsync(p, s) != hipSuccess)
			return 2;
	if (hipMalloc(&p, 100) != hipSuccess || hipFree(p) != hipSuccess)
		return 3;
	if (hipStreamDestroy(s) != hipSuccess || hipDeviceSynchronize() != hipSuccess)
		return 4;
	return 0;
}
