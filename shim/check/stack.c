/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of findings. Each different one is kept once. A stack is a return address in each
 * frame; names come when a finding is written. The unwinder is asked for stacks that are not known
 * yet, and for one in VERIFY_EVERY of the others (steps.h).
 *
 * Locks: `lock`, a leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "shim/check/inside.h"

#define FRAMES_MAX 24u
#define STACKS_MAX 65536u
#define FRAMES_OWN 16u /* in front of the caller's */
#define VERIFY_EVERY 256u

struct stack {
	uint32_t id, count;
	UT_hash_handle hh;
	uintptr_t ip[];
};

extern const char start_of_us[] __asm__("__ehdr_start") SS_HIDDEN;
extern const char end_of_us[] __asm__("_end") SS_HIDDEN;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stack *by_content, **by_id;
static uint32_t stacks;

static _Atomic uint64_t steps[SS_STEPS];

struct walk {
	uint32_t count;
	uintptr_t ip[FRAMES_MAX];
	struct ss_steps_learner learner; /* of an unwinding */
	bool whole;                      /* the stack has no more frames */
};

static bool add(struct ss_frame frame, void *arg)
{
	struct walk *w = arg;

	if (!w->count && frame.ip >= (uintptr_t)start_of_us && frame.ip < (uintptr_t)end_of_us)
		return true;
	w->ip[w->count++] = frame.ip;
	return w->count < FRAMES_MAX;
}

static bool learn(struct ss_frame frame, void *arg)
{
	struct walk *w = arg;

	ss_steps_learn(&w->learner, frame);
	w->whole = add(frame, w) && w->learner.frames < FRAMES_MAX + FRAMES_OWN;
	return w->whole;
}

static struct stack *stack_add(const struct walk *w)
{
	struct stack *s;

	if (stacks == STACKS_MAX)
		return NULL;
	if (!by_id)
		by_id = calloc(STACKS_MAX, sizeof(struct stack *));
	s = by_id ? malloc(sizeof(*s) + w->count * sizeof(w->ip[0])) : NULL;
	if (!s)
		return NULL;
	s->id = stacks + 1;
	s->count = w->count;
	memcpy(s->ip, w->ip, w->count * sizeof(w->ip[0]));
	HASH_ADD_KEYPTR(hh, by_content, s->ip, s->count * sizeof(s->ip[0]), s);
	if (!SS_HASH_HAS(s)) {
		free(s);
		return NULL;
	}
	by_id[stacks++] = s;
	return s;
}

/* The number of a known stack; with `add_it`, of a new one as well. 0: there is none. */
static uint32_t number_of(const struct walk *w, bool add_it)
{
	struct stack *s = NULL;
	uint32_t id = 0;

	if (!w->count)
		return 0;
	pthread_mutex_lock(&lock);
	HASH_FIND(hh, by_content, w->ip, w->count * sizeof(w->ip[0]), s);
	if (!s && add_it)
		s = stack_add(w);
	if (s)
		id = s->id;
	pthread_mutex_unlock(&lock);
	return id;
}

__attribute__((noinline)) uint32_t ss_check_stack(struct ss_stack_bounds *bounds)
{
	/* This file is compiled with frame pointers (trace/stack.c). */
	uintptr_t fp = (uintptr_t)__builtin_frame_address(0);
	struct ss_frame first = {
		.ip = (uintptr_t)__builtin_return_address(0),
		.sp = fp + 2 * sizeof(void *),
	};
	static _Atomic uint32_t asked;
	struct walk w;
	uint32_t id;

	w.count = 0;
	if (++asked % VERIFY_EVERY && ss_steps_walk(steps, bounds, first, add, &w)) {
		id = number_of(&w, false);
		if (id)
			return id;
	}
	w.count = 0;
	w.learner = (struct ss_steps_learner){.steps = steps};
	w.whole = true;
	ss_unwind(&first, fp, learn, &w);
	ss_steps_learned(&w.learner, bounds, first.sp, w.whole);
	return number_of(&w, true);
}

uint32_t ss_check_stack_frames(uint32_t id, const uintptr_t **ip)
{
	const struct stack *s = NULL;

	pthread_mutex_lock(&lock);
	if (id && id <= stacks)
		s = by_id[id - 1];
	pthread_mutex_unlock(&lock);
	*ip = s ? s->ip : NULL;
	return s ? s->count : 0;
}
