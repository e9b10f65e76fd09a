/* SPDX-License-Identifier: MIT */
/*
 * The native stream-ordered pools: whole allocations are cached, never split,
 * as in the real runtime, but in an order that is right.
 *
 * Locks: pool_lock guards every pool. The address map and (as in the real
 * runtime, which does so on every free) the exported hipMemGetInfo are called
 * with it held; commands are enqueued without it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
struct pool *pools;
struct pool *pool_standard[SIM_MAX_DEVICES], *pool_current[SIM_MAX_DEVICES];

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

/* Caller holds the lock. */
struct pool *pool_of(hipMemPool_t h)
{
	for (struct pool *p = pools; p; p = p->next)
		if (p == (struct pool *)h && !p->dead)
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

static void drop_block(struct pool *p, struct block *b)
{
	unlink_block(p, b);
	p->reserved -= b->size;
	p->idle -= b->state == B_IDLE ? b->size : 0;
	if (b->imported)
		sim_ipc_close(b->ptr, true);
	else
		hip_device_release(b->ptr);
	queue_unref(b->mark.q);
	free(b);
}

static bool finished(struct block *b)
{
	return !b->mark.q || queue_done(b->mark.q, b->mark.seq);
}

/* Idle memory above keep goes, smallest first; what is in flight stays. */
void pool_release_idle(struct pool *p, uint64_t keep)
{
	while (p->idle > keep) {
		struct block *small = NULL;

		for (struct block *b = p->blocks; b; b = b->next)
			if (b->state == B_IDLE && finished(b) && (!small || b->size < small->size))
				small = b;
		if (!small)
			return;
		drop_block(p, small);
	}
}

void pool_bury(struct pool *p)
{
	if (!p->dead || p->blocks)
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
	pthread_mutex_lock(&pool_lock);
	for (struct pool *p = pools, *n; p; p = n) {
		n = p->next;
		if (p->device == device)
			pool_release_idle(p, sim_opt.quirk[SIM_Q_THRESHOLD_IGNORED] || p->dead ? 0 : p->threshold);
		pool_bury(p);
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
		p->dead = true;
		pool_bury(p);
	}
	pool_standard[device] = pool_current[device] = NULL;
	pthread_mutex_unlock(&pool_lock);
}

void pool_own(struct sim_alloc *a, void *arg)
{
	a->owner = arg;
	a->ownertype = O_POOL;
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (((struct block *)arg)->pool->access[i])
			a->access |= 1u << i;
}

struct block *pool_add(struct pool *p, void *ptr, size_t size, bool imported)
{
	struct block *b = calloc(1, sizeof *b);

	if (!b)
		abort();
	b->ptr = ptr;
	b->size = size;
	b->pool = p;
	b->state = B_BUSY;
	b->imported = imported;
	b->next = p->blocks;
	p->blocks = b;
	p->reserved += size;
	sim_update(ptr, pool_own, b);
	return b;
}

/* Usable on q: freed there, or finished (when the pool may look), or joined
 * to q by an event, which this pool never tries to find out. */
static struct block *reuse(struct pool *p, size_t size, struct queue *q)
{
	struct block *best = NULL;

