/* SPDX-License-Identifier: MIT */
/* Arithmetic of sizes and counts. */
#ifndef SS_BASE_ARITHMETIC_H
#define SS_BASE_ARITHMETIC_H

#include <stdint.h>

static inline uint64_t ss_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t ss_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* a - b, or 0 if b is larger. */
static inline uint64_t ss_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* n rounded up to a multiple of `unit`. */
static inline uint64_t ss_round(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

#endif
