/* SPDX-License-Identifier: MIT */
/*
 * Call stacks. The unwinder takes microseconds, so it runs only for stacks that are not known yet,
 * and for stacks with a function whose frame has no fixed size (steps.h).
 */
#include <string.h>

#include "trace/modules.h"
#include "trace/python.h"
#include "trace/stack.h"
#include "trace/steps.h"
#include "trace/unwind.h"

#define STACK_PROBES 32u /* slots that are looked at before the table counts as full */
#define OWN_MAX 16u /* frames of this library before the caller's */
#define FRAMES (SS_TRACE_FRAMES_MAX + OWN_MAX)
/* Once in this many events of a thread the unwinder runs in any case, to find frames without a
 * fixed size, and the dynamic linker is asked for modules that were loaded or unloaded. */
#define VERIFY_EVERY 256u

struct stack {
	uintptr_t ip[SS_TRACE_FRAMES_MAX];
	uint32_t count;
	bool cut;
};

/* Adds a frame. Frames of this library are left out until another frame was added. False: full. */
static bool add(const struct ss_trace_live *live, struct stack *s, uintptr_t ip)
{
	if (s->count == 0 && ip >= live->own_start && ip < live->own_end)
		return true;
	if (s->count == SS_TRACE_FRAMES_MAX) {
		s->cut = true;
		return false;
	}
	s->ip[s->count++] = ip;
	return true;
}

static uint64_t hash_of(struct ss_trace_live *live, const struct stack *s)
{
	/* A new library may lie at the addresses of an unloaded one. */
	uint64_t h = atomic_load_explicit(&live->modules_epoch, memory_order_relaxed) * 2 + s->cut;

	for (uint32_t i = 0; i < s->count; i++) {
		h = (h ^ s->ip[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	h *= 0xbf58476d1ce4e5b9ull;
	h ^= h >> 32;
	h = h ? h : 1;
	return ss_python_runs(&live->python) ? ss_python_hash(&live->python, h) : h;
}

/* The number of the stack with this hash. With `add`, a new stack gets a number and *is_new is
 * set. */
static uint32_t find(struct ss_trace_live *live, uint64_t hash, bool add_it, bool *is_new)
{
	uint32_t i = (uint32_t)hash;

	for (uint32_t n = 0; n < STACK_PROBES; n++, i++) {
		_Atomic uint64_t *slot = &live->stacks[i % SS_TRACE_STACKS];
		uint64_t there = atomic_load_explicit(slot, memory_order_relaxed);

		if (there == 0) {
			if (!add_it)
				return 0;
			if (atomic_compare_exchange_strong(slot, &there, hash)) {
				*is_new = true;
				return i % SS_TRACE_STACKS + 1;
			}
		}
		if (there == hash)
			return i % SS_TRACE_STACKS + 1;
	}
	return 0;
}

/* The result of a walk or an unwinding. */
struct finding {
	struct ss_trace_live *live;
	struct stack *stack;
	struct ss_steps_learner learner; /* of an unwinding */
	bool whole;                      /* the stack has no more frames */
};

static bool add_frame(struct ss_frame frame, void *arg)
{
	struct finding *f = arg;

	return add(f->live, f->stack, frame.ip);
}

/* Takes the next frame, and learns the distance to it. */
static bool learn_frame(struct ss_frame frame, void *arg)
{
	struct finding *f = arg;

	if (f->learner.frames == FRAMES || !add(f->live, f->stack, frame.ip)) {
		f->whole = false;
		return false;
	}
	ss_steps_learn(&f->learner, frame);
	return true;
}

static void write_frames(struct ss_trace_context *c, uint32_t id, const uint64_t *ip,
			 uint32_t count, bool cut)
{
	uint32_t size = (uint32_t)sizeof(struct ss_trace_stack) + count * 8;
	struct ss_trace_stack *r = ss_trace_begin(c, size);

	if (r) {
		r->id = id;
		r->frames = (uint16_t)count;
		r->flags = cut ? SS_TRACE_STACK_CUT : 0;
		memcpy(r->ip, ip, count * sizeof(*ip));
		ss_trace_commit(c, r, SS_TRACE_STACK, size, 0);
	}
}

struct values {
	struct ss_trace_context *c;
	uint64_t ip[SS_TRACE_FRAMES_MAX + SS_PYTHON_FRAMES];
	uint32_t count;
};

static void add_value(uintptr_t ip, const struct ss_python_frame *frame, void *arg)
{
	struct values *v = arg;

	v->ip[v->count++] = frame ? ss_python_frame_value(v->c, frame) : ip;
}

static __attribute__((noinline)) bool write_python(struct ss_trace_context *c, uint32_t id,
						   const struct stack *s)
{
	struct ss_python_frame frame[SS_PYTHON_FRAMES];
	struct values v;
	bool cut;
	uint32_t frames = ss_python_frames(&c->live->python, frame, &cut);

	v.c = c;
	v.count = 0;
	ss_python_merge(&c->live->python, s->ip, s->count, frame, frames, add_value, &v);
	if (frames)
		write_frames(c, id, v.ip, v.count, s->cut || cut);
	return frames;
}

static void write_stack(struct ss_trace_context *c, uint32_t id, const struct stack *s)
{
	_Static_assert(sizeof(s->ip[0]) == sizeof(uint64_t), "addresses have 64 bits");

	if (!ss_python_runs(&c->live->python) || !write_python(c, id, s))
		write_frames(c, id, (const uint64_t *)s->ip, s->count, s->cut);
}

/* Runs the unwinder. `s` is room for the stack's frames, because the thread's own stack may be
 * small. */
static __attribute__((noinline)) uint32_t unwind_new(struct ss_trace_context *c,
						     const struct ss_frame *first, uintptr_t fp,
						     struct stack *s)
{
	struct finding f = {
		.live = c->live, .stack = s, .learner = {.steps = c->live->steps}, .whole = true};
	bool is_new = false;

	s->count = 0;
	s->cut = false;
	ss_unwind(first, fp, learn_frame, &f);
	ss_steps_learned(&f.learner, &c->thread->bounds, first->sp, f.whole);
	if (s->count == 0)
		return 0;
	uint32_t id = find(c->live, hash_of(c->live, s), false, NULL);
	if (id == 0 || c->thread->stacks % VERIFY_EVERY == 0) {
		/* A new stack may lead through a module that was just loaded, or through a module
		 * at the addresses of an unloaded one. */
		ss_trace_modules_update(c);
		id = find(c->live, hash_of(c->live, s), true, &is_new);
	}
	if (is_new)
		write_stack(c, id, s);
	else if (id == 0)
		__atomic_fetch_add(&c->live->file.header->lost_stacks, 1, __ATOMIC_RELAXED);
	return id;
}

__attribute__((noinline)) uint32_t ss_trace_stack_id(struct ss_trace_context *c)
{
	/* This file is compiled with frame pointers: the return address lies above the saved frame
	 * pointer, and the caller's stack pointer is the address above the return address. */
	uintptr_t fp = (uintptr_t)__builtin_frame_address(0);
	struct ss_frame first = {
		.ip = (uintptr_t)__builtin_return_address(0),
		.sp = fp + 2 * sizeof(void *),
	};
	struct stack s;
	struct finding f = {.live = c->live, .stack = &s};

	s.count = 0;
	s.cut = false;
	if (++c->thread->stacks % VERIFY_EVERY &&
	    ss_steps_walk(c->live->steps, &c->thread->bounds, first, add_frame, &f)) {
		uint32_t id = find(c->live, hash_of(c->live, &s), false, NULL);
		if (id)
			return id;
	}
	return unwind_new(c, &first, fp, &s);
}
