/* SPDX-License-Identifier: MIT */
/*
 * The native stream-ordered pools: blocks, reuse, and release.
 *
 * Locks: pool_lock. The locks of device memory are taken inside it, and, as in the real runtime,
 * which does so on every free, the exported hipMemGetInfo is called with it held. Commands are
 * enqueued without it.
 */
#include <stdlib.h>

#include "device/device_queues.h"
#include "device/ipc.h"
#include "device/options.h"
#include "device/queue.h"
#include "hip/allocation.h"
#include "hip/pool.h"
#include "hip/reentry.h"
#include "hip/version.h"

pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
struct pool *pool_standard[SIM_MAX_DEVICES], *pool_current[SIM_MAX_DEVICES];
struct pool *pool_managed[SIM_MAX_DEVICES];
static struct pool *pools;

struct pool *pool_new(int device, int handles, size_t max)
{
	struct pool *p = calloc(1, sizeof *p);

	if (!p)
		abort();
	p->device = device;
	p->handles = handles;
	p->max = max;
	p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
	p->access[device] = 3;
	p->next = pools;
	pools = p;
	return p;
}

struct pool *pool_of(hipMemPool_t h)
{
	for (struct pool *p = pools; p; p = p->next)
		if (p == (struct pool *)h && !p->destroyed)
			return p;
	return NULL;
}

struct pool *pool_default(int device)
{
	if (!pool_standard[device])
		pool_standard[device] = pool_new(device, 0, 0);
	if (!pool_current[device])
		pool_current[device] = pool_standard[device];
	return pool_standard[device];
}

static void unlink_block(struct pool *p, struct block *b)
{
	for (struct block **x = &p->blocks; *x; x = &(*x)->next)
		if (*x == b) {
			*x = b->next;
			return;
		}
}

/* Releases a block to the device. */
static void drop_block(struct pool *p, struct block *b)
{
	unlink_block(p, b);
	p->reserved -= b->size;
	p->idle -= b->state == BLOCK_IDLE ? b->size : 0;
	if (b->imported)
		sim_ipc_close(b->ptr, true);
	else
		hip_device_free(b->ptr);
	sim_queue_unref(b->freed_at.queue);
	free(b);
}

/* True: the free of the block has been reached. */
static bool finished(struct block *b)
{
	return !b->freed_at.queue || sim_queue_done(b->freed_at.queue, b->freed_at.seq);
}

void pool_release_idle(struct pool *p, uint64_t keep)
{
	while (p->idle > keep) {
		struct block *small = NULL;

		for (struct block *b = p->blocks; b; b = b->next)
			if (b->state == BLOCK_IDLE && finished(b) &&
			    (!small || b->size < small->size))
				small = b;
		if (!small)
			return;
		drop_block(p, small);
	}
}

void pool_free_if_empty(struct pool *p)
{
	if (!p->destroyed || p->blocks)
		return;
	for (struct pool **x = &pools; *x; x = &(*x)->next)
		if (*x == p) {
			*x = p->next;
			free(p);
			return;
		}
}

void pools_release(int device)
{
	bool ignore_threshold = sim_opt.quirk[SIM_Q_THRESHOLD_IGNORED];

	pthread_mutex_lock(&pool_lock);
	for (struct pool *p = pools, *n; p; p = n) {
		n = p->next;
		if (p->device == device)
			pool_release_idle(p, ignore_threshold || p->destroyed ? 0 : p->threshold);
		pool_free_if_empty(p);
	}
	pthread_mutex_unlock(&pool_lock);
}

void pools_reset(int device)
{
	pthread_mutex_lock(&pool_lock);
	for (struct pool *p = pools, *n; p; p = n) {
		n = p->next;
		if (p->device != device)
			continue;
		while (p->blocks)
			drop_block(p, p->blocks);
		p->destroyed = true;
		pool_free_if_empty(p);
	}
	pool_standard[device] = pool_current[device] = pool_managed[device] = NULL;
	pthread_mutex_unlock(&pool_lock);
}

