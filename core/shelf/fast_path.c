/* SPDX-License-Identifier: MIT */
/*
 * The usual case of hipMallocAsync and hipFreeAsync: the stream is the one that the thread used
 * last, the pool is the device's current pool, and the stream's shelf has a fitting range.
 * hipMalloc and hipFree are served likewise as long as one timeline orders all work of the device.
 * Every other call takes the caller's slow path, which handles all cases; the ordering rules are
 * the same.
 *
 * Only one case is inlined: the thread owns the shelf's lock and finds a fit at once. That case
 * calls nothing and so saves no registers. The rest of the hot path is out of line.
 *
 * Locks: shelf->lock.
 */
#include "core/shelf/fast_path.h"
#include "core/shelf/hit.h"
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

/* ---- the stream that the thread used last ----------------------------------- */

/* Notes that r's thread uses tl's shelf in `set`. native NULL: for hipMalloc. `frees`: the
 * thread may free there, too. False: the slow path has to make the shelf first. */
static bool note(struct ss_recent *r, struct ss_shelves *set, struct ss_timeline *tl, void *native,
		 uint64_t gen, bool frees)
{
	struct ss_shelf *q = set ? ss_shelf_of_slot(set, ss_timeline_slot(tl)) : NULL;

	r->gen = r->free_gen = 0;
	if (!q)
		return false;
	r->shelf = q;
	r->count = ss_count_of(q);
	r->pool = set->memory->pool;
	r->live = ss_word(q->slot, SS_BLOCK_LIVE, !native);
	r->native = native;
	r->tl = tl;
	r->dev = ss_timeline_device(tl);
	ss_timeline_marked(tl);
	r->free_gen = frees && !atomic_load(&set->core->fast->notifies) ? gen : 0;
	r->gen = gen;
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
	dev = ss_timeline_device(tl);
	/* Near the end of the device's memory every free has more to do. */
	return note(r, atomic_load_explicit(&fast->current[dev], memory_order_acquire), tl, native,
		    gen, atomic_load(&fast->frees[dev]) && !ss_nearly_full(core, dev));
}

static bool classic_refill(struct ss_core *core, int dev)
{
	uint64_t gen = atomic_load_explicit(&core->recent_gen, memory_order_acquire);
	struct ss_fast_path *fast = core->fast;
	struct ss_recent *r = &ss_thread_record()->classic;
	struct ss_timeline *single = ss_timeline_null(core, dev);

	if (!single || fast->slow || ss_nearly_full(core, dev) || r == &ss_nobody.classic)
		return false;
	return note(r, atomic_load_explicit(&fast->classic[dev], memory_order_acquire), single,
		    NULL, gen, true);
}

/* gen: the generation of r for the kind of call. */
static inline bool is_current(uint64_t gen, const struct ss_core *core)
{
	return likely(gen == atomic_load_explicit(&core->recent_gen, memory_order_acquire));
}

/* The same for a stream. In ss_nobody, and in a record of no core, the handle is nobody's. */
static inline bool is_recent(const struct ss_recent *r, uint64_t gen, const struct ss_core *core,
			     const void *native)
{
	return likely(r->native == native) && is_current(gen, core);
}

/* owner: the thread entered as the lock's owner. The compiler knows the value if the function is
 * inlined. */
SS_INLINE void leave(struct ss_shelf *q, bool owner, struct ss_thread *t)
{
	if (owner)
		ss_bias_leave(t);
	else
		ss_bias_unlock(&q->lock);
}

/* ---- out of the shelf ----------------------------------------------------------- */

/* 0: zero and sizes that overflow, for which no range is searched. */
static inline uint64_t block_size(size_t size)
{
	return likely(size - 1 < SS_MAX_REQUEST) ? ss_round(size, SS_GRAIN) : 0;
}

/* The alignment that hipMalloc promises. */
static inline uint64_t classic_align(size_t size)
{
	return size > SS_CLASSIC_LARGE - SS_GRAIN ? SS_CLASSIC_ALIGN : 1;
}

