/* SPDX-License-Identifier: MIT */
/*
 * Allocation: requests that the hot path did not serve. The stream's shelf is asked first;
 * everything else goes through the ladder.
 *
 * Locks: shelf->lock.
 */
#include "core/shelf/fast_path.h"
#include "core/pool/release.h"
#include "core/pool/request.h"

static uint64_t align_of(const struct ss_pool *pool, uint64_t size)
{
	uint64_t large = ss_core_of(pool)->opt.align_large;

	if (large && size >= large)
		return large;
	return pool->classic && size >= SS_CLASSIC_LARGE ? SS_CLASSIC_ALIGN : SS_GRAIN;
}

static void hand_out(struct ss_request *r, struct ss_shelf *q, size_t size, bool classic,
		     const void *stream, void **out)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t when;

	if (unlikely(r->front))
		r->block = ss_front_split(r);
	when = ss_shelf_hand_out(q, r->block, size, r->id, classic);
	*out = (void *)(uintptr_t)r->block->addr;
	ss_tell_block(core, true, *out, size, stream);
	ss_trace_alloc_at(when, *out, size, r->block->size, pool->mem.dev, pool->mem.handle, stream,
			  (classic ? SS_TRACE_F_CLASSIC : 0) | (r->missed ? 0 : SS_TRACE_F_HIT));
	if (unlikely(r->grown))
		ss_tell_growth(core);
}

/* The null stream may take a block because its next command joins the blocking streams. The
 * block may then be used at once on another blocking stream. That stream waits for the null
 * stream, but if no command was enqueued there, it waits for nothing. So a fence is recorded on
 * the null stream. The runtime's own hipMallocAsync joins at this point, so this call may join,
 * too, even if a thread waits for the stream. Without the record each round of a loop would need
 * new memory. One record covers every free before it. False: no fence can be recorded now, and
 * the block stays free. */
static bool null_joins(struct ss_core *core, struct ss_timeline *tl, const struct ss_block *b)
{
	if (b->slot != ss_timeline_slot(tl) || b->n <= ss_timeline_commanded(tl) ||
	    (!ss_order_joiners(core, ss_timeline_device(tl)) && !ss_distrusted(core)))
		return true;
	return ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_OWN);
}

/* Undoes the allocation of r->block. The block was counted as handed out: by its shelf, as one
 * of the stream's own, or by the ladder. */
static void put_back(struct ss_request *r)
{
	struct ss_pool_stats *st = &r->pool->st;
	uint64_t *rule = r->missed ? r->rule : &st->reuse_same_stream;

	ss_pool_lock(r->pool);
	st->allocations--;
	st->misses -= r->grown != 0;
	if (rule)
		--*rule;
	ss_reclaim_put(r->pool, r->block);
	ss_pool_unlock(r->pool);
}

/* The request fails at once, because nothing could make room for that size. */
static enum ss_status fail_impossible(struct ss_request *r)
{
	ss_pool_lock(r->pool);
	r->pool->st.out_of_memory++;
	ss_pool_unlock(r->pool);
	ss_oom_report(r);
	ss_tell_growth(ss_core_of(r->pool));
	return SS_ERR_NOMEM;
}

/* Would the request exceed the maximum that the program set for the pool? Threads that ask at
 * the same time may exceed the maximum, but only up to the end of its frame (SS_FRAME). */
static bool over_max(struct ss_pool *pool, uint64_t size)
{
	uint64_t max = atomic_load_explicit(&pool->mem.max_bytes, memory_order_relaxed);

	return unlikely(max != 0) && ss_used(&pool->shelves) + size > max;
}

/* Is the block to be a segment of its own (SOMASHIM_IPC_WHOLE)? */
static bool wants_whole(const struct ss_core *core, size_t size)
{
	return core->opt.ipc_whole && size >= core->opt.ipc_whole;
}

/* Begins a request for `size` bytes. Any status but SS_OK is the result of the call. */
SS_INLINE enum ss_status begin(struct ss_request *r, struct ss_pool *pool, struct ss_timeline *tl,
			       size_t size)
{
	*r = (struct ss_request){.pool = pool, .tl = tl, .size = size};
	if (!size)
		return SS_ERR_INVALID;
	if (size > SS_MAX_REQUEST)
		return fail_impossible(r);
	r->size = ss_round(size, SS_GRAIN);
	r->align = align_of(pool, r->size);
	if (unlikely(ss_core_of(pool)->opt.check_front) && !wants_whole(ss_core_of(pool), size)) {
		r->front = ss_round(ss_core_of(pool)->opt.check_front, r->align);
		r->size += r->front;
	}
	return over_max(pool, r->size) ? fail_impossible(r) : SS_OK;
}

