/* SPDX-License-Identifier: MIT */
/* The pseudorandom generator behind every delay and choice (splitmix64). */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdint.h>

/* Advances *state and returns 64 random bits. The caller guards the state. */
static inline uint64_t sim_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif
