/* SPDX-License-Identifier: MIT */
/*
 * Allocate and free.
 *
 * A hit is a pop from the bin of the stream's queue. Everything else goes
 * through ss_slow().
 *
 * Locks: queue->lock on a hit.
 */
#include <inttypes.h>

#include "core/grow.h"
#include "core/hit.h"

static uint64_t align_of(const struct ss_pool *pool, uint64_t size)
{
	uint64_t large = pool->core->opt.align_large;

	if (large && size >= large)
		return large;
	return pool->classic && size >= SS_CLASSIC_LARGE ? SS_CLASSIC_ALIGN : SS_GRAIN;
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

/* ---- allocate ----------------------------------------------------------- */

static void hand_out(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b, size_t size,
		     uint64_t id, bool classic, const void *stream)
{
	struct ss_core *core = pool->core;

	b->request = size;
	b->id = id;
	b->bin = (uint8_t)ss_bin(b->size);
	__atomic_store_n(&b->slot, q->tl ? q->tl->slot : SS_SLOT_CLEAN, __ATOMIC_RELAXED);
	b->classic = classic;
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	ss_used_add(pool, q, b->size);
	if (core->journal)
		ss_journal_alloc(core->journal, (void *)(uintptr_t)b->addr, size, stream);
}

static void first_use(struct ss_pool *pool)
{
	struct ss_device_state *d = &pool->core->dev[pool->dev];
	uint64_t bytes;

	/* A pool that the program made may be gone soon, or not be allowed as much. */
	if (atomic_load_explicit(&d->initial_done, memory_order_relaxed) ||
	    !pool->core->opt.initial.set || !(pool->classic || pool->is_default) ||
	    atomic_exchange(&d->initial_done, true))
		return;
	bytes = ss_amount_bytes(&pool->core->opt.initial, d->info.total_bytes);
	/* It is a wish: if the device is too full, growing on demand goes on. */
	if (bytes && ss_grow(pool, NULL, bytes, SS_GRAIN, 0, false) != SS_OK && pool->core->log)
		fprintf(pool->core->log, "somashim: SOMASHIM_INITIAL: device %d has no %" PRIu64
			" bytes to reserve\n", pool->dev, bytes);
}

/* A block that the null stream takes because its next command joins the blocking
 * streams may at once be used on another blocking stream, which waits for the
 * null stream - but for nothing, if no command stands there. The runtime's own
 * hipMallocAsync joins at this point, so we may: one record covers every free
 * before it. False: it cannot be recorded now, the block must stay free. */
static bool null_joins(struct ss_core *core, struct ss_timeline *tl, struct ss_block *b)
{
	if (b->slot != tl->slot || b->n <= atomic_load(&tl->commanded) ||
	    (!atomic_load(&core->dev[tl->dev].joiners) && !ss_distrusted(core)) ||
	    SS_MUTANT_IS(32))
		return true;
	return ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_JOINING);
}

/* It was counted as handed out. */
static void put_back(struct ss_pool *pool, struct ss_block *b)
{
	pthread_mutex_lock(&pool->lock);
	pool->st.allocations--;
	pool->st.reuse_same_stream--;
	ss_place(pool, b);
	pthread_mutex_unlock(&pool->lock);
}

/* More than the program allowed the pool? Threads that ask at the same time may
 * get past it, up to the frame in which it lies. */
static bool over_max(struct ss_pool *pool, uint64_t size)
{
	return ss_pool_used(pool) + size > pool->max_bytes;
}

/* What no step could make room for. */
static enum ss_status hopeless(struct ss_pool *pool, size_t size)
{
	pthread_mutex_lock(&pool->lock);
	pool->st.out_of_memory++;
	pthread_mutex_unlock(&pool->lock);
	ss_oom_report(pool, size, &(struct ss_ladder){0}, false);
	return SS_ERR_NOMEM;
}

