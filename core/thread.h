/* SPDX-License-Identifier: MIT */
/*
 * What the core keeps per thread: a record that is never unmapped, so that other threads
 * may look at it at any time, and that a later thread may get once its own has ended.
 */
#ifndef SS_CORE_THREAD_H
#define SS_CORE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The processor's own counter of time; 0 where there is none that we know. */
static inline uint64_t ss_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

struct ss_bias;

struct ss_thread {
	/* The biased lock that it holds or is about to (core/lock.h). Only the thread
	 * itself writes it. */
	_Atomic(struct ss_bias *) inside;
	/* What it used last: valid while gen is the core's recent_gen. Generations differ
	 * between cores. */
	uint64_t gen;
	void *native;
	struct ss_timeline *tl;
	struct ss_queue *q;    /* of the device's current pool */
	struct ss_count *count; /* where the bytes of that are counted (core/hit.h) */
	struct ss_pool *frees; /* the pool, where a free is no more than a push, */
	uint64_t free_gen;     /* and gen again; else 0 */
	uint64_t live;         /* what a block of its says while it is live (core/hit.h) */
	/* The same for hipMalloc and hipFree while one timeline orders all work of `only_dev`. */
	int only_dev;
	uint64_t only_gen;
	uint64_t only_live;
	struct ss_timeline *only_tl;
	struct ss_queue *only_q;
	struct ss_count *only_count;
	struct ss_pool *only_pool;
	atomic_bool over; /* its thread has ended */
	struct ss_thread *spare;
};

/* The calling thread's. Initial-exec, as in driver/rocm/guard.h. Never NULL: a thread that has no
 * record yet stands at one that is nobody's, in which nothing is valid. */
extern _Thread_local struct ss_thread *ss_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
extern struct ss_thread ss_nobody __attribute__((visibility("hidden")));

/* Makes a record if the thread has none. &ss_nobody: host memory is out. */
struct ss_thread *ss_thread_record(void);

/* Makes every running thread of the process execute a full barrier. */
void ss_thread_barrier(void);
/* Can it be had? */
extern atomic_bool ss_thread_barrier_known __attribute__((visibility("hidden")));
static inline bool ss_thread_barriers(void)
{
	return atomic_load_explicit(&ss_thread_barrier_known, memory_order_relaxed);
}
/* How many there were. */
uint64_t ss_thread_barrier_count(void);

#endif
