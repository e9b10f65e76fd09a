/* SPDX-License-Identifier: MIT */
/*
 * The map from an address to the allocation that contains it.
 *
 * Locks: map_lock. Nothing is taken inside it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "device/address_map.h"
#include "device/macros.h"

static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_range *map;
static _Atomic uint64_t next_id = 1;

uint64_t sim_next_id(void)
{
	return atomic_fetch_add(&next_id, 1);
}

/* Caller holds map_lock. */
static struct sim_alloc *containing(const void *p)
{
	struct sim_range *r = sim_range_floor(map, (uintptr_t)p);

	if (!r || (uintptr_t)p - r->base >= r->size)
		return NULL;
	return container_of(r, struct sim_alloc, r);
}

/* Caller holds map_lock. */
static bool overlaps(const struct sim_alloc *a)
{
	struct sim_range *f = sim_range_floor(map, a->r.base + a->r.size - 1);

	return f && f->base + f->size > a->r.base;
}

static bool insert(const struct sim_alloc *from, bool check)
{
	struct sim_alloc *a = malloc(sizeof *a);
	bool ok;

	if (!a)
		return false;
	*a = *from;
	pthread_rwlock_wrlock(&map_lock);
	ok = !check || !overlaps(a);
	if (ok)
		sim_range_insert(&map, &a->r);
	pthread_rwlock_unlock(&map_lock);
	if (!ok)
		free(a);
	return ok;
}

bool sim_map_add(const struct sim_alloc *a)
{
	return insert(a, true);
}

bool sim_map_insert(const struct sim_alloc *a)
{
	return insert(a, false);
}

/* Caller holds map_lock for writing. Takes the entry out of the map and frees it. */
static void take(struct sim_alloc *a, struct sim_alloc *out)
{
	sim_range_remove(&map, &a->r);
	*out = *a;
	free(a);
}

bool sim_map_remove(const void *base, struct sim_alloc *out)
{
	struct sim_alloc *a;
	bool ok;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(base);
	ok = a && a->r.base == (uintptr_t)base;
	if (ok)
		take(a, out);
	pthread_rwlock_unlock(&map_lock);
	return ok;
}

bool sim_map_take(const void *p, bool interior, struct sim_alloc *out)
{
	struct sim_alloc *a;
	bool ok;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(p);
	ok = a && (a->kind == SIM_DEVICE || a->kind == SIM_HOST || a->kind == SIM_MANAGED) &&
	     (interior || a->r.base == (uintptr_t)p);
	if (ok)
		take(a, out);
	pthread_rwlock_unlock(&map_lock);
	return ok;
}

bool sim_map_each(uintptr_t *cursor, struct sim_alloc *out)
{
	struct sim_range *r;

	pthread_rwlock_rdlock(&map_lock);
	r = sim_range_next(map, *cursor);
	if (r) {
		*out = *container_of(r, struct sim_alloc, r);
		*cursor = r->base + 1;
	}
	pthread_rwlock_unlock(&map_lock);
	return r != NULL;
}

bool sim_find(const void *p, struct sim_alloc *out)
{
	struct sim_alloc *a;

	pthread_rwlock_rdlock(&map_lock);
	a = containing(p);
	if (a)
		*out = *a;
	pthread_rwlock_unlock(&map_lock);
	return a != NULL;
}

bool sim_update(const void *p, void (*fn)(struct sim_alloc *a, void *arg), void *arg)
{
	struct sim_alloc *a;

	pthread_rwlock_wrlock(&map_lock);
	a = containing(p);
	if (a)
		fn(a, arg);
	pthread_rwlock_unlock(&map_lock);
	return a != NULL;
}
