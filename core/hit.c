/* SPDX-License-Identifier: MIT */
/*
 * hipMallocAsync and hipFreeAsync where nothing is out of the ordinary: a stream
 * that the thread used last, the device's current pool, a block of the right size
 * in the bin. Everything else goes the caller's long way, which ends in alloc.c and
 * knows every case; the ordering rules are the same. And hipMalloc and hipFree as long as
 * one timeline orders all work of the device.
 *
 * Locks: queue->lock.
 */
#include "core/hit.h"

_Thread_local struct ss_recent ss_recent __attribute__((tls_model("initial-exec")));

/* Not before the long way has made the timeline, the pool and the queue. */
static bool refill(struct ss_core *core, void *native)
{
	uint64_t gen = atomic_load_explicit(&core->stream_gen, memory_order_acquire);
	struct ss_timeline *tl = ss_timeline_find(core, native);
	struct ss_recent *r = &ss_recent;
	struct ss_queue_table *t;

	r->gen = 0;
	if (!tl || core->journal)
		return false;
	r->dev = &core->dev[tl->dev];
	r->pool = atomic_load_explicit(&r->dev->current, memory_order_acquire);
	/* With a maximum, more is to be asked. */
	if (!r->pool || r->pool->max_bytes)
		return false;
	t = atomic_load_explicit(&r->pool->queues, memory_order_acquire);
	r->q = t && tl->slot < t->cap ?
	       atomic_load_explicit(&t->q[tl->slot], memory_order_acquire) : NULL;
	if (!r->q)
		return false;
	/* The last free of a pool that is gone has more to do. */
	r->frees = r->pool->is_default && !r->pool->classic ? r->pool : NULL;
	r->max = core->opt.align_large ? core->opt.align_large - 1 : 1ull << 46;
	r->slot = tl->slot;
	r->tl = tl;
	r->native = native;
	r->gen = gen;
	atomic_store_explicit(&tl->marked, true, memory_order_relaxed);
	return true;
}

static __attribute__((noinline)) int alloc_again(struct ss_core *core, void **out, size_t size,
						 void *native, ss_miss_alloc *miss)
{
	return refill(core, native) ? ss_hit_alloc(core, out, size, native, miss)
				    : miss(out, size, native);
}

static __attribute__((noinline)) int free_again(struct ss_core *core, void *ptr, void *native,
						ss_miss_free *miss)
{
	return refill(core, native) ? ss_hit_free(core, ptr, native, miss) : miss(ptr, native);
}

static inline bool recent(const struct ss_recent *r, struct ss_core *core, void *native)
{
	return __builtin_expect(r->native == native &&
				r->gen == atomic_load_explicit(&core->stream_gen,
							       memory_order_acquire) &&
				atomic_load_explicit(&r->dev->current, memory_order_acquire) ==
				r->pool, 1);
}

/* The address of thread-local data, kept in a register. */
static inline struct ss_recent *here(void)
{
	struct ss_recent *r = &ss_recent;

	__asm__("" : "+r"(r));
	return r;
}


/* Everything that needs a call is a tail call, or this would save registers. A
 * lock that is taken is a reason for the long way. */
int ss_hit_alloc(struct ss_core *core, void **out, size_t size, void *native, ss_miss_alloc *miss)
{
	struct ss_recent *r = here();
	struct ss_queue *q;
	struct ss_block *b;
	uint64_t sz;

	if (!recent(r, core, native))
		return alloc_again(core, out, size, native, miss);
	if (__builtin_expect(size - 1 >= r->max, 0))
		return miss(out, size, native);
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	q = r->q;
	if (__builtin_expect(!ss_spin_try(&q->lock), 0))
		return miss(out, size, native);
	b = ss_bin_pop(q, sz, 1);
	if (__builtin_expect(!b, 0)) {
		ss_spin_unlock(&q->lock);
		return miss(out, size, native);
	}
	b->request = size;
	b->id = q->id | q->hits;
	b->slot = r->slot;
	b->classic = false;
	*out = (void *)(uintptr_t)b->addr;
	ss_uncover(r->tl);
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	if (__builtin_expect(!ss_used_alone(r->pool, (uintptr_t)r, sz), 0))
		return ss_used_shared(r->pool, q, sz);
	ss_spin_unlock(&q->lock);
	return SS_OK;
}

