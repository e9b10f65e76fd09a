/* SPDX-License-Identifier: MIT */
/*
 * Memory that the host and the device both see, by address. Through it a kernel can tell the host
 * something, or wait for it.
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

struct range {
	uintptr_t base, end;
	bool pinned;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *ranges;
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

void ss_check_host_memory(void *ptr, size_t size, bool pinned)
{
	struct range *r = malloc(sizeof(*r));

	atomic_store(&any, true);
	if (!r || !ptr) {
		free(r);
		return;
	}
	*r = (struct range){(uintptr_t)ptr, (uintptr_t)ptr + (size ? size : 1), pinned};
	pthread_mutex_lock(&lock);
	drop_overlapping(r);
	if (!tsearch(r, &ranges, compare))
		free(r);
	pthread_mutex_unlock(&lock);
}

void ss_check_host_memory_gone(void *ptr)
{
	struct range key = {.base = (uintptr_t)ptr, .end = (uintptr_t)ptr + 1};

	pthread_mutex_lock(&lock);
	drop_overlapping(&key);
	pthread_mutex_unlock(&lock);
}

bool ss_check_is_host_memory(const void *ptr)
{
	struct range key = {.base = (uintptr_t)ptr, .end = (uintptr_t)ptr + 1};
	bool is;

	pthread_mutex_lock(&lock);
	is = tfind(&key, &ranges, compare) != NULL;
	pthread_mutex_unlock(&lock);
	return is;
}

bool ss_check_is_pinned(const void *ptr)
{
	struct range key = {.base = (uintptr_t)ptr, .end = (uintptr_t)ptr + 1};
	struct range **node;
	bool is;

	pthread_mutex_lock(&lock);
	node = tfind(&key, &ranges, compare);
	is = node && (*node)->pinned && (*node)->base == (uintptr_t)ptr;
	pthread_mutex_unlock(&lock);
	return is;
}

bool ss_check_any_host_memory(void)
{
	return atomic_load(&any);
}
