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
#include "core/cache/fast_path.h"
#include "core/cache/hit.h"
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

/* Can the arena take what is freed? If not, the first free makes it able to, the long way. */
static bool is_ready(const struct ss_stream_cache *q)
{
	return atomic_load_explicit(&q->lists, memory_order_relaxed) != NULL;
}

/* Notes that r's thread uses tl's cache in `set`. False: the long way has to make it first. */
static bool note(struct ss_recent *r, struct ss_caches *set, struct ss_timeline *tl, bool classic)
{
	struct ss_stream_cache *q = set ? ss_cache_of_slot(set, ss_timeline_slot(tl)) : NULL;

	if (!q)
		return false;
	ss_cache_note_others(q);
	r->cache = q;
	r->count = ss_count_of(q);
	r->pool = set->memory->pool;
	r->live = ss_word(q->slot, SS_BLOCK_LIVE, classic, true);
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
				      !atomic_load(&fast->unwatched) && is_ready(r->cache) ?
			      gen :
			      0;
	r->native = native;
	r->gen = gen;
	return true;
}

/* gen: r's, for what is to be done. */
static inline bool recent(const struct ss_recent *r, uint64_t gen, struct ss_core *core,
			  void *native)
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

/* live: r->live, or the same of a block at home in another arena. */
SS_INLINE int hand_out(void **out, size_t size, const struct ss_recent *r, struct ss_thread *t,
		       struct ss_block *b, uint64_t live, bool owner)
{
	struct ss_stream_cache *q = r->cache;

	b->request = size;
	b->id = q->id | ++q->hits;
	*out = (void *)(uintptr_t)b->addr;
	ss_uncover(r->tl);
	atomic_store_explicit(&b->word, live, memory_order_release);
	if (unlikely(!ss_count_add(r->count, b->size)))
		return ss_count_peak(q, r->count);
	leave(q, t, owner);
	return SS_OK;
}

/* What takes a second look. False: the arena has no such block, and the lock is released. */
static SS_NOINLINE bool look_again(void **out, size_t size, struct ss_recent *r, uint64_t rounded,
				   uint64_t align)
{
	struct ss_stream_cache *q = r->cache;
	struct ss_block *b = rounded ? ss_arena_take(q, rounded, align, false) : NULL;

	if (!b) {
		ss_bias_unlock(&q->lock);
		return false;
	}
	hand_out(out, size, r, NULL, b, ss_home(b) == q->slot + 1 ? r->live : SS_NOT_OWN(r->live),
		 false);
	return true;
}

/* Blocks of other arenas. */
static SS_NOINLINE void put_foreign(struct ss_stream_cache *q, struct ss_block *b)
{
	ss_arena_put(q, b);
}

/* b, which was claimed, goes into the arena. */
SS_INLINE void take_back(const struct ss_recent *r, struct ss_thread *t, struct ss_block *b,
			 bool owner)
{
	struct ss_stream_cache *q = r->cache;
	struct ss_timeline *tl = r->tl;

	b->n = ss_timeline_now(tl);
	ss_uncover(tl); /* after the position: a record in between covers it */
	q->frees++;
	ss_count_less(r->count, b->size);
	if (likely(b->own))
		ss_arena_put_own(q, b, ss_merges_from(q, tl));
	else
		put_foreign(q, b);
	leave(q, t, owner);
}

/* The block of the pool that starts at addr. It may be anybody's by now, or NULL. */
SS_INLINE struct ss_block *block_at(struct ss_core *core, const struct ss_recent *r, uint64_t addr)
{
	uint64_t off;
	struct ss_segment *seg = ss_map_offset(core, addr, &off);

	return likely(seg && seg->pool == r->pool && off % SS_GRAIN == 0) ?
		       ss_block_at_offset(core, seg, off) :
		       NULL;
}

/* ---- hipMallocAsync, hipFreeAsync ---------------------------------------------- */

static int alloc_shared(void **out, size_t size, void *native, struct ss_core *core,
			ss_miss_alloc *miss);
static int free_shared(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss);

static SS_NOINLINE int alloc_refill(void **out, size_t size, void *native, struct ss_core *core,
				    ss_miss_alloc *miss)
{
	return refill(core, native) ? alloc_shared(out, size, native, core, miss) :
				      miss(out, size, native);
}

/* 0: zero and sizes that overflow, for which no range is searched. */
static inline uint64_t block_size(size_t size)
{
	return likely(size - 1 < SS_MAX_REQUEST) ? ss_round(size, SS_GRAIN) : 0;
}

