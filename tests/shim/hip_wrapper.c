/* SPDX-License-Identifier: MIT */
/*
 * Another interposer of HIP, which stands behind somashim. It asks for the function behind itself,
 * by RTLD_NEXT or (WRAPPER=handle) in the runtime's handle. It must not get somashim's, which calls
 * it. It has hipMalloc, or (compiled with INFO) hipMemGetInfo and nothing else of HIP.
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) unsigned wrapper_calls;

static void *find(const char *name)
{
	const char *how = getenv("WRAPPER");
	void *handle = how && !strcmp(how, "handle") ?
			       dlopen("libamdhip64.so.5", RTLD_LAZY | RTLD_NOLOAD) :
			       RTLD_NEXT;
	void *next = dlsym(handle, name);

	if (++wrapper_calls > 100 || !next)
		abort();
	return next;
}

#ifndef INFO
__attribute__((visibility("default"))) hipError_t hipMalloc(void **ptr, size_t size)
{
	return ((hipError_t(*)(void **, size_t))find("hipMalloc"))(ptr, size);
}
#else
__attribute__((visibility("default"))) hipError_t hipMemGetInfo(size_t *free, size_t *total)
{
	return ((hipError_t(*)(size_t *, size_t *))find("hipMemGetInfo"))(free, total);
}
#endif
