/* SPDX-License-Identifier: MIT */
/* Constants and macros of the software device that need no other header. */
#ifndef SIM_MACROS_H
#define SIM_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 16

#define SIM_PAGE 4096UL            /* bytes; granularity of device memory */
#define SIM_HUGE_PAGE (2UL << 20)  /* bytes; large allocations start at a multiple of it */

/* Rounds x up to a multiple of a, which is a power of two. */
#define SIM_ALIGN(x, a) (((x) + (a) - 1) & ~((size_t)(a) - 1))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define container_of(p, t, m) ((t *)(void *)((char *)(p) - offsetof(t, m)))

#endif
