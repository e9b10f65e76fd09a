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

void ss_hits_gate(struct ss_core *core, const _Atomic int *shut)
{
	core->shut = shut;
}

void ss_hits_end(struct ss_core *core)
{
	ss_recent_end(core);
}

/* Not before the long way has made the timeline, the pool and the queue. */
static bool refill(struct ss_core *core, void *native)
{
	struct ss_device_state *dev;
	struct ss_timeline *tl;
	struct ss_queue_table *t;
	struct ss_thread *r;
	struct ss_pool *pool;
	uint64_t gen;

	if (!core || (uintptr_t)native <= 2)
		return false;
	gen = atomic_load_explicit(&core->recent_gen, memory_order_acquire);
	/* The journal, and blocks of an alignment of their own, go the long way. */
	if ((core->shut && atomic_load(core->shut)) || core->journal || core->opt.align_large)
		return false;
	tl = ss_timeline_find(core, native);
	r = ss_thread_record();
	if (!tl || r == &ss_nobody)
		return false;
	r->gen = r->free_gen = 0;
	dev = &core->dev[tl->dev];
	pool = atomic_load_explicit(&dev->current, memory_order_acquire);
	/* With a maximum, more is to be asked. */
	if (!pool || pool->max_bytes)
		return false;
	t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	r->q = t && tl->slot < t->cap ?
	       atomic_load_explicit(&t->q[tl->slot], memory_order_acquire) : NULL;
	if (!r->q)
		return false;
	ss_near_renew(r->q);
	r->count = ss_count_of(pool, r->q);
	/* The last free of a pool that is gone has more to do, and near the limit every free. */
	r->frees = pool->is_default && !pool->classic && !atomic_load(&dev->pressed) ? pool : NULL;
	r->free_gen = r->frees ? gen : 0;
	r->live = ss_live_word(tl->slot, false);
	r->tl = tl;
	r->native = native;
	r->gen = gen;
	atomic_store_explicit(&tl->marked, true, memory_order_relaxed);
	return true;
}

/* gen: r's for what is to be done. */
static inline bool recent(const struct ss_thread *r, uint64_t gen, struct ss_core *core,
			  void *native)
{
	return __builtin_expect(r->native == native &&
				gen == atomic_load_explicit(&core->recent_gen,
							    memory_order_acquire), 1);
}

static __attribute__((noinline)) int alloc_again(void **out, size_t size, void *native,
						 struct ss_core *core, ss_miss_alloc *miss)
{
	return refill(core, native) ? ss_hit_alloc(out, size, native, core, miss)
				    : miss(out, size, native);
}

static __attribute__((noinline)) int free_again(void *ptr, void *native, struct ss_core *core,
						ss_miss_free *miss)
{
	return !recent(ss_thread, ss_thread->gen, core, native) && refill(core, native) &&
	       ss_thread->frees ? ss_hit_free(ptr, native, core, miss) : miss(ptr, native);
}

/* Once as the owner of the queue's lock and once as anybody. */
static inline bool enter(struct ss_queue *q, struct ss_thread *r, bool owner)
{
	return __builtin_expect(owner ? ss_bias_enter(&q->lock, r) : ss_bias_try(&q->lock), 1);
}

static inline void leave(struct ss_queue *q, struct ss_thread *r, bool owner)
{
	if (owner)
		ss_bias_leave(r);
	else
		ss_bias_unlock(&q->lock);
}

/* Everything that needs a call is a tail call, or this would save registers. A
 * lock that is taken is a reason for the long way. */
#define TWICE static inline __attribute__((always_inline))
static int alloc_shared(void **out, size_t size, void *native, struct ss_core *core,
			ss_miss_alloc *miss);
static int free_shared(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss);

TWICE int hand_out(void **out, size_t size, struct ss_thread *r, struct ss_queue *q,
		   struct ss_block *b, bool owner)
{
	uint64_t addr = b->addr;

	b->request = size;
	b->id = q->id | q->hits;
	*out = (void *)(uintptr_t)addr;
	ss_near_put(q, b, addr);
	ss_uncover(r->tl);
	ss_live(b, r->live);
	if (__builtin_expect(!ss_count_add(r->count, b->size), 0))
		return ss_count_peak(q, r->count);
	leave(q, r, owner);
	return SS_OK;
}

