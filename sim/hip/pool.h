/* SPDX-License-Identifier: MIT */
/* Native pools, inside: shared by pool.c and share.c. */
#ifndef POOL_SIM_H
#define POOL_SIM_H

#include "hip.h"

struct block {
	void *ptr;
	size_t size;
	struct pool *pool;
	enum { B_BUSY, B_FREEING, B_IDLE } state;
	bool imported;
	struct dep mark;              /* where its free stands */
	struct block *next;
};

struct pool {
	int device;
	int handles;
	size_t max;
	int reuse[3];
	uint64_t threshold, reserved, reserved_high, used, used_high, idle;
	int access[SIM_MAX_DEVICES];
	bool dead, imported;
	struct block *blocks;
	struct pool *next;
};

extern pthread_mutex_t pool_lock;
extern struct pool *pools, *pool_standard[SIM_MAX_DEVICES], *pool_current[SIM_MAX_DEVICES];
struct pool *pool_default(int device);
void pool_release_idle(struct pool *p, uint64_t keep);
void pool_bury(struct pool *p);
void pool_own(struct sim_alloc *a, void *arg);
struct pool *pool_new(int device, int handles, size_t max);
struct pool *pool_of(hipMemPool_t h);
struct block *pool_add(struct pool *p, void *ptr, size_t size, bool imported);

#endif
