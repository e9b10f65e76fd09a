/* SPDX-License-Identifier: MIT */
/*
 * Waiting for another thread that cannot wake the waiter up: the waiter spins, yields, then sleeps.
 *
 * The sleep ends the wait if the other thread has been preempted. A thread of a real-time policy
 * that only spins or yields keeps its processor for ever, and the other thread may need that
 * processor. No libc function that sleeps is called, because those are cancellation points and the
 * caller may hold a lock.
 */
#ifndef SS_BASE_BACKOFF_H
#define SS_BASE_BACKOFF_H

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/compiler.h"

#define SS_BACKOFF_SPINS 64u
#define SS_BACKOFF_YIELDS 64u
#define SS_BACKOFF_NS 50000u /* the first sleeps; */
#define SS_BACKOFF_STEP 16u  /* after so many sleeps the next are twice as long, */
#define SS_BACKOFF_DOUBLE 4u /* so many times: 0.8 ms */

/* Sleeps for ns < 10^9. No cancellation point; leaves errno as it is. */
static SS_NOINLINE __attribute__((cold, unused)) void ss_sleep_ns(unsigned ns)
{
	struct timespec t = {.tv_nsec = ns};
	int saved = errno;

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	errno = saved;
}

/* One turn of a wait, without a lock or with one. *turn is 0 before the first and counts the
 * turns. */
static inline void ss_backoff(unsigned *turn)
{
	unsigned n = (*turn)++, slept;

	if (likely(n < SS_BACKOFF_SPINS))
		return;
	if (n < SS_BACKOFF_SPINS + SS_BACKOFF_YIELDS) {
		sched_yield();
		return;
	}
	slept = (n - SS_BACKOFF_SPINS - SS_BACKOFF_YIELDS) / SS_BACKOFF_STEP;
	ss_sleep_ns(SS_BACKOFF_NS << (slept < SS_BACKOFF_DOUBLE ? slept : SS_BACKOFF_DOUBLE));
}

#endif
