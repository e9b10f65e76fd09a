/* SPDX-License-Identifier: MIT */
/*
 * Blocks that other processes may map.
 *
 * Nobody tells when an importer lets go, so the bytes of an exported block are
 * never handed out again: a free turns them into a hole. A segment with nothing
 * but holes and idle memory goes back whole; the runtime keeps it for the peer. Where
 * it is seen to keep it for good (hip#3886), the rest of a segment is used up first.
 *
 * Locks: pool->lock, dropped for the driver.
 */
#include "core/pool/pool_state.h"

/* The live block at `addr`, if handles can be made for it. Pool lock held. */
static struct ss_block *shareable(struct ss_core *core, struct ss_pool *pool,
				  struct ss_segment *seg, uint64_t addr)
{
	struct ss_block *b = NULL;

	if (ss_map_segment(core, addr) == seg && seg->pool == pool)
		b = ss_block_last_start(core, seg, addr);
	/* Only what HIP itself allocated has a handle: raw HSA memory is refused
	 * there, and a VMM address in it is a kernel BUG (clr#265). */
	return b && atomic_load(&b->state) == SS_BLOCK_LIVE && seg->backing == SS_BACKING_HIP ?
	       b : NULL;
}

enum ss_status ss_ipc_find(struct ss_core *core, const void *ptr, struct ss_ipc_place *out)
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b;
	struct ss_pool *pool;

	if (!seg)
		return SS_ERR_FOREIGN;
	pool = seg->pool;
	ss_pool_lock(pool);
	b = shareable(core, pool, seg, addr);
	if (b) {
		if (!seg->serial)
			seg->serial = atomic_fetch_add(&core->pools->next_export, 1) + 1;
		out->segment = seg->native;
		out->segment_size = seg->native_size;
		out->serial = seg->serial;
		out->offset = b->addr - (uintptr_t)seg->native;
		out->size = b->request;
		out->device = pool->mem.dev;
	}
	ss_pool_unlock(pool);
	return b ? SS_OK : SS_ERR_INVALID;
}

void ss_ipc_export(struct ss_core *core, const struct ss_ipc_place *place)
{
	uint64_t addr = (uintptr_t)place->segment + place->offset;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_pool *pool = seg ? seg->pool : NULL;
	struct ss_block *b;

	if (!pool)
		return;
	ss_pool_lock(pool);
	b = shareable(core, pool, seg, addr);
	if (b)
		b->exported = true;
	ss_pool_unlock(pool);
}

bool ss_ipc_exported(struct ss_core *core, const void *ptr, uint64_t serial)
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_pool *pool = seg ? seg->pool : NULL;
	struct ss_block *b;
	bool is;

	if (!pool)
		return false;
	ss_pool_lock(pool);
	b = shareable(core, pool, seg, addr);
	is = b && b->exported && seg->serial == serial;
	ss_pool_unlock(pool);
	return is;
}

void ss_ipc_keep(struct ss_pool *pool, struct ss_block *b)
{
	ss_pool_lock(pool);
	pool->st.frees++;
	b->request = 0;
	atomic_fetch_add(&pool->kept, b->size);
	atomic_store_explicit(&b->state, SS_BLOCK_GAP, memory_order_release);
	ss_pool_unlock(pool);
}

/* Bytes of it that were exported, if nothing is live, nor on its way into a heap, nor in
 * use by work that is still under way; else 0. Pool lock held. */
static uint64_t is_over(struct ss_core *core, const struct ss_segment *seg)
{
	uint64_t holes = 0;

	for (const struct ss_block *b = seg->first; b; b = b->next) {
		unsigned state = atomic_load(&b->state);

		if (state == SS_BLOCK_GAP)
			holes += b->size;
		else if (state != SS_BLOCK_FREE)
			return 0;
		if (b->slot == SS_SLOT_CLEAN)
			continue;
		if (b->slot == SS_SLOT_EPOCH ||
		    b->n > atomic_load(&ss_slot(core, b->slot)->completed))
			return 0;
	}
	return holes;
}

uint64_t ss_ipc_pinned(struct ss_pool *pool)
{
	uint64_t pinned = 0;

	if (!atomic_load(&pool->kept))
		return 0;
	ss_pool_lock(pool);
	for (const struct ss_segment *seg = pool->segments; seg; seg = seg->next) {
		uint64_t holes = 0;
		bool live = false;

		for (const struct ss_block *b = seg->serial ? seg->first : NULL; b; b = b->next) {
			holes += atomic_load(&b->state) == SS_BLOCK_GAP ? b->size : 0;
			live |= atomic_load(&b->state) == SS_BLOCK_LIVE;
		}
		pinned += live ? holes : 0;
	}
	ss_pool_unlock(pool);
	return pinned;
}

/* One that is to go back. The first block of a segment that the runtime keeps costs it all of
 * the segment: there, much of it must have been used up. Pool lock held. */
static struct ss_segment *find_over(struct ss_pool *pool, bool kept)
{
	struct ss_segment *seg;