int ss_hit_free(struct ss_core *core, void *ptr, void *native, ss_miss_free *miss)
{
	struct ss_recent *r = here();
	struct ss_segment *seg;
	struct ss_block *b;
	struct ss_queue *q;

	if (__builtin_expect(r->native != native ||
			     r->gen != atomic_load_explicit(&core->stream_gen,
							    memory_order_acquire), 0))
		return free_again(core, ptr, native, miss);
	seg = ss_map_segment_inline(core, (uintptr_t)ptr);
	if (__builtin_expect(!seg || seg->pool != r->frees ||
			     atomic_load_explicit(&r->dev->pressed, memory_order_relaxed), 0))
		return miss(ptr, native);
	b = ss_block_at_inline(core, seg, (uintptr_t)ptr);
	if (__builtin_expect(!b || b->exported, 0))
		return miss(ptr, native);
	q = r->q;
	if (__builtin_expect(!ss_spin_try(&q->lock), 0))
		return miss(ptr, native);
	if (__builtin_expect(!ss_claim_locked(b, r->slot), 0)) {
		ss_spin_unlock(&q->lock);
		return miss(ptr, native);
	}
	b->n = atomic_load_explicit(&r->tl->now, memory_order_acquire);
	ss_uncover(r->tl); /* after the position: a record in between covers it */
	if (__builtin_expect(!ss_bin_push(q, b), 0))
		return ss_hit_full(q, b->size);
	if (__builtin_expect(!ss_used_less(r->frees, (uintptr_t)r, b->size), 0))
		return ss_used_shared(r->frees, q, -b->size);
	ss_spin_unlock(&q->lock);
	return SS_OK;
}

/* ---- hipMalloc and hipFree while one timeline orders all work ------------ */

/* The queue of the null stream, which is that timeline; NULL: not usual. */
static inline struct ss_queue *only_queue(struct ss_core *core, struct ss_device_state *d,
					  const struct ss_pool *pool)
{
	struct ss_timeline *only = __atomic_load_n(&d->null, __ATOMIC_ACQUIRE);
	struct ss_queue_table *t;

	/* The journal and the options for sharing want the long way. */
	if (__builtin_expect(core->classic_odd || !only, 0))
		return NULL;
	t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	if (__builtin_expect(!t || only->slot >= t->cap, 0))
		return NULL;
	return atomic_load_explicit(&t->q[only->slot], memory_order_acquire);
}

bool ss_hit_only_alloc(struct ss_core *core, int dev, size_t size, void **out)
{
	struct ss_device_state *d = &core->dev[dev];
	struct ss_pool *pool = atomic_load_explicit(&d->classic, memory_order_acquire);
	struct ss_queue *q = pool ? only_queue(core, d, pool) : NULL;
	struct ss_block *b;
	uint64_t sz;

	if (__builtin_expect(!q || size - 1 >= 1ull << 46, 0))
		return false;
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	if (__builtin_expect(!ss_spin_try(&q->lock), 0))
		return false;
	b = ss_bin_pop(q, sz, sz >= SS_CLASSIC_LARGE ? SS_CLASSIC_ALIGN : SS_GRAIN);
	if (__builtin_expect(!b, 0)) {
		ss_spin_unlock(&q->lock);
		return false;
	}
	b->request = size;
	b->id = q->id | q->hits;
	b->slot = q->tl->slot;
	b->classic = true;
	*out = (void *)(uintptr_t)b->addr;
	ss_uncover(q->tl);
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	if (__builtin_expect(!ss_used_alone(pool, ss_self(), sz), 0))
		ss_used_shared(pool, q, sz);
	else
		ss_spin_unlock(&q->lock);
	return true;
}

int ss_hit_only_free(struct ss_core *core, void *ptr, bool (*may)(int dev))
{
	struct ss_segment *seg = ss_map_segment_inline(core, (uintptr_t)ptr);
	struct ss_device_state *d;
	struct ss_pool *pool;
	struct ss_queue *q;
	struct ss_block *b;
	int dev;

	if (__builtin_expect(!seg, 0))
		return -1;
	pool = seg->pool;
	dev = pool->dev;
	d = &core->dev[dev];
	if (__builtin_expect(!pool->classic || atomic_load_explicit(&d->pressed,
								    memory_order_relaxed), 0))
		return -1;
	q = only_queue(core, d, pool);
	b = ss_block_at_inline(core, seg, (uintptr_t)ptr);
	if (__builtin_expect(!q || !b, 0))
		return -1;
	if (__builtin_expect(b->exported, 0) || __builtin_expect(!may(dev), 0) ||
	    __builtin_expect(!ss_spin_try(&q->lock), 0))
		return -1;
	if (__builtin_expect(!ss_claim_locked(b, q->tl->slot), 0)) {
		ss_spin_unlock(&q->lock);
		return -1;
	}
	if (__builtin_expect(!atomic_load_explicit(&q->tl->marked, memory_order_relaxed), 0))
		atomic_store_explicit(&q->tl->marked, true, memory_order_relaxed);
	b->n = atomic_load_explicit(&q->tl->now, memory_order_acquire);
	ss_uncover(q->tl); /* after the position: a record in between covers it */
	if (__builtin_expect(!ss_bin_push(q, b), 0))
		ss_hit_full(q, b->size);
	else if (__builtin_expect(!ss_used_less(pool, ss_self(), b->size), 0))
		ss_used_shared(pool, q, -b->size);
	else
		ss_spin_unlock(&q->lock);
	return dev;
}

