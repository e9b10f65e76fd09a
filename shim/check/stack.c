/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of findings. Each different stack is kept once, as the return addresses of its
 * frames; their names are found when a finding is written. The unwinder runs for stacks that are
 * not known yet, and for one in VERIFY_EVERY of the others (steps.h). The frames of a Python
 * program are read once, with their names, because they may be gone later.
 *
 * Locks: `lock`, a leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "shim/check/inside.h"
#include "trace/python.h"

#define FRAMES_MAX 24u
#define FRAMES_OWN 16u /* frames before the caller's */
#define VERIFY_EVERY 256u

struct stack {
	uint32_t id, count;
	struct ss_check_frame *frames;
	UT_hash_handle hh;
	uintptr_t key[]; /* return addresses, and a hash of the frames of Python */
};

extern const char start_of_us[] __asm__("__ehdr_start") SS_HIDDEN;
extern const char end_of_us[] __asm__("_end") SS_HIDDEN;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stack *by_content, **by_id;
static uint32_t stacks;

static struct ss_python python;

static _Atomic uint64_t steps[SS_STEPS];

struct walk {
	uint32_t count;
	bool python;
	uintptr_t ip[FRAMES_MAX + 1];    /* and that hash, if `python` */
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

static void add_frame(uintptr_t ip, const struct ss_python_frame *frame, void *arg)
{
	struct stack *s = arg;
	struct ss_check_frame *f = &s->frames[s->count++];
	struct ss_python_place place;

	*f = (struct ss_check_frame){.ip = ip};
	if (!frame)
		return;
	ss_python_place(&python, frame, &place);
	f->function = strdup(place.function);
	f->file = strdup(place.file);
	f->line = place.line;
}

/* No lock is held. */
static struct stack *stack_new(const struct walk *w)
{
	size_t size = (w->count + w->python) * sizeof(w->ip[0]);
	struct ss_python_frame frame[SS_PYTHON_FRAMES];
	uint32_t frames = 0;
	bool cut;
	struct stack *s = malloc(sizeof(*s) + size);

	if (!s)
		return NULL;
	if (w->python)
		frames = ss_python_frames(&python, frame, &cut);
	s->count = 0;
	s->frames = calloc(w->count + frames, sizeof(s->frames[0]));
	if (!s->frames) {
		free(s);
		return NULL;
	}
	memcpy(s->key, w->ip, size);
	if (frames)
		ss_python_merge(&python, w->ip, w->count, frame, frames, add_frame, s);
	for (uint32_t i = 0; i < w->count && !frames; i++)
		add_frame(w->ip[i], NULL, s);
	return s;
}

static void stack_drop(struct stack *s)
{
	for (uint32_t i = 0; s && i < s->count; i++) {
		free(s->frames[i].function);
		free(s->frames[i].file);
	}
	if (s)
		free(s->frames);
	free(s);
}

/* The lock is held. False: there is no room. */
static bool stack_add(struct stack *s, size_t size)
{
	if (!by_id)
		by_id = calloc(SS_CHECK_STACKS, sizeof(struct stack *));
	if (!by_id || stacks == SS_CHECK_STACKS)
		return false;
	s->id = stacks + 1;
	HASH_ADD_KEYPTR(hh, by_content, s->key, size, s);
	if (!SS_HASH_HAS(s))
		return false;
	by_id[stacks++] = s;
	return true;
}

/* The number of a known stack. With `fresh`: a new stack becomes known as `fresh`, which is dropped
 * if the stack is known already. 0: there is none. */
static uint32_t number_of(const struct walk *w, struct stack *fresh)
{
	size_t size = (w->count + w->python) * sizeof(w->ip[0]);
	struct stack *s = NULL;
	uint32_t id = 0;

	if (!w->count)
		return 0;
	pthread_mutex_lock(&lock);
	HASH_FIND(hh, by_content, w->ip, size, s);
	if (!s && fresh && stack_add(fresh, size)) {
		s = fresh;
		fresh = NULL;
	}
	if (s)
		id = s->id;
	pthread_mutex_unlock(&lock);
	stack_drop(fresh);
	return id;
}

/* The native frames are there. */
static void add_python(struct walk *w)
{
	w->python = ss_python_runs(&python);
	if (w->python)
		w->ip[w->count] = ss_python_hash(&python, 0);
}

static void look_for_python(void)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&busy))
		return;
	ss_python_look(&python);
	atomic_flag_clear(&busy);
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
		add_python(&w);
		id = number_of(&w, NULL);
		if (id)
			return id;
	}
	w.count = 0;
	w.learner = (struct ss_steps_learner){.steps = steps};
	w.whole = true;
	ss_unwind(&first, fp, learn, &w);
	ss_steps_learned(&w.learner, bounds, first.sp, w.whole);
	look_for_python();
	add_python(&w);
	id = number_of(&w, NULL);
	return id || !w.count ? id : number_of(&w, stack_new(&w));
}

uint32_t ss_check_stack_frames(uint32_t id, const struct ss_check_frame **frames)
{
	const struct stack *s = NULL;

	pthread_mutex_lock(&lock);
	if (id && id <= stacks)
		s = by_id[id - 1];
	pthread_mutex_unlock(&lock);
	*frames = s ? s->frames : NULL;
	return s ? s->count : 0;
}
