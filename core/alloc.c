/* SPDX-License-Identifier: MIT */
/*
 * Allocate and free.
 *
 * A hit is a pop from the bin of the stream's queue. Everything else goes
 * through slow(): the heaps, then what other streams freed and has become
 * usable, then growth, then the out-of-memory ladder - in the order of what
 * they cost.
 *
 * Locks: queue->lock on a hit; pool->lock in slow(), dropped for every driver
 * call.
 */
#include "core/internal.h"

#define MAX_REQUEST (1ull << 46)
#define FREES_PER_FENCE 96       /* of a queue, in the long run */
#define IDLE_SHARE (8ull << 20) /* bytes worth a fence on an idle stream */

static void used_add(struct ss_pool *pool, uint64_t size)
{
	uint64_t used = atomic_fetch_add_explicit(&pool->used, size, memory_order_relaxed) + size;
	uint64_t high = atomic_load_explicit(&pool->used_high, memory_order_relaxed);

	while (used > high && !atomic_compare_exchange_weak_explicit(
		       &pool->used_high, &high, used, memory_order_relaxed, memory_order_relaxed))
		;
}

static uint64_t align_of(const struct ss_pool *pool, uint64_t size)
{
	uint64_t large = pool->core->opt.align_large;

	if (large && size >= large)
		return large;
	/* What programs observe of hipMalloc today (RDMA and dmabuf users count
	 * on pages). */
	return pool->classic && size >= 65536 ? 4096 : SS_GRAIN;
}

static struct ss_queue *queue_get(struct ss_pool *pool, struct ss_timeline *tl)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	struct ss_queue *q;

	if (t && tl->slot < t->cap) {
		q = atomic_load_explicit(&t->q[tl->slot], memory_order_acquire);
		if (q)
			return q;
	}
	return ss_queue_slow(pool, tl);
}

/* ---- the slow path ------------------------------------------------------ */

/* The better of what q owns and what is clean, cut to size. Pool lock held. */
static struct ss_block *from_heaps(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
				   uint64_t align, uint64_t *rule, uint64_t *id)
{
	struct ss_block *own = q ? ss_heap_best(&q->own, size, align) : NULL;
	struct ss_block *clean = ss_heap_best(&pool->clean, size, align);
	struct ss_block *b = !own || (clean && clean->size < own->size) ? clean : own;
	uint64_t fresh = 0;
	bool used_before;

	if (!b)
		return NULL;
	used_before = b->n != 0;
	b = ss_carve(pool, b, size, align);
	if (b && rule)
		++*rule;
	else if (b)
		++*(own == b || (own && b->slot != SS_SLOT_CLEAN) ? &pool->st.reuse_same_stream :
		    used_before ? &pool->st.reuse_completed : &fresh);
	if (b)
		*id = pool->id_base | ++pool->ids;
	return b;
}

/* Do other streams, or epochs, hold free memory? Pool lock held. */
static bool others_hold(struct ss_pool *pool, const struct ss_queue *mine)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);

	for (uint32_t i = 0; t && i < t->cap; i++) {
		struct ss_queue *q = atomic_load_explicit(&t->q[i], memory_order_acquire);
		bool holds;

		if (!q || q == mine)
			continue;
		ss_spin_lock(&q->lock);
		holds = q->blocks != 0;
		ss_spin_unlock(&q->lock);
		if (holds || q->own.count)
			return true;
	}
	return pool->epochs != NULL;
}

/* Is a fence on q's stream worth it? One per FREES_PER_FENCE frees in the long
 * run; a few at the start, and two for every growth that went before, because a
 * fence is much cheaper than memory. A stream that had come to its end when it
 * was asked last is asked for every good share of the pool. */
static bool fence_due(struct ss_pool *pool, struct ss_queue *q)
{
	uint64_t frees, share = atomic_load(&pool->reserved) / 32;

	ss_spin_lock(&q->lock);
	frees = q->frees;
	ss_spin_unlock(&q->lock);
	if (frees == q->frees_fenced || !q->own.count)
		return false;
	if (!(q->idle && q->own.bytes >= (share > IDLE_SHARE ? share : IDLE_SHARE)) &&
	    q->fences >= 16 + frees / FREES_PER_FENCE + 2 * pool->st.grown)
		return false;
	q->fences++;
	q->frees_fenced = frees;
	return true;
}