/* Lock held; it is released. */
SS_INLINE void hand_out(void **out, size_t size, const struct ss_recent *r, struct ss_block *b,
			bool owner, struct ss_thread *t)
{
	struct ss_shelf *q = r->shelf;

	b->request = size;
	b->id = q->id | ++q->hits;
	*out = (void *)(uintptr_t)b->addr;
	ss_uncover(r->tl);
	atomic_store_explicit(&b->word, r->live, memory_order_release);
	if (unlikely(!ss_count_add(r->count, b->size)))
		ss_count_peak(q, r->count);
	else
		leave(q, owner, t);
}

/* For the owner of the lock, if the shelf has a fit at once. False: alloc_any() may find more. */
SS_INLINE bool alloc_own(void **out, size_t size, const struct ss_recent *r, struct ss_thread *t,
			 uint64_t align)
{
	struct ss_shelf *q = r->shelf;
	uint64_t rounded = block_size(size);
	struct ss_block *b;

	if (unlikely(!rounded || !ss_bias_enter(&q->lock, t)))
		return false;
	b = ss_shelf_take_own(q, rounded, align);
	if (unlikely(!b)) {
		ss_bias_leave(t);
		return false;
	}
	hand_out(out, size, r, b, true, t);
	return true;
}

/* For any thread, and with a longer search. False: the shelf has no such block. */
static SS_NOINLINE bool alloc_any(void **out, size_t size, struct ss_recent *r, uint64_t align)
{
	struct ss_shelf *q = r->shelf;
	uint64_t rounded = block_size(size);
	struct ss_block *b;

	if (!rounded || !ss_bias_lock_try(&q->lock))
		return false;
	b = ss_shelf_take(q, rounded, align, false);
	if (!b) {
		ss_bias_unlock(&q->lock);
		return false;
	}
	hand_out(out, size, r, b, false, NULL);
	return true;
}

/* ---- into the shelf --------------------------------------------------------------- */

/* The block of the pool that starts at addr. The block may have another owner by now, or be
 * NULL. */
SS_INLINE struct ss_block *block_at(struct ss_core *core, const struct ss_recent *r, uint64_t addr)
{
	uint64_t off;
	struct ss_segment *seg = ss_map_offset(core, addr, &off);

	return likely(seg && seg->pool == r->pool && off % SS_GRAIN == 0) ?
		       ss_block_at_offset(core, seg, off) :
		       NULL;
}

/* b, which lies at addr, goes into the shelf. Lock held; it is released. False: b is not a live
 * block of the shelf. */
SS_INLINE bool take_back(const struct ss_recent *r, struct ss_block *b, uint64_t addr, bool owner,
			 struct ss_thread *t)
{
	struct ss_shelf *q = r->shelf;
	struct ss_timeline *tl = r->tl;

	if (unlikely(!ss_claim_hit(b, r->live, addr))) {
		leave(q, owner, t);
		return false;
	}
	b->n = ss_timeline_now(tl);
	ss_uncover(tl); /* after the position: a record in between covers it */
	q->frees++;
	ss_count_less(r->count, b->size);
	ss_shelf_put_own(q, b);
	leave(q, owner, t);
	return true;
}

/* For any thread. */
static SS_NOINLINE bool free_any(const struct ss_recent *r, struct ss_block *b, uint64_t addr)
{
	return ss_bias_lock_try(&r->shelf->lock) && take_back(r, b, addr, false, NULL);
}

/* ---- hipMallocAsync, hipFreeAsync ---------------------------------------------- */

static SS_NOINLINE int alloc_refill(void **out, size_t size, void *native, struct ss_core *core,
				    ss_miss_alloc *miss)
{
	return refill(core, native) && alloc_any(out, size, &ss_thread->stream, 1) ?
		       SS_OK :
		       miss(out, size, native);
}

static SS_NOINLINE int alloc_again(void **out, size_t size, void *native, ss_miss_alloc *miss)
{
	return alloc_any(out, size, &ss_thread->stream, 1) ? SS_OK : miss(out, size, native);
}

