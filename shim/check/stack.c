/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of findings. Each different one is kept once. A stack is a return address in each
 * frame; names come when a finding is written.
 *
 * Locks: `lock`, a leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "shim/check/inside.h"
#include "trace/unwind.h"

#define FRAMES_MAX 24u
#define STACKS_MAX 65536u

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

struct walk {
	uint32_t count;
	uintptr_t ip[FRAMES_MAX];
};

static bool each(struct ss_frame frame, void *arg)
{
	struct walk *w = arg;

	if (!w->count && frame.ip >= (uintptr_t)start_of_us && frame.ip < (uintptr_t)end_of_us)
		return true;
	w->ip[w->count++] = frame.ip;
	return w->count < FRAMES_MAX;
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
	by_id[stacks++] = s;
	HASH_ADD_KEYPTR(hh, by_content, s->ip, s->count * sizeof(s->ip[0]), s);
	return s;
}

__attribute__((noinline)) uint32_t ss_check_stack(void)
{
	/* This file is compiled with frame pointers (trace/stack.c). */
	uintptr_t fp = (uintptr_t)__builtin_frame_address(0);
	struct ss_frame first = {
		.ip = (uintptr_t)__builtin_return_address(0),
		.sp = fp + 2 * sizeof(void *),
	};
	struct walk w = {0};
	struct stack *s = NULL;
	uint32_t id = 0;

	ss_unwind(&first, fp, each, &w);
	if (!w.count)
		return 0;
	pthread_mutex_lock(&lock);
	HASH_FIND(hh, by_content, w.ip, w.count * sizeof(w.ip[0]), s);
	if (!s)
		s = stack_add(&w);
	if (s)
		id = s->id;
	pthread_mutex_unlock(&lock);
	return id;
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