/* Records the fences that would make waiting memory usable. Called with the pool
 * lock held, drops it meanwhile. True if any was recorded. */
static bool fence_others(struct ss_pool *pool, const struct ss_queue *mine)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	struct { struct ss_timeline *tl; uint64_t n; struct ss_queue *q; } want[64];
	struct ss_core *core = pool->core;
	uint32_t count = 0;
	bool any = false;

	for (uint32_t i = 0; t && i < t->cap && count < 64; i++) {
		struct ss_queue *q = atomic_load_explicit(&t->q[i], memory_order_acquire);

		if (q && q != mine && atomic_load(&pool->opportunistic) &&
		    fence_due(pool, q)) {
			want[count].tl = q->tl;
			want[count].q = q;
			want[count++].n = atomic_load(&q->tl->now);
		}
	}
	for (struct ss_epoch *e = pool->epochs; e; e = e->next)
		for (uint32_t i = 0; i < e->count && count < 64; i++)
			if (!ss_mark_done(pool, e->mark[i].slot, e->mark[i].n)) {
				want[count].tl = ss_slot(core, e->mark[i].slot);
				want[count].q = NULL;
				want[count++].n = e->mark[i].n;
			}
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < count; i++)
		any |= ss_fence_request(core, want[i].tl, want[i].n, SS_FENCE_LATE);
	if (any)
		ss_fence_poll(core, NULL, -1);
	pthread_mutex_lock(&pool->lock);
	for (uint32_t i = 0; i < count; i++)
		if (want[i].q)
			want[i].q->idle = atomic_load(&want[i].tl->completed) >= want[i].n;
	return any;
}

/* Memory that other streams freed. Called and returns with the pool lock held,
 * drops it for the driver. */
static struct ss_block *from_others(struct ss_pool *pool, struct ss_queue *q,
				    struct ss_timeline *x, uint64_t size, uint64_t align,
				    uint64_t *id)
{
	struct ss_core *core = pool->core;
	struct ss_row *row = NULL;
	struct ss_block *b;
	unsigned rules;

	pthread_mutex_unlock(&pool->lock);
	ss_fence_poll(core, NULL, -1);
	if (x)
		row = ss_row_of(core, x);
	pthread_mutex_lock(&pool->lock);
	ss_flush_all(pool);
	ss_settle(pool);
	b = from_heaps(pool, q, size, align, NULL, id);
	if (!b && x) {
		rules = ss_absorb(pool, x, row);
		ss_consolidate(pool, q);
		b = from_heaps(pool, q, size, align,
			       rules & SS_RULE_EVENT ? &pool->st.reuse_event :
			       rules ? &pool->st.reuse_implicit : NULL, id);
	} else if (!b && pool->classic && SS_MUTANT_IS(17)) {
		ss_absorb(pool, ss_timeline_null(core, pool->dev), row);
	}
	if (!b && fence_others(pool, q)) {
		ss_settle(pool);
		if (q)
			ss_consolidate(pool, q);
		b = from_heaps(pool, q, size, align, NULL, id);
	}
	ss_row_put(row);
	return b;
}

/* Before asking the device for more: what this very stream freed may be idle by
 * now, and idle memory can move (remapping) or make room (whole segments). Where
 * giving back would wait for the device, it must be known to be idle. True: it
 * costs no wait. No lock held. */
