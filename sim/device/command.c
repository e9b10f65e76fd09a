/* SPDX-License-Identifier: MIT */
/* Commands and the memory that they share with their clones. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/command.h"
#include "device/queue.h"
#include "device/record.h"

struct blob {
	atomic_int refs;
	void (*destroy)(void *p);
	_Alignas(16) char data[];
};

struct sim_command *sim_command_new(enum sim_command_kind kind, void (*run)(struct sim_command *c))
{
	struct sim_command *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	c->kind = kind;
	c->run = run;
	c->deps = c->few;
	c->dep_capacity = 2;
	return c;
}

struct sim_command *sim_marker(void)
{
	return sim_command_new(SIM_CMD_MARKER, NULL);
}

static void run_call(struct sim_command *c)
{
	c->host.fn(c->host.arg);
}

struct sim_command *sim_call_command(void (*fn)(void *arg), void *arg)
{
	struct sim_command *c = sim_command_new(SIM_CMD_CALL, run_call);

	c->host.fn = fn;
	c->host.arg = arg;
	return c;
}

void sim_command_depend(struct sim_command *c, struct sim_queue *q, uint64_t seq)
{
	if (c->dep_count == c->dep_capacity) {
		struct sim_position *d = malloc(sizeof *d * (size_t)c->dep_capacity * 4);

		if (!d)
			abort();
		memcpy(d, c->deps, sizeof *d * (size_t)c->dep_count);
		if (c->deps != c->few)
			free(c->deps);
		c->deps = d;
		c->dep_capacity *= 4;
	}
	c->deps[c->dep_count++] = (struct sim_position){sim_queue_ref(q), seq};
}

struct sim_command *sim_command_clone(const struct sim_command *t)
{
	struct sim_command *c = sim_command_new(t->kind, t->run);
	struct sim_position *few = c->deps;

	*c = *t;
	c->deps = few;
	c->dep_capacity = 2;
	c->dep_count = 0;
	c->next = NULL;
	sim_blob_ref(c->owned);
	return c;
}

void sim_command_free(struct sim_command *c)
{
	for (int i = 0; i < c->dep_count; i++)
		sim_queue_unref(c->deps[i].queue);
	if (c->deps != c->few)
		free(c->deps);
	if (c->kind == SIM_CMD_RECORD)
		sim_record_unref(c->record);
	sim_blob_unref(c->owned);
	free(c);
}

/* ---- blobs ---- */

static struct blob *blob_of(void *p)
{
	return (struct blob *)(void *)((char *)p - offsetof(struct blob, data));
}

void *sim_blob_new(size_t size, void (*destroy)(void *p))
{
	struct blob *b = calloc(1, sizeof *b + size);

	if (!b)
		abort();
	atomic_init(&b->refs, 1);
	b->destroy = destroy;
	return b->data;
}

void *sim_blob_ref(void *p)
{
	if (p)
		atomic_fetch_add(&blob_of(p)->refs, 1);
	return p;
}

void sim_blob_unref(void *p)
{
	if (!p || atomic_fetch_sub(&blob_of(p)->refs, 1) != 1)
		return;
	if (blob_of(p)->destroy)
		blob_of(p)->destroy(p);
	free(blob_of(p));
}
