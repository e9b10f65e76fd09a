/* SPDX-License-Identifier: MIT */
/* Hints for the compiler about a condition or a function. */
#ifndef SS_BASE_COMPILER_H
#define SS_BASE_COMPILER_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define SS_INLINE static inline __attribute__((always_inline))
/* Rarely used code must not cost a hot function registers. */
#define SS_NOINLINE __attribute__((noinline))
#define SS_COLD static __attribute__((noinline, cold))

#endif
