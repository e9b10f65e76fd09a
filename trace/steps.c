/* SPDX-License-Identifier: MIT */
/* Distances between return addresses. Only on x86-64 do these lie at the end of their frames. */
#include <stddef.h>

#include "trace/steps.h"

#if defined(__x86_64__)

#define PROBES 8u     /* slots that are looked at before the table counts as full */
#define FRAMES_MAX 1024u /* most frames of a walk */
/* A step is a return address (48 bits) and a distance in units of 8 bytes (16 bits). */
#define LAST 0xffffu   /* no frame follows */
#define VARIES 0xfffeu /* the frame has no fixed size, because of alloca or alignment */

/* The entry of a return address, or a free one, as *step. SS_STEPS: the table is full there. */
static uint32_t find(const _Atomic uint64_t *steps, uintptr_t ip, uint64_t *step)
{
	uint32_t i = (uint32_t)((uint64_t)ip * 0x9e3779b97f4a7c15ull >> 48);

	for (uint32_t n = 0; n < PROBES; n++, i++) {
		*step = atomic_load_explicit(&steps[i % SS_STEPS], memory_order_relaxed);
		if (*step >> 16 == ip || *step == 0)
			return i % SS_STEPS;
	}
	return SS_STEPS;
}

__attribute__((no_sanitize_address, no_sanitize_thread)) bool ss_steps_walk(
	const _Atomic uint64_t *steps, const struct ss_stack_bounds *bounds, struct ss_frame frame,
	bool (*each)(struct ss_frame frame, void *arg), void *arg)
{
	uint64_t step;

	if (frame.sp < bounds->low)
		return false;
	for (uint32_t frames = 0; frames < FRAMES_MAX; frames++) {
		if (find(steps, frame.ip, &step) == SS_STEPS || step == 0)
			return false;
		if (!each(frame, arg))
			return true;
		uint32_t distance = step & 0xffff;
		if (distance == LAST)
			return frame.sp == bounds->high;
		frame.sp += distance * 8;
		if (distance == VARIES || frame.sp > bounds->high)
			return false;
		frame.ip = ((const uintptr_t *)frame.sp)[-1];
	}
	return false;
}

static void learn(_Atomic uint64_t *steps, uintptr_t ip, uint32_t distance)
{
	uint64_t step, learned = (uint64_t)ip << 16 | distance;

	for (;;) {
		uint32_t at = (uint64_t)ip >> 48 ? SS_STEPS : find(steps, ip, &step);
		if (at == SS_STEPS || step == learned || (step & 0xffff) == VARIES)
			return;
		if (step != 0) /* another distance: the frame has no fixed size */
			learned = (uint64_t)ip << 16 | VARIES;
		if (atomic_compare_exchange_strong(&steps[at], &step, learned))
			return;
	}
}

__attribute__((no_sanitize_address, no_sanitize_thread)) void ss_steps_learn(
	struct ss_steps_learner *l, struct ss_frame frame)
{
	uintptr_t from = l->last.sp, to = frame.sp;

	/* A signal's frame, another stack, and a frame without a stack pointer give no step. */
	if (l->frames == 0)
		l->stopped = frame.sp == 0;
	else if (!l->stopped && to > from && (to - from) / 8 < VARIES && (to - from) % 8 == 0 &&
		 ((const uintptr_t *)to)[-1] == frame.ip)
		learn(l->steps, l->last.ip, (uint32_t)((to - from) / 8));
	else
		l->stopped = true;
	l->last = frame;
	l->frames++;
}

void ss_steps_learned(const struct ss_steps_learner *l, struct ss_stack_bounds *bounds,
		      uintptr_t low, bool whole)
{
	uintptr_t high = l->last.sp;

	if (!l->frames || l->stopped)
		return;
	if (whole)
		learn(l->steps, l->last.ip, LAST);
	if (high == bounds->high ||
	    (!whole && low < bounds->high && high > bounds->low)) { /* the stack is the same */
		bounds->low = low < bounds->low ? low : bounds->low;
		bounds->high = high > bounds->high ? high : bounds->high;
	} else {
		bounds->low = low;
		bounds->high = high;
	}
}

#else
bool ss_steps_walk(const _Atomic uint64_t *steps, const struct ss_stack_bounds *bounds,
		   struct ss_frame first, bool (*each)(struct ss_frame frame, void *arg), void *arg)
{
	(void)steps, (void)bounds, (void)first, (void)each, (void)arg;
	return false;
}

void ss_steps_learn(struct ss_steps_learner *l, struct ss_frame frame)
{
	l->last = frame;
	l->frames++;
}

void ss_steps_learned(const struct ss_steps_learner *l, struct ss_stack_bounds *bounds,
		      uintptr_t low, bool whole)
{
	(void)l, (void)bounds, (void)low, (void)whole;
}
#endif
