/* SPDX-License-Identifier: MIT */
/* Commands: making, copying, running; and records, points on a queue. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip.h"

struct cmd *cmd_new(enum cmd_kind kind)
{
	struct cmd *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	c->kind = kind;
	c->deps = c->few;
	c->capdeps = 2;
	return c;
}

void cmd_dep(struct cmd *c, struct queue *q, uint64_t seq)
{
	if (c->ndeps == c->capdeps) {
		struct dep *d = malloc(sizeof *d * (size_t)c->capdeps * 4);

		if (!d)
			abort();
		memcpy(d, c->deps, sizeof *d * (size_t)c->ndeps);
		if (c->deps != c->few)
			free(c->deps);
		c->deps = d;
		c->capdeps *= 4;
	}
	c->deps[c->ndeps++] = (struct dep){ queue_ref(q), seq };
}

/* What a command owns, and a graph's clones of it share. */
void *blob_new(size_t size)
{
	atomic_int *b = calloc(1, 64 + size);

	if (!b)
		abort();
	atomic_init(b, 1);
	return (char *)b + 64;
}

void *blob_ref(void *p)
{
	if (p)
		atomic_fetch_add((atomic_int *)(void *)((char *)p - 64), 1);
	return p;
}

void blob_unref(void *p)
{
	atomic_int *b = p ? (atomic_int *)(void *)((char *)p - 64) : NULL;

	if (b && atomic_fetch_sub(b, 1) == 1)
		free(b);
}

/* For graphs: templates carry no dependencies and no records. */
struct cmd *cmd_clone(const struct cmd *t)
{
	struct cmd *c = cmd_new(t->kind);
	struct dep *few = c->deps;

	*c = *t;
	c->deps = few;
	c->capdeps = 2;
	c->ndeps = 0;
	c->next = NULL;
	blob_ref(c->owned);
	if ((c->kind == C_FREE || c->kind == C_ALLOC) && c->mem.ga)
		atomic_fetch_add(&c->mem.ga->refs, 1);
	return c;
}

void cmd_free(struct cmd *c)
{
	for (int i = 0; i < c->ndeps; i++)
		queue_unref(c->deps[i].q);
	if (c->deps != c->few)
		free(c->deps);
	if (c->kind == C_RECORD)
		rec_unref(c->rec);
	if (c->kind == C_FREE || c->kind == C_ALLOC)
		graph_alloc_unref(c->mem.ga);
	blob_unref(c->owned);
	free(c);
}

static void run_copy(const struct cmd *c)
{
	for (size_t z = 0; z < c->copy.depth; z++)
		for (size_t y = 0; y < c->copy.height; y++)
			memmove(c->copy.dst + z * c->copy.dslice + y * c->copy.dpitch,
				c->copy.src + z * c->copy.sslice + y * c->copy.spitch, c->copy.width);
}

static void run_set(const struct cmd *c)
{
	for (size_t z = 0; z < c->set.depth; z++)
		for (size_t y = 0; y < c->set.height; y++) {
			char *row = c->set.dst + z * c->set.slice + y * c->set.pitch;
			uint16_t v16 = (uint16_t)c->set.value;

			if (c->set.elem == 1) {
				memset(row, (int)c->set.value, c->set.width);
				continue;
			}
			for (size_t i = 0; i < c->set.width; i++)
				if (c->set.elem == 2)
					memcpy(row + i * 2, &v16, 2);
				else
					memcpy(row + i * 4, &c->set.value, 4);
		}
}

static bool value_holds(const struct cmd *c)
{
	uint64_t v, ref = c->val.value & c->val.mask;

	if (c->val.wide)
		v = __atomic_load_n((uint64_t *)c->val.ptr, __ATOMIC_ACQUIRE);
	else
		v = __atomic_load_n((uint32_t *)c->val.ptr, __ATOMIC_ACQUIRE);
	v &= c->val.mask;
	switch (c->val.flags) {
	case hipStreamWaitValueGte:
		return c->val.wide ? (int64_t)(v - ref) >= 0 : (int32_t)((uint32_t)v - (uint32_t)ref) >= 0;
	case hipStreamWaitValueEq: return v == ref;
	case hipStreamWaitValueAnd: return (v & c->val.value) != 0;
	default: return (~(v | c->val.value) & c->val.mask) != 0;
	}
}

void cmd_run(struct cmd *c)
{
	struct timespec ts = { 0, 20000 };

	switch (c->kind) {
	case C_COPY:
		run_copy(c);
		break;
	case C_SET:
		run_set(c);
		break;
	case C_KERNEL:
		kernel_run(c);
		break;
	case C_RECORD:
		atomic_store(&c->rec->t, now_ns());
		break;
	case C_WRITE:
		if (c->val.wide)
			__atomic_store_n((uint64_t *)c->val.ptr, c->val.value, __ATOMIC_RELEASE);
		else
			__atomic_store_n((uint32_t *)c->val.ptr, (uint32_t)c->val.value, __ATOMIC_RELEASE);
		break;
	case C_WAITVAL:
		for (int i = 0; !value_holds(c); i++)
			if (i < 8)
				sched_yield();
			else
				nanosleep(&ts, NULL);
		break;
	case C_HOST:
	case C_CALLBACK:
		host_call(c);
		break;
	case C_IPC_RECORD:
		ipc_event_done(c->ipc.ev, c->ipc.n);
		break;
	case C_IPC_WAIT:
		ipc_event_wait(c->ipc.ev, c->ipc.n);
		break;
	case C_ALLOC:
		atomic_store(&c->mem.ga->live, true);
		break;
	case C_FREE:
		atomic_store(&c->mem.ga->live, false);
		break;
	default:
		break;
	}
}

/* ---- records: a point on a queue, and when it was reached ---- */

struct rec *rec_new(struct queue *q)
{
	struct rec *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	atomic_init(&r->refs, 1);
	r->q = queue_ref(q);
	return r;
}

struct rec *rec_ref(struct rec *r)
{
	if (r)
		atomic_fetch_add(&r->refs, 1);
	return r;
}

void rec_unref(struct rec *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	queue_unref(r->q);
	free(r);
}

bool rec_done(struct rec *r)
{
	return queue_done(r->q, r->seq);
}
