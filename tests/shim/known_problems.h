/* SPDX-License-Identifier: MIT */
/* What the files of the test of known problems share. */
#ifndef TEST_KNOWN_H
#define TEST_KNOWN_H

#include "test.h"

#define MIB ((size_t)1 << 20)

/* The default pool. */
extern hipMemPool_t pool;

static inline void set_threshold(uint64_t v)
{
	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &v));
}
static inline hipStream_t stream_new(void)
{
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	return s;
}

static inline void stamp(void *p, int value, size_t size, hipStream_t s)
{
	OK(hipMemsetAsync(p, value, size, s));
}

/* Are the first and the last bytes of the block what was written? Waits for s. */
static inline bool holds(const char *p, int value, size_t size, hipStream_t s)
{
	unsigned char got[2][64];

	OK(hipMemcpyAsync(got[0], p, 64, hipMemcpyDeviceToHost, s));
	OK(hipMemcpyAsync(got[1], p + size - 64, 64, hipMemcpyDeviceToHost, s));
	OK(hipStreamSynchronize(s));
	for (int i = 0; i < 64; i++)
		if (got[0][i] != value || got[1][i] != value)
			return false;
	return true;
}

/* known_problems_long.c */
void a_million(void);
void particles(void);
void fragmentation(void);

#endif
