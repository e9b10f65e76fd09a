/* SPDX-License-Identifier: MIT */
/*
 * Another interposer of HIP, which stands behind somashim. It asks for the function behind itself,
 * by RTLD_NEXT or (WRAPPER=handle) in the runtime's handle. It must not get somashim's, which calls
 * it.
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) unsigned wrapper_calls;

__attribute__((visibility("default"))) hipError_t hipMalloc(void **ptr, size_t size)
{
	const char *how = getenv("WRAPPER");
	void *handle = how && !strcmp(how, "handle") ?
			       dlopen("libamdhip64.so.5", RTLD_LAZY | RTLD_NOLOAD) :
			       RTLD_NEXT;
	hipError_t (*next)(void **, size_t) = (hipError_t(*)(void **, size_t))dlsym(handle,
										    "hipMalloc");

	if (++wrapper_calls > 100 || !next)
		abort();
	return next(ptr, size);
}