/* What the queue's bins don't have its lease may (core/divide.c). */
static __attribute__((noinline)) int alloc_leased(void **out, size_t size, void *native,
						  struct ss_core *core, ss_miss_alloc *miss)
{
	struct ss_thread *r = ss_thread;
	struct ss_queue *q = r->q;
	struct ss_block *b = NULL;

	if (size - 1 >= SS_MAX_REQUEST || !ss_bias_lock_try(&q->lock))
		return miss(out, size, native);
	if (ss_leases(q))
		b = ss_lease_take(q, ss_round(size, SS_GRAIN), 1);
	if (b)
		return hand_out(out, size, r, q, b, false);
	ss_bias_unlock(&q->lock);
	return miss(out, size, native);
}

TWICE int hit_alloc(void **out, size_t size, void *native, struct ss_core *core,
		    ss_miss_alloc *miss, bool owner)
{
	struct ss_thread *r = ss_thread;
	struct ss_queue *q;
	struct ss_block *b;
	uint64_t sz;

	if (!recent(r, r->gen, core, native))
		return alloc_again(out, size, native, core, miss);
	/* What is 0 or overflows is in no bin. */
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	q = r->q;
	if (!enter(q, r, owner))
		return owner ? alloc_shared(out, size, native, core, miss)
			     : miss(out, size, native);
	b = ss_bin_pop(q, sz, 1);
	if (__builtin_expect(!b, 0)) {
		leave(q, r, owner);
		return alloc_leased(out, size, native, core, miss);
	}
	return hand_out(out, size, r, q, b, owner);
}

/* Whatever is not among what was handed out of late. */
static struct ss_block *find(struct ss_core *core, struct ss_pool *pool, uint64_t addr)
{
	struct ss_segment *seg = ss_map_segment_inline(core, addr);
	uint64_t off;

	return seg && seg->pool == pool && ss_segment_has(seg, addr, &off) ?
	       ss_block_at_inline(core, seg, off) : NULL;
}

/* Where its bin holds another size. */
static __attribute__((noinline)) int take_back_elsewhere(struct ss_queue *q, struct ss_count *count,
							 struct ss_block *b)
{
	uint64_t size = b->size; /* b may be part of another range afterwards */

	if (!ss_bin_push(q, b))
		return ss_hit_full(q, size);
	ss_count_less(count, size);
	ss_bias_unlock(&q->lock);
	return SS_OK;
}

/* b, which was claimed, goes into its bin. */
TWICE int take_back(struct ss_queue *q, struct ss_timeline *tl, struct ss_count *count,
		    struct ss_block *b, struct ss_thread *r, bool owner)
{
	uint64_t i = b->bin, size = b->size;
	struct ss_bin *bin = &q->bin[i];

	b->n = atomic_load_explicit(&tl->now, memory_order_acquire);
	ss_uncover(tl); /* after the position: a record in between covers it */
	if (__builtin_expect(bin->size != size, 0))
		return take_back_elsewhere(q, count, b);
	q->filled[i] = 1;
	if (__builtin_expect(!ss_bin_put(q, b, &bin->head, size), 0))
		return ss_hit_full(q, size);
	ss_count_less(count, size);
	leave(q, r, owner);
	return SS_OK;
}

static __attribute__((noinline)) int free_far(void *ptr, void *native, struct ss_core *core,
					      ss_miss_free *miss)
{
	struct ss_thread *r = ss_thread;
	struct ss_queue *q = r->q;
	struct ss_block *b;

	if (!ss_bias_lock_try(&q->lock))
		return miss(ptr, native);
	b = find(core, r->frees, (uintptr_t)ptr);
	if (b && ss_claim_hit(b, r->live, (uintptr_t)ptr))
		return take_back(q, r->tl, r->count, b, r, false);
	ss_bias_unlock(&q->lock);
	return miss(ptr, native);
}