static void set_owner(struct sim_alloc *a, void *arg)
{
	a->owner = arg;
	a->ownertype = OWNER_POOL;
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (((struct block *)arg)->pool->access[i])
			a->access |= 1u << i;
}

void pool_update_access(struct pool *p)
{
	for (struct block *b = p->blocks; b; b = b->next)
		sim_update(b->ptr, set_owner, b);
}

struct block *pool_add_block(struct pool *p, void *ptr, size_t size, bool imported)
{
	struct block *b = calloc(1, sizeof *b);

	if (!b)
		abort();
	b->ptr = ptr;
	b->size = size;
	b->pool = p;
	b->state = BLOCK_BUSY;
	b->imported = imported;
	b->next = p->blocks;
	p->blocks = b;
	p->reserved += size;
	sim_update(ptr, set_owner, b);
	return b;
}

/* The smallest block that q may take and that is at most an eighth too large: it was freed on
 * q, or its free has been reached, if the pool may look at that (opportunistic reuse). This
 * pool never finds out whether an event joins the two queues. */
static struct block *reuse(struct pool *p, size_t size, struct sim_queue *q)
{
	struct block *best = NULL;

	for (struct block *b = p->blocks; b; b = b->next) {
		if (b->state != BLOCK_IDLE || b->imported || b->size < size ||
		    b->size > size + size / 8)
			continue;
		if (b->freed_at.queue != q && b->freed_at.queue && !(p->reuse[1] && finished(b)))
			continue;
		if (!best || b->size < best->size)
			best = b;
	}
	return best;
}

static void *grow(struct pool *p, size_t size)
{
	return p->max && p->reserved + size > p->max ? NULL : hip_device_alloc(p->device, size, 0);
}

hipError_t pool_alloc(struct pool *p, void **out, size_t size, struct sim_queue *q)
{
	struct block *b = reuse(p, size, q);
	void *ptr;

	if (b) {
		b->state = BLOCK_BUSY;
		p->idle -= b->size;
	} else {
		ptr = grow(p, size);
		if (!ptr && p->idle) {
			pool_release_idle(p, 0);
			ptr = grow(p, size);
		}
		if (!ptr) {
			if (sim_opt.quirk[SIM_Q_POOL_OOM_LEAKS])
				p->reserved += size;
			reenter_mem_get_info();
			*out = NULL;
			/* 5.2 reports success with no memory. */
			return V52 ? hipSuccess : hipErrorOutOfMemory;
		}
		b = pool_add_block(p, ptr, size, false);
	}
	p->used += b->size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	*out = b->ptr;
	return hipSuccess;
}

hipError_t pool_free_block(const struct sim_alloc *a, struct sim_queue *q)
{
	struct block *b = a->owner;
	struct pool *p;
	uint64_t seq = 0;

	pthread_mutex_lock(&pool_lock);
	/* A double free: the real runtime frees memory that is still in its lists. */
	if (b->state != BLOCK_BUSY) {
		pthread_mutex_unlock(&pool_lock);
		return hipErrorInvalidValue;
	}
	b->state = BLOCK_FREEING;
	pthread_mutex_unlock(&pool_lock);
	if (q)
		seq = sim_enqueue(q, sim_marker());
	pthread_mutex_lock(&pool_lock);
	p = b->pool;
	sim_queue_unref(b->freed_at.queue);
	b->freed_at = (struct sim_position){q ? sim_queue_ref(q) : NULL, seq};
	b->state = BLOCK_IDLE;
	p->idle += b->size;
	p->used -= b->size;
	if (b->imported) {
		/* If the free has not been reached, the next synchronization drops it. */
		if (finished(b))
			drop_block(p, b);
	} else if (V6) {
		reenter_mem_get_info();
	}
	if (p->destroyed) {
		pool_release_idle(p, 0);
		pool_free_if_empty(p);
	}
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}
