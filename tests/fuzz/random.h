/* SPDX-License-Identifier: MIT */
/* The random numbers of runs without a fuzzer: xorshift64*, the same in every run. */
#ifndef TESTS_FUZZ_RANDOM_H
#define TESTS_FUZZ_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717ull >> 16;
}

#endif
