/* SPDX-License-Identifier: MIT */
/*
 * A block that is written and checked in places: around every STAMP_STEP and CHECK_STEP bytes and
 * at both ends. Chunks are 2 MiB or more, so each has several such places. A block that is written
 * as a whole would cost a page fault per 4 KiB, which was most of what these tests took.
 */
#ifndef TEST_BORDERS_H
#define TEST_BORDERS_H

#include "test.h"

#define STAMP_STEP ((size_t)256 << 10)
#define CHECK_STEP ((size_t)2 << 20) /* a multiple of STAMP_STEP */
#define STAMP_BYTES 128

/* Where the bytes around `at` begin. */
static inline size_t border_from(size_t at, size_t size)
{
	size_t from = at < STAMP_BYTES / 2 ? 0 : at - STAMP_BYTES / 2;

	CHECK(size >= STAMP_BYTES);
	return from + STAMP_BYTES > size ? size - STAMP_BYTES : from;
}

static inline void stamp_borders(char *p, size_t size, int value, hipStream_t s)
{
	for (size_t at = 0; at < size; at += STAMP_STEP)
		OK(hipMemsetAsync(p + border_from(at, size), value, STAMP_BYTES, s));
	OK(hipMemsetAsync(p + border_from(size, size), value, STAMP_BYTES, s));
}

static inline void check_borders(const char *p, size_t size, int value, hipStream_t s)
{
	unsigned char got[STAMP_BYTES];

	for (size_t at = 0; at < size + CHECK_STEP; at += CHECK_STEP) {
		size_t place = at < size ? at : size;

		OK(hipMemcpyAsync(got, p + border_from(place, size), sizeof(got),
				  hipMemcpyDeviceToHost, s));
		OK(hipStreamSynchronize(s));
		for (size_t i = 0; i < sizeof(got); i++)
			CHECK(got[i] == value);
	}
}

#endif
