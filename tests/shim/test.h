/* SPDX-License-Identifier: MIT */
/* Helpers of the programs that run under the preload. */
#ifndef TEST_SHIM_H
#define TEST_SHIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"

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

static inline double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* A pool on `dev`, to be shared by handles of these types. */
static inline hipMemPool_t make_pool(int dev, hipMemAllocationHandleType types)
{
	hipMemPoolProps props;
	hipMemPool_t pool;

	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = types;
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = dev;
	OK(hipMemPoolCreate(&pool, &props));
	return pool;
}

static inline bool backed_by(const char *backing)
{
	const char *is = getenv("SOMASHIM_BACKING");

	return is && !strcmp(is, backing);
}

static inline uint64_t figure(hipMemPool_t pool, hipMemPoolAttr attr)
{
	uint64_t v = 0;

	OK(hipMemPoolGetAttribute(pool, attr, &v));
	return v;
}

#ifdef BYTES /* blocks of so many bytes, all of one value */
static inline void fill(void *p, int value)
{
	OK(hipMemset(p, value, BYTES));
	OK(hipDeviceSynchronize());
}

static inline bool holds(const void *p, int value)
{
	static unsigned char host[BYTES];

	OK(hipMemcpy(host, p, BYTES, hipMemcpyDeviceToHost));
	for (size_t i = 0; i < BYTES; i++)
		if (host[i] != value)
			return false;
	return true;
}
#endif

/* Is the shim in the way at all? Its hipMalloc is not the runtime's. */
static inline bool preloaded(void)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "hipMalloc"), &info) &&
	       strstr(info.dli_fname, "libsomashim") != NULL;
}

/* 100 * major + minor */
static inline int runtime_version(void)
{
	int v = 0;

	(void)hipRuntimeGetVersion(&v);
	return v / 10000000 * 100 + v / 100000 % 100;
}

static inline int runtime_major(void)
{
	return runtime_version() / 100;
}

#endif
