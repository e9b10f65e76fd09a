/* SPDX-License-Identifier: MIT */
/*
 * hipMallocAsync and hipFreeAsync where nothing is out of the ordinary: the stream that the
 * thread used last, the device's current pool, and the stream's cache has what is needed. Likewise
 * hipMalloc and hipFree as long as one timeline orders all work of the device. Everything else
 * goes the caller's long way, which knows every case; the ordering rules are the same.
 *
 * Each body is compiled twice: for the thread that owns the cache's lock, and for any thread.
 *
 * Locks: cache->lock.
 */
#include "core/cache/bin.h"
#include "core/cache/fast_path.h"
#include "core/backing/device_memory.h"

bool ss_fast_path_init(struct ss_core *core)
{
	core->fast = ss_host_alloc(core, sizeof(*core->fast));
	if (core->fast)
		core->fast->next_ids = 1;
	return core->fast != NULL;
}

void ss_fast_path_finish(struct ss_core *core)
{
	ss_host_free(core, core->fast, sizeof(*core->fast));
	core->fast = NULL;
}

void ss_hits_gate(struct ss_core *core, const _Atomic int *shut)
{
	core->fast->shut = shut;
}

void ss_hits_end(struct ss_core *core)
{
	ss_recent_end(core);
}

/* ---- what the thread used last ---------------------------------------------- */

/* Notes that r's thread uses tl's cache in `set`. False: the long way has to make it first. */
static bool note(struct ss_recent *r, struct ss_caches *set, struct ss_timeline *tl, bool classic)
{
	struct ss_stream_cache *q = set ? ss_cache_of_slot(set, ss_timeline_slot(tl)) : NULL;

	if (!q)
		return false;
	ss_handed_renew(q);
	r->cache = q;
	r->count = ss_count_of(q);
	r->pool = set->memory->pool;
	r->live = ss_live_word(q->slot, classic);
	r->tl = tl;
	ss_timeline_marked(tl);
	return true;
}

static bool refill(struct ss_core *core, void *native)
{
	struct ss_fast_path *fast;
	struct ss_timeline *tl;
	struct ss_recent *r;
	uint64_t gen;
	int dev;

	if (!core || (uintptr_t)native <= 2)
		return false;
	fast = core->fast;
	gen = atomic_load_explicit(&core->recent_gen, memory_order_acquire);
	if ((fast->shut && atomic_load(fast->shut)) || fast->slow)
		return false;
	tl = ss_timeline_find(core, native);
	r = &ss_thread_record()->stream;
	if (!tl || r == &ss_nobody.stream)
		return false;
	r->gen = r->free_gen = 0;
	dev = ss_timeline_device(tl);
	if (!note(r, atomic_load_explicit(&fast->current[dev], memory_order_acquire), tl, false))
		return false;
	/* Near the end of the device's memory every free has more to do. */
	r->free_gen = atomic_load(&fast->frees[dev]) && !ss_nearly_full(core, dev) &&
		      !atomic_load(&fast->unwatched) ? gen : 0;
	r->native = native;
	r->gen = gen;
	return true;
}

/* gen: r's, for what is to be done. */
static inline bool recent(const struct ss_recent *r, uint64_t gen, struct ss_core *core, void *native)
{
	return likely(r->native == native &&
		      gen == atomic_load_explicit(&core->recent_gen, memory_order_acquire));
}

static inline bool enter(struct ss_stream_cache *q, struct ss_thread *t, bool owner)
{
	return likely(owner ? ss_bias_enter(&q->lock, t) : ss_bias_try(&q->lock));
}

static inline void leave(struct ss_stream_cache *q, struct ss_thread *t, bool owner)
{
	if (owner)
		ss_bias_leave(t);
	else
		ss_bias_unlock(&q->lock);
}

/* Now and then a free goes the long way, which drives decay. q->lock held. */
static inline bool looks(const struct ss_stream_cache *q)
{
	return unlikely(q->frees % SS_FREES_PER_LOOK == SS_FREES_PER_LOOK - 1);
}

