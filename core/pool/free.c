/* SPDX-License-Identifier: MIT */
/*
 * Free: calls that the hot path did not serve.
 *
 * Locks: shelf->lock; the pool's for hipFree that did not wait.
 */
#include "core/shelf/fast_path.h"
#include "core/pool/reclaim.h"
#include "core/pool/release.h"

/* Takes the block that was found from its owner, if the block is live. Another thread may have
 * freed it meanwhile; its descriptor may then belong to another live block, and this free must
 * leave that block alone. */
static bool claim(const struct ss_found *f)
{
	struct ss_pool *pool = f->pool;
	struct ss_block *b = f->block;
	bool mine = false, moved;

	if (__atomic_load_n(&b->seg, __ATOMIC_RELAXED) != f->segment || f->segment->pool != pool)
		return false;
	do {
		uint32_t slot = __atomic_load_n(&b->slot, __ATOMIC_RELAXED);
		struct ss_shelf *q = slot == SS_SLOT_COMPLETED ?
					     pool->shelves.done :
					     ss_shelf_of_slot(&pool->shelves, slot);

		if (!q)
			return false;
		mine = ss_shelf_claim(q, b, f->start, &moved);
	} while (!mine && moved);
	return mine;
}

/* Counts the free of b, which was claimed. `completed`: every access to b has completed. */
static void account(struct ss_pool *pool, struct ss_shelf *q, struct ss_block *b,
		    const void *stream, bool completed)
{
	struct ss_core *core = ss_core_of(pool);
	const void *ptr = (void *)(uintptr_t)b->addr;
	uint64_t when;

	ss_tell_block(core, false, ptr, b->request, stream);
	when = ss_used_add(q, -b->size);
	ss_trace_free_at(when, ptr, pool->mem.dev, pool->mem.handle, stream,
			 (b->classic ? SS_TRACE_F_CLASSIC : 0) |
				 (completed ? SS_TRACE_F_REUSABLE : 0));
}

enum ss_status ss_free_stream(struct ss_core *core, const struct ss_found *f,
			      struct ss_timeline *tl)
{
	struct ss_pool *pool = f->pool;
	struct ss_shelf *q = ss_shelf_get(&pool->shelves, tl);
	struct ss_block *b = f->block;

	if (!q)
		return SS_ERR_NOMEM;
	if (!claim(f))
		return SS_ERR_INVALID;
	ss_timeline_marked(tl);
	ss_set_slot(b, q->slot);
	account(pool, q, b, ss_timeline_native(tl), false);
	if (unlikely(b->front))
		b = ss_front_join(pool, b);
	if (unlikely(ss_nearly_full(core, ss_timeline_device(tl))) && ss_fence_room(core, tl)) {
		/* This position belongs to this free alone, so the fence covers exactly this
		 * free. Streams may wait for such a fence where the pool's policy allows it, and
		 * so may the host before it reports out of memory. */
		b->n = ss_position_alone(tl);
		ss_uncover(tl);
		ss_fence_request(core, tl, b->n, SS_FENCE_EXACT);
	} else {
		b->n = ss_timeline_now(tl);
		ss_uncover(tl); /* after the position: a record in between covers it */
	}
	if (ss_timeline_kind(tl) == SS_TL_THREAD)
		ss_fence_serve(core, tl, SS_FENCE_LATE);
	if (unlikely(b->exported))
		ss_ipc_keep(pool, b);
	else
		ss_shelf_push(q, b);
	if (unlikely(atomic_load_explicit(&pool->dying, memory_order_acquire)))
		ss_pool_reap(pool);
	ss_decay_wake(core);
	return SS_OK;
}

/* ---- hipFree ------------------------------------------------------------------------ */

/* Does a wait for every known stream prove that the block has completed? The wait says nothing
 * about destroyed streams, streams whose creation was not seen, and streams of other devices. */
static bool proves(struct ss_core *core, const struct ss_pool *pool, bool wide)
{
	int dev = pool->mem.dev;

	if (!wide && (ss_distrusted(core) || ss_zombies_poll(core, dev)))
		return false;
	return !(ss_order_visited(core) >> dev & 1) &&
	       !(atomic_load(&pool->mem.peers) & ~(1ull << dev));
}

bool ss_wait_proves(struct ss_core *core, const struct ss_found *f)
{
	return proves(core, f->pool, false);
}

/* Adds the block to the completed ranges, or marks it with everything that the device's streams
 * have enqueued. */
static void free_marked(struct ss_pool *pool, struct ss_block *b, bool completed)
{
	ss_pool_lock(pool);
	pool->st.frees++;
	if (!completed) {
		ss_set_slot(b, SS_SLOT_ALL);
		b->n = ss_all_mark(ss_core_of(pool), pool->mem.dev, atomic_load(&pool->mem.peers));
	}
	ss_reclaim_put(pool, b);
	ss_pool_unlock(pool);
}