enum ss_status ss_alloc_async(struct ss_core *core, struct ss_pool *pool, struct ss_timeline *tl,
			      size_t size, void **out)
{
	uint64_t sz, align, id;
	struct ss_queue *q;
	struct ss_block *b;
	enum ss_status s;

	if (!size || size > SS_MAX_REQUEST)
		return size ? hopeless(pool, size) : SS_ERR_INVALID;
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	align = align_of(pool, sz);
	if (__builtin_expect(pool->max_bytes != 0, 0) && over_max(pool, sz))
		return hopeless(pool, size);
	q = queue_get(pool, tl);
	if (__builtin_expect(!q, 0))
		return SS_ERR_NOMEM;
	b = ss_queue_pop(q, sz, align, &id);
	if (__builtin_expect(!b, 0)) {
		first_use(pool);
		s = ss_slow(pool, q, tl, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	if (__builtin_expect(tl->kind == SS_TL_NULL, 0) && !null_joins(core, tl, b)) {
		/* Rare (a capture forbids it): only completed or new memory will do. */
		put_back(pool, b);
		s = ss_slow(pool, NULL, NULL, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	ss_uncover(tl);
	hand_out(pool, q, b, size, id, false, tl->native);
	*out = (void *)(uintptr_t)b->addr;
	return SS_OK;
}

enum ss_status ss_alloc_current(struct ss_core *core, struct ss_timeline *tl, size_t size,
				void **out)
{
	struct ss_pool *pool = ss_pool_current(core, tl->dev);
	enum ss_status s;

	/* That is never destroyed, and nobody need count who uses it. */
	if (__builtin_expect(pool == ss_pool_default(core, tl->dev), 1))
		return pool ? ss_alloc_async(core, pool, tl, size, out) : SS_ERR_NO_DEVICE;
	pool = ss_pool_current_enter(core, tl->dev);
	if (!pool)
		return SS_ERR_NO_DEVICE;
	s = ss_alloc_async(core, pool, tl, size, out);
	ss_pool_leave(pool);
	return s;
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
	if (!size || size > SS_MAX_REQUEST)
		return size ? hopeless(pool, size) : SS_ERR_INVALID;
	sz = (size + SS_GRAIN - 1) & ~(SS_GRAIN - 1);
	align = align_of(pool, sz);
	if (__builtin_expect(core->opt.ipc_whole && size >= core->opt.ipc_whole, 0)) {
		first_use(pool);
		b = ss_ipc_whole(pool, size, align, &id);
	}
	if (!b && only) {
		q = queue_get(pool, only);
		b = q ? ss_queue_pop(q, sz, align, &id) : NULL;
		ss_uncover(only);
	}
	if (!b)
		b = ss_queue_pop(pool->done, sz, align, &id);
	if (!b) {
		first_use(pool);
		s = ss_slow(pool, q, q ? only : NULL, sz, align, &b, &id);
		if (s != SS_OK)
			return s;
	}
	hand_out(pool, q ? q : pool->done, b, size, id, true, NULL);
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

/* The live block of this pointer, and where it starts: interior pointers too, as HIP has
 * it. */
static enum ss_status find_live(struct ss_core *core, const void *ptr, struct ss_block **out,
				uint64_t *start)
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
		if (b && addr - b->addr < b->size)
			addr = b->addr;
		pthread_mutex_unlock(&pool->lock);
	}
	if (!b || atomic_load_explicit(&b->state, memory_order_acquire) != SS_BLOCK_LIVE)
		return SS_ERR_INVALID;
	*out = b;
	*start = addr;
	return SS_OK;
}

/* The queue that handed b out, as b says it. */
static struct ss_queue *home_of(struct ss_pool *pool, uint32_t slot)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);

	return t && slot < t->cap ? atomic_load_explicit(&t->q[slot], memory_order_acquire)
				  : pool->done;
}

/* The block at addr, if it is live. What was found there may have been freed meanwhile, and
 * its descriptor be another live block's, which this free is not about. */
static bool claim(struct ss_pool *pool, struct ss_block *b, uint64_t addr)
{
	bool mine = false, moved;

	do {
		uint32_t slot = __atomic_load_n(&b->slot, __ATOMIC_RELAXED);
		struct ss_queue *q = home_of(pool, slot);

		if (!q)
			return false;
		ss_bias_lock(&q->lock);
		mine = ss_claim_locked(b, slot, addr);
		/* Freed and handed out again meanwhile, elsewhere? */
		moved = b->slot != slot;
		ss_bias_unlock(&q->lock);
	} while (!mine && moved);
	return mine;
}

static void account_free(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b,
			 const void *stream)
{
	if (pool->core->journal)
		ss_journal_free(pool->core->journal, (void *)(uintptr_t)b->addr, b->request,
				stream);
	ss_used_add(pool, q, -b->size);
}

/* So many are plenty for whoever runs out of memory. Each holds an event, and a stream
 * that only ever takes back what it freed never asks how far it is. */
#define MOST_EXACT 32
#define FREES_PER_LOOK 16 /* a call of the runtime, too */

/* Is there room for a fence of this very free? One without is covered by a later fence. */
static bool fence_room(struct ss_core *core, struct ss_timeline *tl)
{
	unsigned crowded;

	if (atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT)
		return true;
	/* (Two threads that count as one look once less.) */
	crowded = atomic_load_explicit(&tl->crowded, memory_order_relaxed);
	atomic_store_explicit(&tl->crowded, crowded + 1, memory_order_relaxed);
	if (crowded % FREES_PER_LOOK)
		return false;
	ss_fence_poll(core, tl, -1);
	return atomic_load_explicit(&tl->pending, memory_order_relaxed) < MOST_EXACT;
}

static enum ss_status free_on(struct ss_core *core, void *ptr, struct ss_timeline *tl,
			      bool classic_too)
{
	struct ss_block *b;
	struct ss_pool *pool;
	struct ss_queue *q;
	uint64_t addr;
	enum ss_status s = find_live(core, ptr, &b, &addr);
	bool room;

	if (s != SS_OK)
		return s;
	if (b->classic && !classic_too)
		return SS_ERR_CLASSIC;
	pool = b->seg->pool;
	q = queue_get(pool, tl);
	if (!q)
		return SS_ERR_NOMEM;
	if (!claim(pool, b, addr))
		return SS_ERR_INVALID;
	if (b->slot != tl->slot)
		atomic_fetch_add_explicit(&pool->crossed, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&tl->marked, memory_order_relaxed))
		atomic_store_explicit(&tl->marked, true, memory_order_relaxed);
	__atomic_store_n(&b->slot, tl->slot, __ATOMIC_RELAXED);
	account_free(pool, q, b, tl->native);
	if (__builtin_expect(atomic_load_explicit(&core->dev[tl->dev].pressed,
						  memory_order_relaxed), 0) &&
	    fence_room(core, tl)) {
		/* A position that no other free can have, so that the fence stands for
		 * exactly this one: streams may wait for it where the pool's policy
		 * allows that, and the host before it reports out of memory. */
		b->n = atomic_fetch_add(&tl->now, 2) + 1;
		ss_uncover(tl);
		ss_fence_request(core, tl, b->n, SS_FENCE_EXACT);
	} else {
		b->n = atomic_load_explicit(&tl->now, memory_order_acquire);
		ss_uncover(tl); /* after the position: a record in between covers it */
	}
	if (tl->kind == SS_TL_THREAD)
		ss_fence_serve(core, tl, SS_FENCE_LATE);
	room = true;
	if (__builtin_expect(b->exported, 0))
		ss_ipc_keep(pool, b);
	else
		room = ss_queue_push(q, b);
	if (__builtin_expect(!room, 0))
		ss_queue_empty(q);
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
	uint64_t addr;
	enum ss_status s = find_live(core, ptr, &b, &addr);
	bool clean = waited != NULL || SS_MUTANT_IS(29);
	bool wide = waited && ss_token_device_wide(waited);
	struct ss_timeline *null;
	uint64_t now;

	if (waited)
		ss_sync_end(core, waited, true, false);
	if (s != SS_OK)
		return s;
	pool = b->seg->pool;
	/* Waiting for every stream that we know says nothing about destroyed ones,
	 * nor about those that nobody saw created. */
	if (waited && !wide && (ss_distrusted(core) || ss_zombies(core, pool->dev)))
		clean = false;
	/* Nor about those of other devices that may work with memory of this one. */
	if (atomic_load(&core->visited) >> pool->dev & 1 || ss_pool_access(pool) & ~(1ull << pool->dev))
		clean = false;
	if (!claim(pool, b, addr))
		return SS_ERR_INVALID;
	account_free(pool, pool->done, b, NULL);
	now = core->drv.now_ms(core->drv.ctx);
	if (__builtin_expect(b->exported, 0)) {
		/* Nothing left of its segment? Then it goes now: the real hipFree
		 * waits for the device, as this call would have without us. */
		__atomic_store_n(&b->slot, SS_SLOT_CLEAN, __ATOMIC_RELAXED);
		ss_pool_enter(pool); /* not gone: b is in no heap yet */
		ss_ipc_keep(pool, b);
		ss_ipc_release(pool, false);
		ss_pool_leave(pool);
	} else if (clean && pool->done && b->classic) {
		__atomic_store_n(&b->slot, SS_SLOT_CLEAN, __ATOMIC_RELAXED);
		b->n = now ? now : 1;
		if (!ss_queue_push(pool->done, b))
			ss_queue_empty(pool->done);
	} else {
		pthread_mutex_lock(&pool->lock);
		pool->st.frees++;
		__atomic_store_n(&b->slot, SS_SLOT_CLEAN, __ATOMIC_RELAXED);
		b->n = now ? now : 1;
		/* Out of host memory for the marks: they are made later (ss_settle), when
		 * they stand for no less; until then nobody gets it. */
		if (clean || ss_epoch_mark(pool, b)) {
			ss_place(pool, b);
		} else {
			b->right = pool->unmarked;
			pool->unmarked = b;
		}
		pthread_mutex_unlock(&pool->lock);
	}
	if (!waited && (null = ss_timeline_null(core, pool->dev)))
		ss_fence_serve(core, null, SS_FENCE_JOINING);
	if (atomic_load_explicit(&pool->dying, memory_order_acquire))
		ss_pool_reap(pool);
	return SS_OK;
}