int ss_hit_alloc(void **out, size_t size, void *native, struct ss_core *core, ss_miss_alloc *miss)
{
	struct ss_thread *t = ss_thread;

	if (unlikely(!is_recent(&t->stream, t->stream.gen, core, native)))
		return alloc_refill(out, size, native, core, miss);
	if (likely(alloc_own(out, size, &t->stream, t, 1)))
		return SS_OK;
	return alloc_again(out, size, native, miss);
}

static SS_NOINLINE int free_again(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	struct ss_recent *r = &ss_thread->stream;
	struct ss_block *b = block_at(core, r, (uintptr_t)ptr);

	return b && free_any(r, b, (uintptr_t)ptr) ? SS_OK : miss(ptr, native);
}

static SS_NOINLINE int free_refill(void *ptr, void *native, struct ss_core *core,
				   ss_miss_free *miss)
{
	struct ss_recent *r = &ss_thread->stream;

	/* The remembered stream may be valid although frees currently have to take the slow
	 * path. */
	return !is_recent(r, r->gen, core, native) && refill(core, native) &&
			       ss_thread->stream.free_gen ?
		       free_again(ptr, native, core, miss) :
		       miss(ptr, native);
}

int ss_hit_free(void *ptr, void *native, struct ss_core *core, ss_miss_free *miss)
{
	struct ss_thread *t = ss_thread;
	const struct ss_recent *r = &t->stream;
	struct ss_block *b;

	if (unlikely(!is_recent(r, r->free_gen, core, native)))
		return free_refill(ptr, native, core, miss);
	b = block_at(core, r, (uintptr_t)ptr);
	if (unlikely(!b))
		return miss(ptr, native);
	if (unlikely(!ss_bias_enter(&r->shelf->lock, t)))
		return free_again(ptr, native, core, miss);
	return likely(take_back(r, b, (uintptr_t)ptr, true, t)) ? SS_OK : miss(ptr, native);
}

/* ---- hipMalloc and hipFree while the null stream orders all work of the device ---- */

static SS_NOINLINE bool classic_alloc_refill(struct ss_core *core, int dev, size_t size, void **out)
{
	return classic_refill(core, dev) &&
	       alloc_any(out, size, &ss_thread->classic, classic_align(size));
}

bool ss_hit_classic_alloc(struct ss_core *core, int dev, size_t size, void **out)
{
	struct ss_thread *t = ss_thread;

	if (unlikely(!is_current(t->classic.gen, core) || t->classic.dev != dev))
		return classic_alloc_refill(core, dev, size, out);
	return likely(alloc_own(out, size, &t->classic, t, classic_align(size))) ||
	       alloc_any(out, size, &t->classic, classic_align(size));
}

static SS_NOINLINE bool classic_free_refill(struct ss_core *core, const void *ptr)
{
	struct ss_segment *seg = ss_map_segment(core, (uintptr_t)ptr);
	int dev = -1;

	for (int d = 0; seg && d < core->devices && dev < 0; d++) {
		struct ss_shelves *set = atomic_load(&core->fast->classic[d]);

		if (set && set->memory->pool == seg->pool)
			dev = d;
	}
	return dev >= 0 && classic_refill(core, dev) && ss_thread->classic.free_gen;
}

int ss_hit_classic_free(struct ss_core *core, void *ptr, bool (*may)(int dev))
{
	struct ss_thread *t = ss_thread;
	const struct ss_recent *r;
	struct ss_block *b;

	if (unlikely(!is_current(t->classic.free_gen, core))) {
		if (!classic_free_refill(core, ptr))
			return -1;
		t = ss_thread; /* the thread may have got its record just now */
	}
	r = &t->classic;
	b = block_at(core, r, (uintptr_t)ptr);
	if (unlikely(!b || !may(r->dev)))
		return -1;
	if (likely(ss_bias_enter(&r->shelf->lock, t)))
		return likely(take_back(r, b, (uintptr_t)ptr, true, t)) ? r->dev : -1;
	return free_any(r, b, (uintptr_t)ptr) ? r->dev : -1;
}