static SS_NOINLINE int alloc_again(void **out, size_t size, void *native, ss_miss_alloc *miss)
{
	return look_again(out, size, &ss_thread->stream, block_size(size), 1) ?
		       SS_OK :
		       miss(out, size, native);
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
		return owner ? alloc_shared(out, size, native, core, miss) :
			       miss(out, size, native);
	b = block_size(size) ? ss_arena_take_own(q, block_size(size), 1) : NULL;
	if (unlikely(!b))
		return alloc_again(out, size, native, miss);
	return hand_out(out, size, r, t, b, r->live, owner);
}

static SS_NOINLINE int free_refill(void *ptr, void *native, struct ss_core *core,
				   ss_miss_free *miss)
{
	return !recent(&ss_thread->stream, ss_thread->stream.gen, core, native) &&
			       refill(core, native) && ss_thread->stream.free_gen ?
		       free_shared(ptr, native, core, miss) :
		       miss(ptr, native);
}

SS_INLINE int hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss,
		       bool owner)
{
	struct ss_thread *t = ss_thread;
	struct ss_recent *r = &t->stream;
	struct ss_stream_cache *q;
	struct ss_block *b;

	if (!recent(r, r->free_gen, core, native))
		return free_refill(ptr, native, core, miss);
	b = block_at(core, r, (uintptr_t)ptr);
	if (unlikely(!b))
		return miss(ptr, native);
	q = r->cache;
	if (!enter(q, t, owner))
		return owner ? free_shared(ptr, native, core, miss) : miss(ptr, native);
	if (unlikely(looks(q) || !ss_claim_hit(b, r->live, (uintptr_t)ptr))) {
		leave(q, t, owner);
		return miss(ptr, native);
	}
	take_back(r, t, b, owner);
	return SS_OK;
}

static SS_NOINLINE int alloc_shared(void **out, size_t size, void *native, struct ss_core *core,
				    ss_miss_alloc *miss)
{
	return hit_alloc(out, size, native, core, miss, false);
}

static SS_NOINLINE int free_shared(void *ptr, void *native, struct ss_core *core,
				   ss_miss_free *miss)
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
	r->free_gen = atomic_load(&fast->unwatched) || !is_ready(r->cache) ? 0 : gen;
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

static inline uint64_t only_align(size_t size)
{
	return size > SS_CLASSIC_LARGE - SS_GRAIN ? SS_CLASSIC_ALIGN : 1;
}

static SS_NOINLINE bool only_again(size_t size, void **out)
{
	return look_again(out, size, &ss_thread->classic, block_size(size), only_align(size));
}

SS_INLINE bool only_alloc(struct ss_thread *t, size_t size, void **out, bool owner)
{
	struct ss_recent *r = &t->classic;
	struct ss_stream_cache *q = r->cache;
	struct ss_block *b;

	if (!enter(q, t, owner))
		return owner && only_alloc_shared(size, out);
	b = block_size(size) ? ss_arena_take_own(q, block_size(size), only_align(size)) : NULL;
	if (unlikely(!b))
		return only_again(size, out);
	hand_out(out, size, r, t, b, r->live, owner);
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

/* Where `may` has to be asked, which calls the shim and so is asked without the lock. */
static SS_NOINLINE int only_free_late(void *ptr, struct ss_block *b, bool (*may)(int dev))
{
	const struct ss_recent *r = &ss_thread->classic;

	if (!may(r->dev) || !ss_bias_lock_try(&r->cache->lock))
		return -1;
	if (looks(r->cache) || !ss_claim_hit(b, r->live, (uintptr_t)ptr)) {
		ss_bias_unlock(&r->cache->lock);
		return -1;
	}
	take_back(r, NULL, b, false);
	return r->dev;
}

SS_INLINE int only_free(struct ss_thread *t, struct ss_core *core, void *ptr, bool (*now)(int dev),
			bool (*may)(int dev), bool owner)
{
	struct ss_recent *r = &t->classic;
	struct ss_block *b = block_at(core, r, (uintptr_t)ptr);

	if (unlikely(!b))
		return -1;
	if (!enter(r->cache, t, owner))
		return owner ? only_free_shared(core, ptr, now, may) : -1;
	if (unlikely(looks(r->cache) || !ss_claim_hit(b, r->live, (uintptr_t)ptr))) {
		leave(r->cache, t, owner);
		return -1;
	}
	if (unlikely(!now(r->dev))) {
		leave(r->cache, t, owner);
		return only_free_late(ptr, b, may);
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
		       only_free_shared(core, ptr, now, may) :
		       -1;
}

int ss_hit_only_free(struct ss_core *core, void *ptr, bool (*now)(int dev), bool (*may)(int dev))
{
	struct ss_thread *t = ss_thread;

	if (unlikely(!only_recent(t->classic.free_gen, core)))
		return only_free_refill(core, ptr, now, may);
	return only_free(t, core, ptr, now, may, true);
}