bool ss_cache_looks(struct ss_stream_cache *q)
{
	bool yes;

	ss_bias_lock(&q->lock);
	yes = looks(q);
	ss_bias_unlock(&q->lock);
	return yes;
}

/* ---- in and out of the cache. Lock held; it is released. ---------------------- */

SS_INLINE int hand_out(void **out, size_t size, const struct ss_recent *r, struct ss_thread *t,
		   struct ss_block *b, bool owner)
{
	struct ss_stream_cache *q = r->cache;
	uint64_t addr = b->addr;

	b->request = size;
	b->id = q->id | q->hits;
	*out = (void *)(uintptr_t)addr;
	ss_handed_put(q, b, addr);
	ss_uncover(r->tl);
	ss_live(b, r->live);
	if (unlikely(!ss_count_add(r->count, b->size)))
		return ss_count_peak(q, r->count);
	leave(q, t, owner);
	return SS_OK;
}

/* What no bin has, from the arena. False: it has none either, and the lock is released. */
static SS_NOINLINE bool from_arena(void **out, size_t size, struct ss_recent *r, uint64_t align)
{
	struct ss_stream_cache *q = r->cache;
	struct ss_block *b = NULL;

	/* Zero and sizes that overflow have no bin, so they end here. */
	if (size - 1 < SS_MAX_REQUEST)
		b = ss_arena_take(q, ss_round(size, SS_GRAIN), align, false);
	if (!b) {
		ss_bias_unlock(&q->lock);
		return false;
	}
	q->hits++;
	hand_out(out, size, r, NULL, b, false);
	return true;
}

/* Where its bin holds another size, or is full. */
static SS_NOINLINE int take_back_slow(struct ss_stream_cache *q, struct ss_count *count,
				   struct ss_block *b)
{
	uint64_t size = b->size; /* b may be part of another range afterwards */

	ss_bin_push_slow(q, b);
	ss_count_less(count, size);
	ss_bias_unlock(&q->lock);
	return SS_OK;
}

/* b, which was claimed, goes into its bin. */
SS_INLINE int take_back(const struct ss_recent *r, struct ss_thread *t, struct ss_block *b, bool owner)
{
	struct ss_stream_cache *q = r->cache;
	uint64_t i = b->bin, size = b->size;
	struct ss_bin *bin = &q->bin[i];

	b->n = ss_timeline_now(r->tl);
	ss_uncover(r->tl); /* after the position: a record in between covers it */
	if (unlikely(bin->size != size || q->blocks >= SS_CACHE_MOST - 1))
		return take_back_slow(q, r->count, b);
	q->filled[i] = 1;
	ss_bin_put(q, b, &bin->head, size);
	ss_count_less(r->count, size);
	leave(q, t, owner);
	return SS_OK;
}

/* Takes a block back that was not handed out lately, so that it has to be looked up, if `may` (NULL: in
 * any case) says so. False: it is for the long way. Lock not held. */
static bool take_back_far(struct ss_core *core, const struct ss_recent *r, void *ptr,
			  bool (*may)(int dev))
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b = seg && seg->pool == r->pool ? ss_block_at(core, seg, addr) : NULL;

	/* `may` calls the shim, so it is asked without the lock. */
	if (!b || (may && !may(r->dev)) || !ss_bias_lock_try(&r->cache->lock))
		return false;
	if (looks(r->cache) || !ss_claim_hit(b, r->live, addr)) {
		ss_bias_unlock(&r->cache->lock);
		return false;
	}
	take_back(r, NULL, b, false);
	return true;
}

/* ---- hipMallocAsync, hipFreeAsync ---------------------------------------------- */

static int alloc_shared(void **out, size_t size, void *native, struct ss_core *core,
			ss_miss_alloc *miss);
static int free_shared(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss);

