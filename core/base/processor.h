/* SPDX-License-Identifier: MIT */
/* A barrier in all threads at once (thread.c), and the processor's time stamp counter. */
#ifndef SS_BASE_PROCESSOR_H
#define SS_BASE_PROCESSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes every running thread of the process execute a full barrier. */
void ss_thread_barrier(void);
/* Does the kernel offer that barrier? */
extern atomic_bool ss_thread_barrier_known __attribute__((visibility("hidden")));
static inline bool ss_thread_barriers(void)
{
	return atomic_load_explicit(&ss_thread_barrier_known, memory_order_relaxed);
}
/* The number of times that the barrier was used (for tests). */
uint64_t ss_thread_barrier_count(void);

/* The processor's time stamp counter; 0 on processors for which this code knows none. */
static inline uint64_t ss_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

#endif
