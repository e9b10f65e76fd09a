/* SPDX-License-Identifier: MIT */
/* A plugin that is linked with HIP; the program that loads it is not. */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

__attribute__((visibility("default"))) int plugin_run(void);
/* dlsym() as a library calls it: what NULL and RTLD_NEXT mean depends on who asks. */
__attribute__((visibility("default"))) void *plugin_dlsym(void *handle, const char *name);
__attribute__((visibility("default"))) void *plugin_dlvsym(void *handle, const char *name,
							   const char *version);

void *plugin_dlsym(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	__asm__ volatile("" : : "r"(found) : "memory"); /* no tail call, which would hide us */
	return found;
}

void *plugin_dlvsym(void *handle, const char *name, const char *version)
{
	void *found = dlvsym(handle, name, version);

	__asm__ volatile("" : : "r"(found) : "memory");
	return found;
}

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