static bool may_give_back(struct ss_pool *pool, struct ss_queue *q)
{
	struct ss_core *core = pool->core;
	bool waits = core->dev[pool->dev].info.release_waits[pool->backing], any;
	struct ss_timeline *tl = q ? q->tl : NULL;

	pthread_mutex_lock(&pool->lock);
	any = (q ? q->own.bytes : 0) + pool->clean.bytes >= SS_FRAME;
	pthread_mutex_unlock(&pool->lock);
	if (!any)
		return !waits;
	if (waits && !ss_device_idle(core, pool->dev, tl && tl->kind == SS_TL_NULL))
		return false;
	if (tl) {
		/* hipMallocAsync on the null stream joins it natively. */
		ss_fence_request(core, tl, atomic_load(&tl->now), SS_FENCE_JOINING);
		ss_fence_poll(core, tl, -1);
	}
	pthread_mutex_lock(&pool->lock);
	ss_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	return true;
}

static enum ss_status slow(struct ss_pool *pool, struct ss_queue *q, struct ss_timeline *x,
			   uint64_t size, uint64_t align, struct ss_block **out, uint64_t *id)
{
	enum ss_status s = SS_OK;
	struct ss_block *b;
	unsigned oom_step = 0;
	uint64_t oom_end = 0;
	bool grown = false;

	for (;;) {
		pthread_mutex_lock(&pool->lock);
		b = from_heaps(pool, q, size, align, NULL, id);
		if (!b) {
			/* Bins first: they may hold the neighbour of a range that
			 * is almost long enough. */
			if (q)
				ss_flush(pool, q);
			ss_flush(pool, pool->done);
			if (q)
				ss_consolidate(pool, q);
			b = from_heaps(pool, q, size, align, NULL, id);
		}
		if (!b && others_hold(pool, q))
			b = from_others(pool, q, x, size, align, id);
		if (b) {
			pool->st.misses += grown;
			pthread_mutex_unlock(&pool->lock);
			*out = b;
			return SS_OK;
		}
		pthread_mutex_unlock(&pool->lock);

		s = ss_grow(pool, x, size, align, may_give_back(pool, q));
		grown |= s == SS_OK;
		if (s == SS_ERR_NOMEM)
			s = ss_oom(pool, x, size, oom_step++, &oom_end);
		if (s != SS_OK)
			break;
	}
	pthread_mutex_lock(&pool->lock);
	pool->st.out_of_memory += s == SS_ERR_NOMEM;
	pthread_mutex_unlock(&pool->lock);
	if (s == SS_ERR_NOMEM)
		ss_oom_report(pool, size);
	return s;
}

/* ---- allocate ----------------------------------------------------------- */

static void hand_out(struct ss_pool *pool, struct ss_block *b, size_t size, uint64_t id,
		     bool classic, const void *stream)
{
	struct ss_core *core = pool->core;

	b->request = size;
	b->id = id;
	b->classic = classic;
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	used_add(pool, b->size);
	if (core->journal)
		ss_journal_alloc(core->journal, (void *)(uintptr_t)b->addr, size, stream);
}

static void first_use(struct ss_pool *pool)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];
	uint64_t bytes;

	if (atomic_load_explicit(&d->initial_done, memory_order_relaxed) ||
	    !pool->core->opt.initial.set || atomic_exchange(&d->initial_done, true))
		return;
	bytes = ss_amount_bytes(&pool->core->opt.initial, d->info.total_bytes);
	/* It is a wish: if the device is too full, growing on demand goes on. */
	if (bytes)
		ss_grow(pool, NULL, bytes, SS_GRAIN, false);
}

/* A block that the null stream takes because its next command joins the blocking
 * streams may at once be used on another blocking stream, which waits for the
 * null stream - but for nothing, if no command stands there. The runtime's own
 * hipMallocAsync joins at this point, so we may: one record covers every free
 * before it. False: it cannot be recorded now, the block must stay free. */
static bool null_joins(struct ss_core *core, struct ss_timeline *tl, struct ss_block *b)
{
	if (b->slot != tl->slot || b->n <= atomic_load(&tl->commanded) ||
	    !atomic_load(&core->dev[tl->dev].joiners) || SS_MUTANT_IS(32))
		return true;
	return ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_JOINING);
}

static void put_back(struct ss_pool *pool, struct ss_block *b)
{
	pthread_mutex_lock(&pool->lock);
	ss_place(pool, b);
	pthread_mutex_unlock(&pool->lock);
}