TWICE int hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss,
		   bool owner)
{
	struct ss_thread *r = ss_thread;
	struct ss_queue *q = r->q;
	struct ss_block *b;

	if (!recent(r, r->free_gen, core, native))
		return free_again(ptr, native, core, miss);
	if (!enter(q, r, owner))
		return owner ? free_shared(ptr, native, core, miss) : miss(ptr, native);
	/* (What was found may have been another's by the time that it was looked at.) */
	if (__builtin_expect(!ss_near_get(q, (uintptr_t)ptr, &b) || !ss_claim_hit(b, r->live, (uintptr_t)ptr), 0)) {
		leave(q, r, owner);
		return free_far(ptr, native, core, miss);
	}
	return take_back(q, r->tl, r->count, b, r, owner);
}

static __attribute__((noinline)) int alloc_shared(void **out, size_t size, void *native,
						  struct ss_core *core, ss_miss_alloc *miss)
{
	return hit_alloc(out, size, native, core, miss, false);
}

static __attribute__((noinline)) int free_shared(void *ptr, void *native, struct ss_core *core,
						 ss_miss_free *miss)
{
	return hit_free(ptr, native, core, miss, false);
}

int ss_hit_alloc(void **out, size_t size, void *native, struct ss_core *core,
		 ss_miss_alloc *miss)
{
	return hit_alloc(out, size, native, core, miss, true);
}

int ss_hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	return hit_free(ptr, native, core, miss, true);
}

/* ---- hipMalloc and hipFree while one timeline orders all work ------------ */

/* The queue of the null stream, which is that timeline, as refill(). */
static bool only_refill(struct ss_core *core, int dev)
{
	uint64_t gen = atomic_load_explicit(&core->recent_gen, memory_order_acquire);
	struct ss_device_state *d = &core->dev[dev];
	struct ss_thread *r = ss_thread_record();
	struct ss_timeline *only = __atomic_load_n(&d->null, __ATOMIC_ACQUIRE);
	struct ss_queue_table *t;

	/* The journal and the options for sharing want the long way, and near the limit
	 * every free does. */
	if (!only || core->classic_odd || atomic_load(&d->pressed) || r == &ss_nobody)
		return false;
	r->only_gen = 0;
	r->only_pool = atomic_load_explicit(&d->classic, memory_order_acquire);
	t = r->only_pool ? atomic_load_explicit(&r->only_pool->queues, memory_order_acquire) : NULL;
	r->only_q = t && only->slot < t->cap ?
		    atomic_load_explicit(&t->q[only->slot], memory_order_acquire) : NULL;
	if (!r->only_q)
		return false;
	ss_near_renew(r->only_q);
	r->only_count = ss_count_of(r->only_pool, r->only_q);
	r->only_tl = only;
	r->only_live = ss_live_word(only->slot, true);
	r->only_dev = dev;
	r->only_gen = gen;
	atomic_store_explicit(&only->marked, true, memory_order_relaxed);
	return true;
}

static inline bool only_recent(const struct ss_thread *r, struct ss_core *core)
{
	return __builtin_expect(r->only_gen == atomic_load_explicit(&core->recent_gen,
								    memory_order_acquire), 1);
}

TWICE bool only_hand_out(size_t size, void **out, struct ss_thread *r, struct ss_queue *q,
			 struct ss_block *b, bool owner)
{
	uint64_t addr = b->addr;

	b->request = size;
	b->id = q->id | q->hits;
	*out = (void *)(uintptr_t)addr;
	ss_near_put(q, b, addr);
	ss_uncover(r->only_tl);
	ss_live(b, r->only_live);
	if (__builtin_expect(!ss_count_add(r->only_count, b->size), 0))
		ss_count_peak(q, r->only_count);
	else
		leave(q, r, owner);
	return true;
}

static inline uint64_t only_align(uint64_t sz)
{
	return sz >= SS_CLASSIC_LARGE ? SS_CLASSIC_ALIGN : SS_GRAIN;
}

static __attribute__((noinline)) bool only_leased(size_t size, void **out)
{
	uint64_t sz = ss_round(size, SS_GRAIN);
	struct ss_thread *r = ss_thread;
	struct ss_queue *q = r->only_q;
	struct ss_block *b = NULL;

	if (size - 1 >= SS_MAX_REQUEST || !ss_bias_lock_try(&q->lock))
		return false;
	if (ss_leases(q))
		b = ss_lease_take(q, sz, only_align(sz));
	if (b)
		return only_hand_out(size, out, r, q, b, false);
	ss_bias_unlock(&q->lock);
	return false;
}