enum ss_status ss_alloc_async(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
			      size_t size, void **out)
{
	struct ss_shelf *q;
	struct ss_request r;
	enum ss_status s;

	/* Memory of hipMalloc has completed, and its backing can be exported. */
	if (unlikely(wants_whole(core, size)) && pool->is_default)
		return ss_alloc_classic(core, pool->mem.dev, size, out);
	s = begin(&r, pool, tl, size);
	if (s != SS_OK)
		return s;
	r.shelf = q = ss_shelf_get(&pool->shelves, tl);
	if (unlikely(!q))
		return SS_ERR_NOMEM;
	r.block = ss_shelf_pop(q, r.size, r.align, &r.id);
	if (!r.block && (s = ss_ladder(&r)) != SS_OK)
		return s;
	if (unlikely(ss_timeline_kind(tl) == SS_TL_NULL) && !null_joins(core, tl, r.block)) {
		/* A capture forbids the fence, so only completed or new memory can be used. */
		put_back(&r);
		r = (struct ss_request){.pool = pool,
					.size = r.size,
					.align = r.align,
					.front = r.front,
					.oom.end = r.oom.end};
		s = ss_ladder(&r);
		if (s != SS_OK)
			return s;
	}
	ss_uncover(tl);
	hand_out(&r, q, size, false, ss_timeline_native(tl), out);
	return SS_OK;
}

/* The current pool of dev, entered; NULL as ss_pool_current(). */
static struct ss_pool *enter_current(struct ss_core *core, int dev)
{
	for (;;) {
		struct ss_pool *pool = ss_pool_current(core, dev);

		if (!pool)
			return NULL;
		if (!ss_pool_ref(pool))
			continue;
		if (pool == ss_pool_current(core, dev))
			return pool;
		ss_pool_unref(pool);
	}
}

enum ss_status ss_alloc_current(struct ss_core *core, struct ss_timeline *tl, size_t size,
				void **out)
{
	int dev = ss_timeline_device(tl);
	struct ss_pool *pool = ss_pool_current(core, dev);
	enum ss_status s;

	/* A default pool is never destroyed, so its users need not be counted. */
	if (likely(pool == ss_pool_default(core, dev)))
		return pool ? ss_alloc_async(core, pool, tl, size, out) : SS_ERR_NO_DEVICE;
	pool = enter_current(core, dev);
	if (!pool)
		return SS_ERR_NO_DEVICE;
	s = ss_alloc_async(core, pool, tl, size, out);
	ss_pool_unref(pool);
	return s;
}

static enum ss_status alloc_classic(struct ss_core *core, int dev, struct ss_timeline *single,
				    size_t size, void **out)
{
	struct ss_pool *pool = ss_pool_classic(core, dev);
	struct ss_request r;
	enum ss_status s;

	if (!pool)
		return SS_ERR_NO_DEVICE;
	s = begin(&r, pool, NULL, size);
	if (s != SS_OK)
		return s;
	if (unlikely(wants_whole(core, size))) {
		ss_device_initial(pool);
		r.block = ss_whole_block_alloc(&r, size);
	}
	if (!r.block && single) {
		r.shelf = ss_shelf_get(&pool->shelves, single);
		r.tl = r.shelf ? single : NULL;
		r.block = r.shelf ? ss_shelf_pop(r.shelf, r.size, r.align, &r.id) : NULL;
		ss_uncover(single);
	}
	if (!r.block && (s = ss_ladder(&r)) != SS_OK)
		return s;
	hand_out(&r, r.shelf ? r.shelf : pool->shelves.done, size, true, NULL, out);
	return SS_OK;
}

enum ss_status ss_alloc_classic(struct ss_core *core, int dev, size_t size, void **out)
{
	return alloc_classic(core, dev, NULL, size, out);
}

enum ss_status ss_alloc_single(struct ss_core *core, struct ss_timeline *single, size_t size,
			       void **out)
{
	return alloc_classic(core, ss_timeline_device(single), single, size, out);
}

static enum ss_status alloc_guarded(struct ss_pool *pool, struct ss_timeline *tl, size_t size,
				    void **out)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_shelf *q = pool->shelves.done;
	struct ss_request r;
	enum ss_status s = begin(&r, pool, tl, size);

	if (s != SS_OK)
		return s;
	if (tl && !(q = ss_shelf_get(&pool->shelves, tl)))
		return SS_ERR_NOMEM;
	r.size = ss_round(r.size - r.front, r.align);
	s = ss_guarded_block(&r);
	if (s != SS_OK)
		return s;
	/* When a guarded block is freed, its memory is released as soon as possible. */
	ss_decay_each_sync(core, pool->mem.dev);
	if (tl)
		ss_uncover(tl);
	hand_out(&r, q, size, !tl, tl ? ss_timeline_native(tl) : NULL, out);
	r.block->exported = true; /* these bytes are never reused after the free */
	return SS_OK;
}

enum ss_status ss_alloc_guarded(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
				size_t size, void **out)
{
	enum ss_status s;

	if (pool)
		return alloc_guarded(pool, tl, size, out);
	pool = tl ? enter_current(core, ss_timeline_device(tl)) : NULL;
	if (!pool)
		return SS_ERR_NO_DEVICE;
	s = alloc_guarded(pool, tl, size, out);
	ss_pool_unref(pool);
	return s;
}