/* ---- bytes in use, seldom ----------------------------------------------- */

static bool claim_counter(struct ss_pool *pool)
{
	uintptr_t who = atomic_load_explicit(&pool->counter, memory_order_relaxed), me = ss_self();

	if (!who && atomic_compare_exchange_strong(&pool->counter, &who, me))
		return true;
	if (who != me && who != SS_COUNTER_SHARED)
		atomic_store_explicit(&pool->counter, SS_COUNTER_SHARED, memory_order_relaxed);
	return who == me;
}

/* The same for any thread; unlocks q. */
enum ss_status ss_used_shared(struct ss_pool *pool, struct ss_queue *q, uint64_t delta)
{
	bool peak = false;

	if (claim_counter(pool)) {
		ss_used_alone(pool, ss_self(), delta);
	} else {
		ss_put(&q->used, ss_get(&q->used) + delta);
		peak = (int64_t)ss_get(&q->used) > q->peak;
		if (peak)
			q->peak = (int64_t)ss_get(&q->used);
	}
	ss_spin_unlock(&q->lock);
	if (peak)
		ss_pool_peak(pool);
	return SS_OK;
}

void ss_used_add(struct ss_pool *pool, struct ss_queue *q, uint64_t delta)
{
	ss_spin_lock(&q->lock);
	ss_used_shared(pool, q, delta);
	/* Off the hit path the sum is affordable: threads that take turns are seen. */
	if ((int64_t)delta > 0 &&
	    atomic_load_explicit(&pool->counter, memory_order_relaxed) == SS_COUNTER_SHARED)
		ss_pool_peak(pool);
}

enum ss_status ss_hit_full(struct ss_queue *q, uint64_t size)
{
	struct ss_pool *pool = q->pool;

	ss_used_shared(pool, q, -size);
	pthread_mutex_lock(&pool->lock);
	ss_flush(pool, q);
	pthread_mutex_unlock(&pool->lock);
	return SS_OK;
}

uint64_t ss_pool_used(struct ss_pool *pool)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	uint64_t sum = ss_get(&pool->alone_used) + ss_get(&pool->done->used);

	for (uint32_t i = 0; t && i < t->cap; i++) {
		struct ss_queue *q = atomic_load_explicit(&t->q[i], memory_order_acquire);

		sum += q ? ss_get(&q->used) : 0;
	}
	/* A block's two ends may be seen out of order. */
	return (int64_t)sum < 0 ? 0 : sum;
}

void ss_pool_peak(struct ss_pool *pool)
{
	uint64_t used = ss_pool_used(pool), peak = ss_get(&pool->peak);

	while (used > peak && !atomic_compare_exchange_weak(&pool->peak, &peak, used))
		;
}

uint64_t ss_pool_used_high(struct ss_pool *pool)
{
	if (ss_get((_Atomic uint64_t *)&pool->counter) == SS_COUNTER_SHARED)
		ss_pool_peak(pool);
	return ss_get(&pool->peak);
}

void ss_pool_used_reset(struct ss_pool *pool, bool to_zero)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);

	for (uint32_t i = 0; i <= (t ? t->cap : 0); i++) {
		struct ss_queue *q = t && i < t->cap ? atomic_load(&t->q[i]) : pool->done;

		if (!q)
			continue;
		ss_spin_lock(&q->lock);
		if (to_zero)
			ss_put(&q->used, 0);
		q->peak = (int64_t)ss_get(&q->used);
		ss_spin_unlock(&q->lock);
	}
	if (to_zero)
		ss_put(&pool->alone_used, 0);
	ss_put(&pool->peak, ss_pool_used(pool));
}