static SS_NOINLINE int alloc_refill(void **out, size_t size, void *native, struct ss_core *core,
				ss_miss_alloc *miss)
{
	return refill(core, native) ? alloc_shared(out, size, native, core, miss)
				    : miss(out, size, native);
}

static SS_NOINLINE int alloc_from_arena(void **out, size_t size, void *native, ss_miss_alloc *miss)
{
	return from_arena(out, size, &ss_thread->stream, 1) ? SS_OK : miss(out, size, native);
}

SS_INLINE int hit_alloc(void **out, size_t size, void *native, struct ss_core *core,
		    ss_miss_alloc *miss, bool owner)
{
	struct ss_thread *t = ss_thread;
	struct ss_recent *r = &t->stream;
	struct ss_stream_cache *q;
	struct ss_block *b;

	if (!recent(r, r->gen, core, native))
		return alloc_refill(out, size, native, core, miss);
	q = r->cache;
	if (!enter(q, t, owner))
		return owner ? alloc_shared(out, size, native, core, miss)
			     : miss(out, size, native);
	b = ss_bin_pop(q, (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1), 1);
	if (unlikely(!b))
		return alloc_from_arena(out, size, native, miss);
	return hand_out(out, size, r, t, b, owner);
}

static SS_NOINLINE int free_refill(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	return !recent(&ss_thread->stream, ss_thread->stream.gen, core, native) &&
	       refill(core, native) && ss_thread->stream.free_gen ?
		       free_shared(ptr, native, core, miss) : miss(ptr, native);
}

static SS_NOINLINE int free_far(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	return take_back_far(core, &ss_thread->stream, ptr, NULL) ? SS_OK : miss(ptr, native);
}

SS_INLINE int hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss, bool owner)
{
	struct ss_thread *t = ss_thread;
	struct ss_recent *r = &t->stream;
	struct ss_block *b;

	if (!recent(r, r->free_gen, core, native))
		return free_refill(ptr, native, core, miss);
	if (!enter(r->cache, t, owner))
		return owner ? free_shared(ptr, native, core, miss) : miss(ptr, native);
	if (unlikely(!ss_handed_get(r->cache, (uintptr_t)ptr, &b) || looks(r->cache) ||
		     !ss_claim_hit(b, r->live, (uintptr_t)ptr))) {
		leave(r->cache, t, owner);
		return free_far(ptr, native, core, miss);
	}
	return take_back(r, t, b, owner);
}

static SS_NOINLINE int alloc_shared(void **out, size_t size, void *native, struct ss_core *core,
				 ss_miss_alloc *miss)
{
	return hit_alloc(out, size, native, core, miss, false);
}

static SS_NOINLINE int free_shared(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	return hit_free(ptr, native, core, miss, false);
}

int ss_hit_alloc(void **out, size_t size, void *native, struct ss_core *core, ss_miss_alloc *miss)
{
	return hit_alloc(out, size, native, core, miss, true);
}

int ss_hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	return hit_free(ptr, native, core, miss, true);
}

/* ---- hipMalloc and hipFree while the null stream orders all work of the device ---- */

static bool only_refill(struct ss_core *core, int dev)
{
	uint64_t gen = atomic_load_explicit(&core->recent_gen, memory_order_acquire);
	struct ss_fast_path *fast = core->fast;
	struct ss_recent *r = &ss_thread_record()->classic;
	struct ss_timeline *only = ss_timeline_null(core, dev);

	if (!only || fast->slow || ss_nearly_full(core, dev) || r == &ss_nobody.classic)
		return false;
	r->gen = r->free_gen = 0;
	if (!note(r, atomic_load_explicit(&fast->classic[dev], memory_order_acquire), only, true))
		return false;
	r->dev = dev;
	r->free_gen = atomic_load(&fast->unwatched) ? 0 : gen;
	r->gen = gen;
	return true;
}

/* gen: as for recent(). */
static inline bool only_recent(uint64_t gen, struct ss_core *core)
{
	return likely(gen == atomic_load_explicit(&core->recent_gen, memory_order_acquire));
}