/* An exported block becomes a gap. If nothing else is left of its segment, the segment is
 * released now: the real hipFree waits for the device, as this call would have without somashim.
 * A call that must not wait leaves the release to a later one. If the release does not wait, or
 * is seen (a guarded segment), the block stays until every use of it has completed. */
static void free_exported(struct ss_pool *pool, struct ss_block *b, bool completed, bool may_wait)
{
	if (!completed && (!ss_release_waits(&pool->mem) || b->seg->chunk)) {
		atomic_fetch_add(&pool->kept, b->size);
		free_marked(pool, b, false);
		return;
	}
	ss_pool_ref(pool); /* the pool is still there: the block is in no index yet */
	ss_ipc_keep(pool, b);
	if ((may_wait && ss_others_may_release(pool)) || ss_may_release(pool, SS_IDLE_UNASKED))
		ss_ipc_release(pool, false);
	ss_pool_unref(pool);
}

/* `may_wait`: natively the call waits for the device, or joins its streams. */
static enum ss_status free_everywhere(struct ss_core *core, const struct ss_found *f,
				      struct ss_token *waited, bool may_wait)
{
	bool wide = waited && ss_token_device_wide(waited), completed, high;
	struct ss_pool *pool = f->pool;
	struct ss_block *b = f->block;
	struct ss_timeline *null;
	int dev = f->device; /* read before the pool can end with its last block */

	if (waited)
		ss_sync_end(core, waited, true, false);
	completed = waited && proves(core, pool, wide);
	if (!claim(f))
		return SS_ERR_INVALID;
	account(pool, pool->shelves.done, b, NULL, completed && !b->exported);
	if (unlikely(b->front))
		b = ss_front_join(pool, b);
	ss_set_slot(b, SS_SLOT_COMPLETED);
	b->n = ss_now_ms(core);
	high = ss_much_pending(pool, b->size);
	if (unlikely(b->exported))
		free_exported(pool, b, completed, may_wait);
	else
		free_marked(pool, b, completed);
	/* The real call waits for the device. So this call may wait, too, even if another thread
	 * is waiting, when more is pending than the bound allows. Otherwise the state of a null
	 * stream that other streams join would never be known while any thread waits for one of
	 * those streams. */
	if (!waited && may_wait && (null = ss_timeline_null(core, dev)))
		ss_fence_serve(core, null, high ? SS_FENCE_OWN : SS_FENCE_JOINING);
	if (atomic_load_explicit(&pool->dying, memory_order_acquire))
		ss_pool_reap(pool);
	ss_decay_wake(core);
	return SS_OK;
}

enum ss_status ss_free_found(struct ss_core *core, const struct ss_found *f,
			     struct ss_token *waited)
{
	return free_everywhere(core, f, waited, true);
}

enum ss_status ss_free_found_unordered(struct ss_core *core, const struct ss_found *f)
{
	return free_everywhere(core, f, NULL, false);
}

enum ss_status ss_free_found_async(struct ss_core *core, const struct ss_found *f,
				   struct ss_timeline *tl)
{
	if (!f->classic)
		return ss_free_stream(core, f, tl);
	/* With SOMASHIM_IPC_WHOLE the block may come from hipMallocAsync. So this call must not
	 * wait, and the memory completes once all streams have passed this point. */
	if (core->opt.ipc_whole && f->block->request >= core->opt.ipc_whole)
		return free_everywhere(core, f, NULL, false);
	return SS_ERR_CLASSIC;
}

enum ss_status ss_free_counted(const struct ss_found *f)
{
	struct ss_pool *pool = f->pool;

	if (!claim(f))
		return SS_ERR_INVALID;
	account(pool, pool->shelves.done, f->block, NULL, false);
	ss_pool_lock(pool);
	pool->st.frees++;
	ss_pool_unlock(pool);
	return SS_OK;
}

/* ---- by the pointer ------------------------------------------------------------------ */

enum ss_status ss_free_classic(struct ss_core *core, const void *ptr, struct ss_token *waited)
{
	struct ss_found f;
	enum ss_status s = ss_find(core, ptr, &f);

	if (s == SS_OK)
		return ss_free_found(core, &f, waited);
	if (waited)
		ss_sync_end(core, waited, true, false);
	return s;
}

enum ss_status ss_free_async(struct ss_core *core, const void *ptr, struct ss_timeline *tl)
{
	struct ss_found f;
	enum ss_status s = ss_find(core, ptr, &f);

	return s == SS_OK ? ss_free_found_async(core, &f, tl) : s;
}
