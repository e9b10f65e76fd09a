/* SPDX-License-Identifier: MIT */
/*
 * Accounting of the exported calls: each is counted per thread, and may be made to fail,
 * to cost time, or to start the device. Calls have numbers: HSA's from SIM_HSA_FIRST,
 * HIP's from SIM_HIP_FIRST.
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/macros.h"

#define SIM_MAX_CALLS 1024
#define SIM_HSA_FIRST 0
#define SIM_HIP_FIRST 320

/* Why a call takes the slow path: bits of sim_call_special. */
enum {
	SIM_CALL_FAILS = 1,
	SIM_CALL_COSTS = 2,
	SIM_CALL_DEAD = 4, /* this process is a child of one that had started */
	SIM_CALL_NO_DEVICE = 8,
	SIM_CALL_HOLDS = 16,
	SIM_CALL_STARTS = 32, /* the device has not started yet */
	SIM_CALL_INSIDE = 64, /* threads in such calls are counted */
};

#define SIM_LOST (-1) /* the call does nothing, and reports success */

struct sim_thread {
	_Atomic uint64_t counts[SIM_MAX_CALLS];
	int depth;                 /* exported calls in progress on this thread */
	int verdict;               /* result forced on the current call, 0 = none, or SIM_LOST */
	bool holds_at_end;         /* somasim_hold: stop before this call returns */
	bool inside;               /* somasim_count_inside: this call is one of them */
	struct sim_queue **queues; /* per-thread streams by device, or NULL */
	int upper[8];              /* for the layer above; zero at first */
	struct sim_thread *next, *prev;
};

extern __thread struct sim_thread *sim_tls __attribute__((tls_model("initial-exec")));
extern _Atomic unsigned char sim_call_special[SIM_MAX_CALLS];

/* Called when a thread with per-thread streams ends. Set once. */
extern void (*_Atomic sim_thread_end)(struct sim_thread *t);

struct sim_thread *sim_thread_new(void);

/* Gives names to the calls from first on; the list must live as long as the process. */
void sim_calls_register(int first, const char *const *names, int count);

/* The number of a registered call, or -1. */
int sim_call_id(const char *name);

/* These guard the table of names and whatever belongs to it (failures.c). */
void sim_calls_lock(void);
void sim_calls_unlock(void);

/* In failures.c. Called for the calls that sim_call_special marks. */
void sim_enter_slow(struct sim_thread *t, int id);
void sim_leave_slow(struct sim_thread *t);

/* The record of the calling thread. */
static inline struct sim_thread *sim_self(void)
{
	struct sim_thread *t = sim_tls;

	return likely(t) ? t : sim_thread_new();
}

/* Every exported call begins here. It must be fast: a preloaded library may call
 * hipGetDevice for each of its own allocations. Only the outermost call of a thread
 * counts, since the runtime calls its own exports too. */
static inline struct sim_thread *sim_enter(int id)
{
	struct sim_thread *t = sim_self();

	t->verdict = 0;
	if (t->depth++ == 0) {
		uint64_t n = atomic_load_explicit(&t->counts[id], memory_order_relaxed);

		atomic_store_explicit(&t->counts[id], n + 1, memory_order_relaxed);
		if (unlikely(atomic_load_explicit(&sim_call_special[id], memory_order_relaxed)))
			sim_enter_slow(t, id);
	}
	return t;
}

static inline void sim_leave(struct sim_thread *t)
{
	if (--t->depth == 0 && unlikely(t->holds_at_end || t->inside))
		sim_leave_slow(t);
}

#endif