enum ss_status ss_alloc_async(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
			      size_t size, void **out)
{
	uint64_t sz, align, id;
	struct ss_queue *q;
	struct ss_block *b;
	enum ss_status s;

	if (!size || size > MAX_REQUEST)
		return size ? SS_ERR_NOMEM : SS_ERR_INVALID;
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	align = align_of(pool, sz);
	q = queue_get(pool, tl);
	if (__builtin_expect(!q, 0))
		return SS_ERR_NOMEM;
	b = ss_queue_pop(q, sz, align, &id);
	if (__builtin_expect(!b, 0)) {
		first_use(pool);
		s = slow(pool, q, tl, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	if (__builtin_expect(tl->kind == SS_TL_NULL, 0) && !null_joins(core, tl, b)) {
		/* Rare (a capture forbids it): only completed or new memory will do. */
		put_back(pool, b);
		s = slow(pool, NULL, NULL, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	ss_uncover(tl);
	hand_out(pool, b, size, id, false, tl->native);
	*out = (void *)(uintptr_t)b->addr;
	return SS_OK;
}

static enum ss_status alloc_classic(struct ss_core *core, int dev, struct ss_timeline *only,
				    size_t size, void **out)
{
	struct ss_pool *pool = ss_pool_classic(core, dev);
	struct ss_queue *q = NULL;
	struct ss_block *b = NULL;
	uint64_t sz, align, id;
	enum ss_status s;

	if (!pool)
		return SS_ERR_NO_DEVICE;
	if (!size || size > MAX_REQUEST)
		return size ? SS_ERR_NOMEM : SS_ERR_INVALID;
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	align = align_of(pool, sz);
	if (only) {
		q = queue_get(pool, only);
		b = q ? ss_queue_pop(q, sz, align, &id) : NULL;
		ss_uncover(only);
	}
	if (!b)
		b = ss_queue_pop(pool->done, sz, align, &id);
	if (!b) {
		first_use(pool);
		s = slow(pool, q, q ? only : NULL, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	hand_out(pool, b, size, id, true, NULL);
	*out = (void *)(uintptr_t)b->addr;
	return SS_OK;
}

enum ss_status ss_alloc_classic(struct ss_core *core, int dev, size_t size, void **out)
{
	return alloc_classic(core, dev, NULL, size, out);
}

enum ss_status ss_alloc_only(struct ss_core *core, struct ss_timeline *only, size_t size,
			     void **out)
{
	return alloc_classic(core, only->dev, only, size, out);
}

/* ---- free --------------------------------------------------------------- */

/* The live block of this pointer; interior pointers too, as HIP has it. */
static enum ss_status find_live(struct ss_core *core, const void *ptr, struct ss_block **out)
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b;

	if (!seg)
		return SS_ERR_FOREIGN;
	b = ss_block_at(core, seg, addr);
	if (!b) {
		struct ss_pool *pool = seg->pool;

		pthread_mutex_lock(&pool->lock);
		if (ss_map_segment(core, addr) == seg)
			b = ss_block_containing(core, seg, addr);
		pthread_mutex_unlock(&pool->lock);
	}
	if (!b || atomic_load_explicit(&b->state, memory_order_acquire) != SS_BLOCK_LIVE)
		return SS_ERR_INVALID;
	*out = b;
	return SS_OK;
}

/* Of two threads that free one block, one wins. */
static bool claim(struct ss_block *b)
{
	unsigned char live = SS_BLOCK_LIVE;

	return atomic_compare_exchange_strong_explicit(&b->state, &live, SS_BLOCK_QUEUED,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

static void account_free(struct ss_pool *pool, struct ss_block *b, const void *stream)
{
	if (pool->core->journal)
		ss_journal_free(pool->core->journal, (void *)(uintptr_t)b->addr, b->request,
				stream);
	atomic_fetch_sub_explicit(&pool->used, b->size, memory_order_relaxed);
}

static enum ss_status free_on(struct ss_core *core, void *ptr, struct ss_timeline *tl,
			      bool classic_too)
{
	struct ss_block *b;
	struct ss_pool *pool;
	struct ss_queue *q;
	enum ss_status s = find_live(core, ptr, &b);
	bool room;

	if (s != SS_OK)
		return s;
	if (b->classic && !classic_too)
		return SS_ERR_CLASSIC;
	pool = b->seg->pool;
	q = queue_get(pool, tl);
	if (!q)
		return SS_ERR_FAILED;
	if (!claim(b))
		return SS_ERR_INVALID;
	if (!atomic_load_explicit(&tl->marked, memory_order_relaxed))
		atomic_store_explicit(&tl->marked, true, memory_order_relaxed);
	b->slot = tl->slot;
	account_free(pool, b, tl->native);
	if (__builtin_expect(atomic_load_explicit(&core->dev[tl->dev].pressed,
						  memory_order_relaxed) &&
			     atomic_load_explicit(&pool->internal, memory_order_relaxed), 0)) {
		/* A position that no other free can have, so that the fence
		 * stands for exactly this one. */
		b->n = atomic_fetch_add(&tl->now, 2) + 1;
		ss_uncover(tl);
		ss_fence_request(core, tl, b->n, SS_FENCE_EXACT);
	} else {
		b->n = atomic_load_explicit(&tl->now, memory_order_acquire);
		ss_uncover(tl); /* after the position: a record in between covers it */
	}
	if (tl->kind == SS_TL_THREAD)
		ss_fence_serve(core, tl, SS_FENCE_LATE);
	room = ss_queue_push(q, b);
	if (__builtin_expect(!room, 0)) {
		pthread_mutex_lock(&pool->lock);
		ss_flush(pool, q);
		pthread_mutex_unlock(&pool->lock);
	}
	if (__builtin_expect(atomic_load_explicit(&pool->dying, memory_order_acquire), 0))
		ss_pool_reap(pool);
	return SS_OK;
}

enum ss_status ss_free_async(struct ss_core *core, void *ptr, struct ss_timeline *tl)
{
	return free_on(core, ptr, tl, false);
}

enum ss_status ss_free_only(struct ss_core *core, void *ptr, struct ss_timeline *only)
{
	return free_on(core, ptr, only, true);
}

enum ss_status ss_free_classic(struct ss_core *core, void *ptr, struct ss_token *waited)
{
	struct ss_block *b;
	struct ss_pool *pool;
	enum ss_status s = find_live(core, ptr, &b);
	bool clean = waited != NULL || SS_MUTANT_IS(29);
	bool wide = waited && ss_token_device_wide(waited);

	if (waited)
		ss_sync_end(core, waited, true, false);
	if (s != SS_OK)
		return s;
	pool = b->seg->pool;
	/* Waiting for every stream that we know says nothing about destroyed ones,
	 * nor about those that nobody saw created. */
	if (waited && !wide && (ss_distrusted(core) || ss_zombies(core, pool->dev)))
		clean = false;
	if (!claim(b))
		return SS_ERR_INVALID;
	account_free(pool, b, NULL);
	if (clean && pool->done && b->classic) {
		b->slot = SS_SLOT_CLEAN;
		b->n = 1;
		if (!ss_queue_push(pool->done, b)) {
			pthread_mutex_lock(&pool->lock);
			ss_flush(pool, pool->done);
			pthread_mutex_unlock(&pool->lock);
		}
	} else {
		pthread_mutex_lock(&pool->lock);
		pool->st.frees++;
		b->slot = SS_SLOT_CLEAN;
		b->n = 1;
		/* Out of host memory for the marks: the bytes are lost to reuse,
		 * never handed out too early. */
		if (clean || ss_epoch_mark(pool, b))
			ss_place(pool, b);
		pthread_mutex_unlock(&pool->lock);
	}
	if (!waited)
		ss_fence_serve(core, ss_timeline_null(core, pool->dev), SS_FENCE_JOINING);
	if (atomic_load_explicit(&pool->dying, memory_order_acquire))
		ss_pool_reap(pool);
	return SS_OK;
}