	for (struct block *b = p->blocks; b; b = b->next) {
		if (b->state != B_IDLE || b->imported || b->size < size || b->size > size + size / 8)
			continue;
		if (b->mark.q != q && b->mark.q && !(p->reuse[1] && finished(b)))
			continue;
		if (!best || b->size < best->size)
			best = b;
	}
	return best;
}

static hipError_t pool_alloc(struct pool *p, void **out, size_t size, struct queue *q)
{
	struct block *b = reuse(p, size, q);
	void *ptr;

	if (b) {
		b->state = B_BUSY;
		p->idle -= b->size;
	} else {
		ptr = p->max && p->reserved + size > p->max ? NULL : hip_device_memory(p->device, size, 0);
		if (!ptr && p->idle) {
			pool_release_idle(p, 0);
			ptr = p->max && p->reserved + size > p->max ? NULL : hip_device_memory(p->device, size, 0);
		}
		if (!ptr) {

			if (sim_opt.quirk[SIM_Q_POOL_OOM_LEAKS])
				p->reserved += size;
			ask_free();
			*out = NULL;
			/* 5.2 reports success with no memory. */
			return V52 ? hipSuccess : hipErrorOutOfMemory;
		}
		b = pool_add(p, ptr, size, false);
	}
	p->used += b->size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	*out = b->ptr;
	return hipSuccess;
}

static hipError_t bad_stream(void)
{
	return V52 ? hipErrorInvalidValue : hipErrorInvalidHandle;
}

static hipError_t alloc_async(void **out, size_t size, hipMemPool_t h, bool given, hipStream_t stream)
{
	struct queue *q;
	struct stream *s;
	struct pool *p;
	hipError_t e;

	if (!out)
		return hipErrorInvalidValue;
	if (resolve(stream, &q, &s))
		return bad_stream();
	if (!size) {
		queue_unref(q);
		if (V52)
			return hipErrorInvalidValue;
		*out = NULL;
		return hipSuccess;
	}
	if (atomic_load(&captures_live)) {
		if (s && capture_alloc(s, out, size, &e)) {
			queue_unref(q);
			return e;
		}
		if (V6 && !given && blocking_capture_on(q->device, s)) {
			queue_unref(q);
			return hipErrorStreamCaptureUnsupported;
		}
	}
	pthread_mutex_lock(&pool_lock);
	pool_default(q->device);
	p = given ? pool_of(h) : pool_current[q->device];
	e = p ? pool_alloc(p, out, size, q) : hipErrorInvalidValue;
	pthread_mutex_unlock(&pool_lock);
	queue_unref(q);
	return e;
}

hipError_t i_hipMallocAsync(void **out, size_t size, hipStream_t stream)
{
	return alloc_async(out, size, NULL, false, stream);
}

hipError_t i_hipMallocFromPoolAsync(void **out, size_t size, hipMemPool_t pool, hipStream_t stream)
{
	return alloc_async(out, size, pool, true, stream);
}

/* async: ordered after the stream's work by a marker. hipFree passes none: it
 * has waited, or (from 7.0) has not, and then anybody may take the block. */
hipError_t pool_free_block(const struct sim_alloc *a, hipStream_t stream, bool async)
{
	struct block *b = a->owner;
	struct queue *q = NULL;
	struct stream *s;
	struct pool *p;
	uint64_t seq = 0;
	hipError_t e;

	if (async && (e = resolve(stream, &q, &s)))
		return bad_stream();
	pthread_mutex_lock(&pool_lock);
	/* The real runtime frees memory that is still listed here; a block that
	 * is not busy is refused instead. */
	if (b->state != B_BUSY) {
		pthread_mutex_unlock(&pool_lock);
		queue_unref(q);
		return hipErrorInvalidValue;
	}
	b->state = B_FREEING;
	pthread_mutex_unlock(&pool_lock);
	if (q)
		seq = enqueue(q, cmd_new(C_MARKER));
	pthread_mutex_lock(&pool_lock);
	p = b->pool;
	queue_unref(b->mark.q);
	b->mark = (struct dep){ q, seq };
	b->state = B_IDLE;
	p->idle += b->size;
	p->used -= b->size;
	if (b->imported) {
		if (finished(b)) /* else at the next synchronization */
			drop_block(p, b);
	} else if (V6) {
		ask_free();
	}
	if (p->dead) {
		pool_release_idle(p, 0);
		pool_bury(p);
	}
	pthread_mutex_unlock(&pool_lock);
	return hipSuccess;
}

hipError_t i_hipFreeAsync(void *ptr, hipStream_t stream)
{
	struct sim_alloc a;
	struct queue *q;
	struct stream *s;
	hipError_t e;
	int device;

	if (!ptr)
		return V7 ? hipSuccess : hipErrorInvalidValue;
	if (resolve(stream, &q, &s))
		return bad_stream();
	device = q->device;
	queue_unref(q);
	if (s && atomic_load(&captures_live) && capture_free(s, ptr, &e))
		return e;
	if (!hip_find(ptr, &a))
		return hipErrorInvalidValue;
	if (V6 && atomic_load(&captures_live) && blocking_capture_on(device, s))
		return hipErrorStreamCaptureUnsupported;
	if (a.ownertype == O_POOL)
		return pool_free_block(&a, stream, true);
	return host_release(ptr);
}