static bool only_alloc_shared(size_t size, void **out);
static int only_free_shared(struct ss_core *core, void *ptr, bool (*now)(int dev),
			    bool (*may)(int dev));

static SS_NOINLINE bool only_from_arena(size_t size, void **out)
{
	return from_arena(out, size, &ss_thread->classic,
			  size > SS_CLASSIC_LARGE - SS_GRAIN ? SS_CLASSIC_ALIGN : 1);
}

SS_INLINE bool only_alloc(struct ss_thread *t, size_t size, void **out, bool owner)
{
	struct ss_recent *r = &t->classic;
	struct ss_stream_cache *q = r->cache;
	struct ss_block *b;

	if (!enter(q, t, owner))
		return owner && only_alloc_shared(size, out);
	/* A size has one alignment here, so what a bin holds is aligned. */
	b = ss_bin_pop(q, (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1), 1);
	if (unlikely(!b))
		return only_from_arena(size, out);
	hand_out(out, size, r, t, b, owner);
	return true;
}

static SS_NOINLINE bool only_alloc_shared(size_t size, void **out)
{
	return only_alloc(ss_thread, size, out, false);
}

static SS_NOINLINE bool only_alloc_refill(struct ss_core *core, int dev, size_t size, void **out)
{
	return only_refill(core, dev) && only_alloc_shared(size, out);
}

bool ss_hit_only_alloc(struct ss_core *core, int dev, size_t size, void **out)
{
	struct ss_thread *t = ss_thread;

	if (unlikely(!only_recent(t->classic.gen, core) || t->classic.dev != dev))
		return only_alloc_refill(core, dev, size, out);
	return only_alloc(t, size, out, true);
}

static SS_NOINLINE int only_free_far(struct ss_core *core, void *ptr, bool (*may)(int dev))
{
	const struct ss_recent *r = &ss_thread->classic;

	return take_back_far(core, r, ptr, may) ? r->dev : -1;
}

SS_INLINE int only_free(struct ss_thread *t, struct ss_core *core, void *ptr, bool (*now)(int dev),
		    bool (*may)(int dev), bool owner)
{
	struct ss_recent *r = &t->classic;
	struct ss_block *b;

	if (!enter(r->cache, t, owner))
		return owner ? only_free_shared(core, ptr, now, may) : -1;
	if (unlikely(!ss_handed_get(r->cache, (uintptr_t)ptr, &b) || looks(r->cache) ||
		     !now(r->dev) || !ss_claim_hit(b, r->live, (uintptr_t)ptr))) {
		leave(r->cache, t, owner);
		return only_free_far(core, ptr, may);
	}
	take_back(r, t, b, owner);
	return r->dev;
}

static SS_NOINLINE int only_free_shared(struct ss_core *core, void *ptr, bool (*now)(int dev),
				     bool (*may)(int dev))
{
	return only_free(ss_thread, core, ptr, now, may, false);
}

static SS_NOINLINE int only_free_refill(struct ss_core *core, void *ptr, bool (*now)(int dev),
				    bool (*may)(int dev))
{
	struct ss_segment *seg = ss_map_segment(core, (uintptr_t)ptr);
	int dev = -1;

	for (int d = 0; seg && d < core->devices && dev < 0; d++) {
		struct ss_caches *set = atomic_load(&core->fast->classic[d]);

		if (set && set->memory->pool == seg->pool)
			dev = d;
	}
	return dev >= 0 && only_refill(core, dev) && ss_thread->classic.free_gen ?
		       only_free_shared(core, ptr, now, may) : -1;
}

int ss_hit_only_free(struct ss_core *core, void *ptr, bool (*now)(int dev), bool (*may)(int dev))
{
	struct ss_thread *t = ss_thread;

	if (unlikely(!only_recent(t->classic.free_gen, core)))
		return only_free_refill(core, ptr, now, may);
	return only_free(t, core, ptr, now, may, true);
}
