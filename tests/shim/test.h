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
#include <time.h>

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

/* Device memory that is left, by the device's own figure. */
static inline uint64_t device_free(int dev)
{
	uint64_t (*bytes)(int) = (uint64_t (*)(int))sim_call("somasim_device_free_bytes");

	if (!bytes) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	return bytes(dev);
}

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

static inline int runtime_major(void)
{
	int v = 0;

	(void)hipRuntimeGetVersion(&v);
	return v / 10000000;
}

#endif
