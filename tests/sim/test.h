/* SPDX-License-Identifier: MIT */
/* Checks for the tests of the software device, and its test control. */
#ifndef TEST_H
#define TEST_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hip/hip_runtime_api.h>

#define CHECK(x) do { \
	if (!(x)) { \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
		exit(1); \
	} \
} while (0)
#define EXPECT(call, want) do { \
	int e_ = (int)(call); \
	if (e_ != (int)(want)) { \
		fprintf(stderr, "%s:%d: %s = %d, expected %d\n", __FILE__, __LINE__, #call, e_, \
			(int)(want)); \
		exit(1); \
	} \
} while (0)
#define OK(call) EXPECT(call, hipSuccess)

static inline void *control(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);

	if (!p) {
		fprintf(stderr, "%s not found: not the software device\n", name);
		exit(77);
	}
	return p;
}

static inline void stall(hipStream_t s)
{
	CHECK(((int (*)(hipStream_t))control("somasim_stall_stream"))(s) == 0);
}

static inline void release(hipStream_t s)
{
	CHECK(((int (*)(hipStream_t))control("somasim_release_stream"))(s) == 0);
}

#endif