	for (seg = pool->segments; seg; seg = seg->next) {
		uint64_t holes = seg->serial && !seg->opening ? is_over(pool->core, seg) : 0;

		if (holes && (!kept || holes >= seg->size / 2))
			break;
	}
	return seg;
}

/* What the device refused to take back stays, but nobody gets it. */
static void put_back(struct ss_pool *pool, void *native, uint64_t size, uint64_t serial)
{
	uint64_t base = ss_round((uintptr_t)native, SS_FRAME);
	uint64_t end = ((uintptr_t)native + size) & ~(SS_FRAME - 1);
	struct ss_segment *seg = ss_segment_new(pool->core, pool, base, end - base);

	if (!seg)
		return;
	seg->backing = pool->backing;
	seg->native = native;
	seg->native_size = size;
	seg->serial = serial;
	seg->first->exported = true;
	ss_segment_link(pool, seg);
	atomic_fetch_add(&pool->kept, seg->size);
	ss_account_reserved(pool, size);
}

uint64_t ss_ipc_release(struct ss_pool *pool, bool all)
{
	struct ss_core *core = pool->core;
	struct ss_segment *seg;
	uint64_t given = 0;

	if (!atomic_load(&pool->kept))
		return 0;
	ss_giving(pool);
	ss_pool_lock(pool);
	ss_flush_all(pool);
	ss_settle(pool);
	while ((seg = find_over(pool, !all && ss_keeps_exports(pool)))) {
		uint64_t size = seg->native_size, serial = seg->serial;
		void *native = seg->native;
		struct ss_witness w;
		enum ss_status s;

		for (struct ss_block *b = seg->first; b; b = b->next) {
			if (atomic_load(&b->state) == SS_BLOCK_GAP)
				atomic_fetch_sub(&pool->kept, b->size);
			else
				ss_unplace(pool, b);
		}
		ss_segment_unlink(pool, seg);
		ss_segment_forget(core, seg);
		atomic_fetch_sub(&pool->reserved, size);
		atomic_fetch_sub(&core->dev[pool->mem.dev].reserved, size);
		ss_pool_unlock(pool);
		ss_keeps_begin(pool, &w);
		w.reserved += size;
		s = SS_DRIVE(core, core->drv.segment_free(core->drv.ctx, pool->mem.dev, pool->backing,
							  native, size));
		if (s == SS_OK) {
			ss_cap_give(pool, size);
			ss_keeps_exports_end(pool, &w, size);
		}
		ss_pool_lock(pool);
		if (s != SS_OK) {
			put_back(pool, native, size, serial);
			break;
		}
		given += size;
		pool->st.released_bytes += size;
	}
	ss_pool_unlock(pool);
	ss_gave(pool, given);
	return given;
}

/* ---- segments of one block (SOMASHIM_IPC_WHOLE) -------------------------- */

/* An idle segment of just this size. Pool lock held. */
static struct ss_block *idle_segment(struct ss_pool *pool, uint64_t size)
{
	ss_flush_all(pool);
	ss_settle(pool);
	for (struct ss_segment *seg = pool->segments; seg; seg = seg->next) {
		struct ss_block *b = seg->first;

		if (seg->native_size == size && b->size == size && b->slot == SS_SLOT_CLEAN &&
		    atomic_load(&b->state) == SS_BLOCK_FREE)
			return b;
	}
	return NULL;
}

static struct ss_block *take_idle(struct ss_pool *pool, uint64_t size, uint64_t *id)
{
	struct ss_block *b;

	ss_pool_lock(pool);
	b = idle_segment(pool, size);
	if (b) {
		ss_unplace(pool, b);
		atomic_store(&b->state, SS_BLOCK_QUEUED);
		*id = pool->id_base | ++pool->ids;
	}
	ss_pool_unlock(pool);
	return b;
}

/* Where hipFree does not wait a host that is ahead of the device would take a segment for
 * every free that is under way: hipMalloc waits instead, from eight on, as in patience.c. */
static bool much_under_way(struct ss_pool *pool, uint64_t size)
{
	uint64_t used = ss_pool_used(pool), reserved = atomic_load(&pool->reserved);
	uint64_t most = 7 * size > ss_pool_used_high(pool) ? 7 * size : ss_pool_used_high(pool);

	return reserved > used && reserved - used >= most;
}

/* What does not come this way is asked for like any other block, and gets what steps there
 * are when memory is short. */
struct ss_block *ss_ipc_whole(struct ss_pool *pool, uint64_t request, uint64_t align, uint64_t *id)
{
	uint64_t size = ss_round(request, SS_FRAME);
	struct ss_block *b;

	/* A segment begins where the runtime wants. */
	if (pool->backing != SS_BACKING_HIP || align > SS_FRAME)
		return NULL;
	/* Somebody else may take what was added for us. */
	for (int tries = 0; tries < 4; tries++) {
		b = take_idle(pool, size, id);
		if (!b && much_under_way(pool, size) && ss_idle_at_last(pool))
			b = take_idle(pool, size, id);
		if (b)
			return b;
		if (ss_slab_whole(pool, size) != SS_OK)
			return NULL;
	}
	return NULL;
}
