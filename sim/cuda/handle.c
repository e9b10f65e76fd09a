/* SPDX-License-Identifier: MIT */
/*
 * The tables of live handles: open addressing, read without a lock.
 *
 * Locks: the lock of a table guards changes to it. Nothing is taken inside it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda/handle.h"
#include "device/macros.h"

#define FIRST_SIZE 4096
#define REMOVED ((uintptr_t)1)

struct slot {
	_Atomic uintptr_t key; /* 0: never used */
	_Atomic int device;
};

struct table {
	size_t size, used;   /* used: slots that are not 0 */
	struct table *older; /* readers may still be in it, so it stays */
	struct slot slots[];
};

static struct {
	pthread_mutex_t lock;
	struct table *_Atomic table;
} sets[HANDLE_KINDS] = {
	[0 ... HANDLE_KINDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static size_t first_slot(const struct table *t, uintptr_t key)
{
	return (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 32) % t->size;
}

static struct slot *find(struct table *t, uintptr_t key)
{
	if (!t || key <= REMOVED)
		return NULL;
	for (size_t i = first_slot(t, key), n = 0; n < t->size; i = (i + 1) % t->size, n++) {
		uintptr_t k = atomic_load_explicit(&t->slots[i].key, memory_order_acquire);

		if (k == key)
			return &t->slots[i];
		if (!k)
			break;
	}
	return NULL;
}

static void put(struct table *t, uintptr_t key, int device)
{
	size_t i = first_slot(t, key);
	uintptr_t k;

	while ((k = atomic_load(&t->slots[i].key)) > REMOVED)
		i = (i + 1) % t->size;
	t->used += k == 0;
	atomic_store(&t->slots[i].device, device);
	atomic_store_explicit(&t->slots[i].key, key, memory_order_release);
}

/* A table with room for one more. */
static struct table *roomy(struct table *t)
{
	struct table *n;

	if (t && t->used < t->size / 2)
		return t;
	n = calloc(1, sizeof *n + (t ? 2 * t->size : FIRST_SIZE) * sizeof(struct slot));
	if (!n)
		abort();
	n->size = t ? 2 * t->size : FIRST_SIZE;
	n->older = t;
	for (size_t i = 0; t && i < t->size; i++)
		if (atomic_load(&t->slots[i].key) > REMOVED)
			put(n, atomic_load(&t->slots[i].key), atomic_load(&t->slots[i].device));
	return n;
}

void handle_add(enum handle_kind kind, void *handle, int device)
{
	struct table *t;
	struct slot *s;

	pthread_mutex_lock(&sets[kind].lock);
	t = atomic_load(&sets[kind].table);
	s = find(t, (uintptr_t)handle);
	if (s) {
		atomic_store(&s->device, device);
	} else {
		t = roomy(t);
		put(t, (uintptr_t)handle, device);
		atomic_store(&sets[kind].table, t);
	}
	pthread_mutex_unlock(&sets[kind].lock);
}

/* No search needs the removed slots in front of an empty one. Caller holds the lock. */
static void empty_before(struct table *t, size_t i)
{
	if (atomic_load(&t->slots[(i + 1) % t->size].key))
		return;
	while (atomic_load(&t->slots[i].key) == REMOVED) {
		atomic_store(&t->slots[i].key, 0);
		t->used--;
		i = (i + t->size - 1) % t->size;
	}
}

bool handle_remove(enum handle_kind kind, void *handle)
{
	struct table *t;
	struct slot *s;

	pthread_mutex_lock(&sets[kind].lock);
	t = atomic_load(&sets[kind].table);
	s = find(t, (uintptr_t)handle);
	if (s) {
		atomic_store(&s->key, REMOVED);
		empty_before(t, (size_t)(s - t->slots));
	}
	pthread_mutex_unlock(&sets[kind].lock);
	return s != NULL;
}

int handle_device(enum handle_kind kind, const void *handle)
{
	struct table *t = atomic_load_explicit(&sets[kind].table, memory_order_acquire);
	struct slot *s = find(t, (uintptr_t)handle);

	return s ? atomic_load_explicit(&s->device, memory_order_relaxed) : -1;
}

void handles_reset(int device)
{
	for (int kind = 0; kind < HANDLE_KINDS; kind++) {
		struct table *t;

		pthread_mutex_lock(&sets[kind].lock);
		t = atomic_load(&sets[kind].table);
		for (size_t i = 0; t && i < t->size; i++)
			if (atomic_load(&t->slots[i].key) > REMOVED &&
			    atomic_load(&t->slots[i].device) == device)
				atomic_store(&t->slots[i].key, REMOVED);
		pthread_mutex_unlock(&sets[kind].lock);
	}
}
