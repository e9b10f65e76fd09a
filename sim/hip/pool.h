/* SPDX-License-Identifier: MIT */
/*
 * The native stream-ordered pools. Whole allocations are cached and never split, as in the
 * real runtime, but reused only in stream order. pool_lock guards every pool and block;
 * functions that say so are called with it held, the others take it.
 */
#ifndef SIM_HIP_POOL_H
#define SIM_HIP_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#include "device/command.h"
#include "device/macros.h"

struct sim_alloc;

struct block {
	void *ptr;
	size_t size;
	struct pool *pool;
	enum { BLOCK_BUSY, BLOCK_FREEING, BLOCK_IDLE } state;
	bool imported;
	struct sim_position freed_at; /* what must be reached before another stream takes it */
	struct block *next;
};

struct pool {
	int device;
	int handles;  /* kind of shareable handle, as the program asked */
	size_t max;   /* bytes; 0: no limit */
	int reuse[3]; /* the reuse attributes, in the order of their numbers */
	uint64_t threshold, reserved, reserved_high, used, used_high, idle;
	int access[SIM_MAX_DEVICES];
	bool destroyed, imported;
	bool exported; /* as a whole, once */
	struct block *blocks;
	struct pool *next;
};

extern pthread_mutex_t pool_lock;
extern struct pool *pool_standard[SIM_MAX_DEVICES], *pool_current[SIM_MAX_DEVICES];
extern struct pool *pool_managed[SIM_MAX_DEVICES];

/* Under pool_lock. */
struct pool *pool_new(int device, int handles, size_t max);
struct pool *pool_of(hipMemPool_t h); /* NULL: not a live pool */
struct pool *pool_default(int device);
hipError_t pool_alloc(struct pool *p, void **out, size_t size, struct sim_queue *q);
struct block *pool_add_block(struct pool *p, void *ptr, size_t size, bool imported);

/* Releases idle memory above `keep` bytes, smallest blocks first. Blocks whose free has not been
 * reached stay. */
void pool_release_idle(struct pool *p, uint64_t keep);

/* Frees the pool if it was destroyed and has no blocks. */
void pool_free_if_empty(struct pool *p);

/* Gives the devices of the pool's access list access to its blocks. */
void pool_update_access(struct pool *p);

/* Frees a block after the work that is enqueued on q. NULL: any stream may take it at once. */
hipError_t pool_free_block(const struct sim_alloc *a, struct sim_queue *q);

/* Called at a synchronization: the pools of the device release idle memory above their
 * thresholds. */
void pools_release(int device);
void pools_reset(int device);

#endif