static bool only_alloc_shared(size_t size, void **out);
static int only_free_shared(struct ss_core *core, void *ptr, bool (*now)(int dev),
			    bool (*may)(int dev));

TWICE bool only_alloc(struct ss_thread *r, size_t size, void **out, bool owner)
{
	uint64_t sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	struct ss_queue *q = r->only_q;
	struct ss_block *b;

	if (!enter(q, r, owner))
		return owner && only_alloc_shared(size, out);
	/* A classic pool hands out no size but with the alignment of that size. */
	b = ss_bin_pop(q, sz, 1);
	if (__builtin_expect(!b, 0)) {
		leave(q, r, owner);
		return only_leased(size, out);
	}
	return only_hand_out(size, out, r, q, b, owner);
}

static __attribute__((noinline)) bool only_alloc_shared(size_t size, void **out)
{
	return only_alloc(ss_thread, size, out, false);
}

static __attribute__((noinline)) bool only_alloc_again(struct ss_core *core, int dev, size_t size,
						       void **out)
{
	return only_refill(core, dev) && only_alloc_shared(size, out);
}

bool ss_hit_only_alloc(struct ss_core *core, int dev, size_t size, void **out)
{
	struct ss_thread *r = ss_thread;

	if (__builtin_expect(!only_recent(r, core) || r->only_dev != dev, 0))
		return only_alloc_again(core, dev, size, out);
	return only_alloc(r, size, out, true);
}

static __attribute__((noinline)) int only_free_far(struct ss_core *core, void *ptr,
						   bool (*may)(int dev))
{
	struct ss_thread *r = ss_thread;
	struct ss_queue *q = r->only_q;
	struct ss_block *b;

	if (!ss_bias_lock_try(&q->lock))
		return -1;
	b = find(core, r->only_pool, (uintptr_t)ptr);
	ss_bias_unlock(&q->lock);
	/* (Not asked with the lock held.) */
	if (!b || !may(r->only_dev) || !ss_bias_lock_try(&q->lock))
		return -1;
	if (!ss_claim_hit(b, r->only_live, (uintptr_t)ptr)) {
		ss_bias_unlock(&q->lock);
		return -1;
	}
	take_back(q, r->only_tl, r->only_count, b, r, false);
	return r->only_dev;
}

TWICE int only_free(struct ss_thread *r, struct ss_core *core, void *ptr, bool (*now)(int dev),
		    bool (*may)(int dev), bool owner)
{
	struct ss_queue *q = r->only_q;
	struct ss_block *b;

	if (!enter(q, r, owner))
		return owner ? only_free_shared(core, ptr, now, may) : -1;
	if (__builtin_expect(!ss_near_get(q, (uintptr_t)ptr, &b) || !now(r->only_dev) ||
			     !ss_claim_hit(b, r->only_live, (uintptr_t)ptr), 0)) {
		leave(q, r, owner);
		return only_free_far(core, ptr, may);
	}
	take_back(q, r->only_tl, r->only_count, b, r, owner);
	return r->only_dev;
}

static __attribute__((noinline)) int only_free_shared(struct ss_core *core, void *ptr,
						      bool (*now)(int dev), bool (*may)(int dev))
{
	return only_free(ss_thread, core, ptr, now, may, false);
}

static __attribute__((noinline)) int only_free_again(struct ss_core *core, void *ptr,
						     bool (*now)(int dev), bool (*may)(int dev))
{
	struct ss_segment *seg = ss_map_segment_inline(core, (uintptr_t)ptr);

	return seg && seg->pool->classic && only_refill(core, seg->pool->dev) ?
	       only_free_shared(core, ptr, now, may) : -1;
}

int ss_hit_only_free(struct ss_core *core, void *ptr, bool (*now)(int dev), bool (*may)(int dev))
{
	struct ss_thread *r = ss_thread;

	if (__builtin_expect(!only_recent(r, core), 0))
		return only_free_again(core, ptr, now, may);
	return only_free(r, core, ptr, now, may, true);
}
