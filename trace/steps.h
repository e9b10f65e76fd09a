/* SPDX-License-Identifier: MIT */
/*
 * Walks a call stack by steps that unwindings have learned: for each return address the distance to
 * the next one on the stack. A walk takes a few nanoseconds per frame. Its result counts only if
 * the unwinder has found the same stack before. The unwinder also runs now and then in any case, to
 * find frames without a fixed size. Any thread, no lock.
 */
#ifndef SS_TRACE_STEPS_H
#define SS_TRACE_STEPS_H

#include <stdatomic.h>

#include "trace/unwind.h"

#define SS_STEPS (1u << 16) /* most return addresses whose frame size is known */

/* The part of a thread's stack that is certainly mapped. Each thread has its own bounds. */
struct ss_stack_bounds {
	uintptr_t low, high;
};

/* Follows known steps in a table of SS_STEPS entries, which begins with zeros. `each` returns false
 * to stop. False: a step is unknown. */
bool ss_steps_walk(const _Atomic uint64_t *steps, const struct ss_stack_bounds *bounds,
		   struct ss_frame first, bool (*each)(struct ss_frame frame, void *arg),
		   void *arg);

/* An unwinding that learns. Its fields start as zeros, except `steps`. */
struct ss_steps_learner {
	_Atomic uint64_t *steps;
	struct ss_frame last;
	uint32_t frames;
	bool stopped; /* a return address does not lie at the end of its frame */
};
/* The next frame. */
void ss_steps_learn(struct ss_steps_learner *l, struct ss_frame frame);
/* Ends the learning after the last frame. `whole`: the stack has no more frames; `low`: the first
 * stack pointer. */
void ss_steps_learned(const struct ss_steps_learner *l, struct ss_stack_bounds *bounds,
		      uintptr_t low, bool whole);

#endif
