/* SPDX-License-Identifier: MIT */
/* What the programs that run under the preload share. */
#ifndef TEST_SHIM_H
#define TEST_SHIM_H

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIP 77

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		exit(1); \
	} \
} while (0)

#define GIVES(want, call) do { \
	hipError_t got_ = (call); \
	if (got_ != (want)) { \
		fprintf(stderr, "%s:%d: %s gave %d, not %d\n", __FILE__, __LINE__, #call, \
			(int)got_, (int)(want)); \
		exit(1); \
	} \
} while (0)

#define OK(call) GIVES(hipSuccess, call)

/* The software device's own calls; on a real device there are none. */
static inline void *sim_call(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static inline uint64_t sim_calls(void)
{
	uint64_t (*total)(void) = (uint64_t (*)(void))sim_call("somasim_total_calls");

	if (!total) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	return total();
}

static inline uint64_t sim_count(const char *name)
{
	uint64_t (*count)(const char *) =
		(uint64_t (*)(const char *))sim_call("somasim_call_count");

	if (!count) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	return count(name);
}

/* Holds a stream, and lets it go again. */
static inline void stall(hipStream_t stream)
{
	int (*fn)(hipStream_t) = (int (*)(hipStream_t))sim_call("somasim_stall_stream");

	if (!fn) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	CHECK(fn(stream) == 0);
}

static inline void release(hipStream_t stream)
{
	int (*fn)(hipStream_t) = (int (*)(hipStream_t))sim_call("somasim_release_stream");

	CHECK(fn && fn(stream) == 0);
}

/* Is the shim in the way at all? Its hipMalloc is not the runtime's. */
static inline bool preloaded(void)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "hipMalloc"), &info) &&
	       strstr(info.dli_fname, "libsomashim") != NULL;
}

static inline int runtime_major(void)
{
	int v = 0;

	(void)hipRuntimeGetVersion(&v);
	return v / 10000000;
}

#endif
