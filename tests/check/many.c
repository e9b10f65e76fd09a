/* SPDX-License-Identifier: MIT */
/* Errors by the thousand, of which each has other call stacks. */
#include "corpus.h"

static void *freed;

static __attribute__((noinline)) void one(unsigned path, unsigned depth, void (*fn)(void));

static __attribute__((noinline)) void other(unsigned path, unsigned depth, void (*fn)(void))
{
	if (depth)
		path & 1 ? one(path >> 1, depth - 1, fn) : other(path >> 1, depth - 1, fn);
	else
		fn();
	__asm__ volatile(""); /* no call is the last thing */
}

static __attribute__((noinline)) void one(unsigned path, unsigned depth, void (*fn)(void))
{
	if (depth)
		path & 1 ? one(path >> 1, depth - 1, fn) : other(path >> 1, depth - 1, fn);
	else
		fn();
	__asm__ volatile("");
}

static void allocate(void)
{
	freed = block(a);
	__asm__ volatile("");
}

static void use(void)
{
	(void)hipMemsetAsync(freed, 0, 16, a);
	__asm__ volatile("");
}

void many(unsigned allocations, unsigned uses)
{
	for (unsigned i = 0; i < allocations; i++) {
		one(i, 10, allocate);
		OK(hipFreeAsync(freed, a));
		for (unsigned k = 0; k < uses; k++)
			one(k, 10, use);
	}
}
