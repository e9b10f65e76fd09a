/* SPDX-License-Identifier: MIT */
/*
 * Memory that the host and the device both see, by address. Through such memory a kernel can signal
 * the host, or wait for it. The table also has memory of graphs, through which a kernel cannot.
 *
 * Locks: `lock`, a leaf.
 */
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/check/checker.h"
#include "shim/check/host_memory.h"
#include "shim/check/inside.h"

enum kind { HOST, PINNED, DEVICE };

struct range {
	uintptr_t base, end;
	enum kind kind;
};

/* A freed range, and the site of its free. */
struct gone {
	struct range was;
	struct ss_check_site site;
};

#define GONE_MAX 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *ranges;
static struct gone gone[GONE_MAX];
static uint64_t gones;
static atomic_bool any;

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->end <= y->base ? -1 : y->end <= x->base;
}

/* The lock is held. */
static void drop_overlapping(const struct range *key)
{
	void *node;

	while ((node = tfind(key, &ranges, compare))) {
		struct range *old = *(struct range **)node;

		tdelete(old, &ranges, compare);
		free(old);
	}
}

static void add(void *ptr, size_t size, enum kind kind)
{
	struct range *r = malloc(sizeof(*r));

	if (!r || !ptr) {
		free(r);
		return;
	}
	*r = (struct range){(uintptr_t)ptr, (uintptr_t)ptr + (size ? size : 1), kind};
	ss_check_taken(ss_check_state, ptr, size);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < GONE_MAX; i++)
		if (gone[i].was.base < r->end && r->base < gone[i].was.end)
			gone[i].was = (struct range){0};
	drop_overlapping(r);
	if (!tsearch(r, &ranges, compare))
		free(r);
	pthread_mutex_unlock(&lock);
}

void ss_check_host_memory(void *ptr, size_t size, bool pinned)
{
	atomic_store(&any, true);
	add(ptr, size, pinned ? PINNED : HOST);
}

void ss_check_device_memory(void *ptr, size_t size)
{
	add(ptr, size, DEVICE);
}

bool ss_check_host_memory_end(void *ptr, const struct ss_check_site *site)
{
	struct range key = {.base = (uintptr_t)ptr, .end = (uintptr_t)ptr + 1};
	struct range **node;
	bool begins;

	pthread_mutex_lock(&lock);
	node = tfind(&key, &ranges, compare);
	begins = node && (*node)->base == key.base;
	if (begins)
		gone[gones++ % GONE_MAX] = (struct gone){.was = **node, .site = *site};
	drop_overlapping(&key);
	pthread_mutex_unlock(&lock);
	return begins;
}

/* The lock is held. The latest freed range at ptr; NULL: there is none. */
static struct gone *gone_find(const void *ptr)
{
	for (uint64_t i = gones; i-- && gones - i <= GONE_MAX;)
		if (gone[i % GONE_MAX].was.base == (uintptr_t)ptr)
			return &gone[i % GONE_MAX];
	return NULL;
}

bool ss_check_host_memory_was(const void *ptr, struct ss_check_site *site)
{
	const struct gone *g;

	pthread_mutex_lock(&lock);
	g = gone_find(ptr);
	if (g)
		*site = g->site;
	pthread_mutex_unlock(&lock);
	return g != NULL;
}

void ss_check_host_memory_back(const void *ptr)
{
	struct gone *g, back = {0};

	pthread_mutex_lock(&lock);
	g = gone_find(ptr);
	if (g) {
		back = *g;
		g->was.base = 0;
	}
	pthread_mutex_unlock(&lock);
	if (g)
		add((void *)back.was.base, back.was.end - back.was.base, back.was.kind);
}

/* False: ptr is in no range. */
static bool find(const void *ptr, struct range *out)
{
	struct range key = {.base = (uintptr_t)ptr, .end = (uintptr_t)ptr + 1};
	struct range **node;

	pthread_mutex_lock(&lock);
	node = tfind(&key, &ranges, compare);
	if (node)
		*out = **node;
	pthread_mutex_unlock(&lock);
	return node != NULL;
}

bool ss_check_is_host_memory(const void *ptr)
{
	struct range r;

	return find(ptr, &r) && r.kind != DEVICE;
}

bool ss_check_is_device_memory(const void *ptr)
{
	struct range r;

	return find(ptr, &r) && r.kind == DEVICE;
}

bool ss_check_is_pinned(const void *ptr)
{
	struct range r;

	return find(ptr, &r) && r.kind == PINNED && r.base == (uintptr_t)ptr;
}

bool ss_check_any_host_memory(void)
{
	return atomic_load(&any);
}
