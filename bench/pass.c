/* SPDX-License-Identifier: MIT */
/* A preload that only passes the watched calls on, which is the least that any interposer costs. */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#define PASS(name, params, args) \
	__attribute__((visibility("default"))) hipError_t name params \
	{ \
		static hipError_t (*real) params; \
		if (__builtin_expect(!real, 0)) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		return real args; \
	}

PASS(hipEventRecord, (hipEvent_t event, hipStream_t stream), (event, stream))
PASS(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned int flags),
     (stream, event, flags))
PASS(hipStreamSynchronize, (hipStream_t stream), (stream))
PASS(hipEventQuery, (hipEvent_t event), (event))
