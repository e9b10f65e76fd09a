/* SPDX-License-Identifier: MIT */
/*
 * A device with more memory than its total, as APUs are: the total is no limit for anything, and
 * the free figure is never below the runtime's own.
 *
 *   apu        88 GiB can be had, and HIP says 15
 *   apu limit  the same with SOMASHIM_LIMIT=50%, which is 44 GiB
 */
#include "test.h"

#define GIB ((uint64_t)1 << 30)
#define ALL (88 * GIB)
#define TOTAL (15 * GIB)
#define BLOCKS 9

static hipStream_t s;

/* Checks the figures; returns the free one. */
static uint64_t free_now(void)
{
	size_t left, total;

	OK(hipMemGetInfo(&left, &total));
	CHECK(total == TOTAL);
	CHECK(left >= device_free(0) || getenv("SOMASHIM_LIMIT"));
	return left;
}

static void without_limit(void)
{
	void *p[BLOCKS];
	size_t total;

	CHECK(free_now() == device_free(0));
	OK(hipDeviceTotalMem(&total, 0));
	CHECK(total == TOTAL);
	/* Pools of both kinds. */
	for (int i = 0; i < BLOCKS; i++) {
		if (i < 2)
			OK(hipMalloc(&p[i], 9 * GIB));
		else
			OK(hipMallocAsync(&p[i], 9 * GIB, s));
		free_now();
	}
	CHECK(free_now() < 8 * GIB);
	for (int i = 0; i < BLOCKS; i++)
		OK(hipFreeAsync(p[i], s));
	OK(hipStreamSynchronize(s));
	/* Idle memory can be had. */
	CHECK(free_now() > ALL - GIB);
	OK(hipMallocAsync(&p[0], 80 * GIB, s));
	OK(hipFreeAsync(p[0], s));
}

static void with_limit(void)
{
	void *p;

	CHECK(free_now() > 43 * GIB && free_now() <= 44 * GIB);
	for (int i = 0; i < 4; i++)
		OK(hipMallocAsync(&p, 9 * GIB, s));
	CHECK(free_now() <= 8 * GIB);
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, 9 * GIB, s));
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	if (argc > 1 && !strcmp(argv[1], "limit"))
		with_limit();
	else
		without_limit();
	return 0;
}
