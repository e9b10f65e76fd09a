/* SPDX-License-Identifier: MIT */
/*
 * From a pointer to its block. Every caller that needs the owner of a pointer asks here, and hands
 * the answer on.
 *
 * A live block is found without a lock: a live block does not change, because only its caller may
 * free it, and the mark of its start does not change either. The result either is that block or
 * does not hold the address.
 *
 * Locks: the pool's, for blocks that are not live.
 */
#include "core/pool/pool_state.h"

struct ss_block *ss_live_at(const struct ss_core *core, struct ss_segment *seg, uint64_t addr,
			    uint64_t *start)
{
	struct ss_block *b = ss_block_at(core, seg, addr);

	if (!b)
		b = ss_block_last_start(core, seg, addr);
	if (!ss_is_live(b) || __atomic_load_n(&b->seg, __ATOMIC_RELAXED) != seg)
		return NULL;
	*start = __atomic_load_n(&b->addr, __ATOMIC_RELAXED);
	return addr - *start < __atomic_load_n(&b->size, __ATOMIC_RELAXED) ? b : NULL;
}

struct ss_segment *ss_segment_lock(const struct ss_core *core, uint64_t addr)
{
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_pool *pool = seg ? seg->pool : NULL;

	if (!pool)
		return NULL;
	ss_pool_lock(pool);
	if (ss_map_segment(core, addr) == seg && seg->pool == pool)
		return seg;
	ss_pool_unlock(pool);
	return NULL;
}

enum ss_status ss_find(struct ss_core *core, const void *ptr, struct ss_found *out)
{
	uint64_t addr = (uintptr_t)ptr;

	out->segment = ss_map_segment(core, addr);
	if (!out->segment)
		return SS_ERR_FOREIGN;
	out->pool = out->segment->pool;
	out->device = out->pool->mem.dev;
	out->block = ss_live_at(core, out->segment, addr, &out->start);
	if (!out->block)
		return SS_ERR_INVALID;
	out->classic = out->block->classic;
	return SS_OK;
}

bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *out)
{
	uint64_t addr = (uintptr_t)ptr, start;
	struct ss_segment *seg = ss_segment_lock(core, addr);
	struct ss_block *b;

	if (!seg)
		return false;
	*out = (struct ss_block_info){
		.segment = seg->native,
		.segment_size = seg->native_size,
		.device = seg->pool->mem.dev,
		.backing = seg->backing,
		.pool = seg->pool,
	};
	b = ss_live_at(core, seg, addr, &start);
	if (b) {
		out->base = (void *)(uintptr_t)start;
		out->size = b->request;
		out->front = b->front;
		out->room = b->size;
		out->guarded = seg->chunk != NULL;
		out->id = b->id;
		out->classic = b->classic;
		out->live = true;
	}
	ss_pool_unlock(seg->pool);
	return true;
}

bool ss_bytes_left(struct ss_core *core, const void *ptr, uint64_t *left)
{
	struct ss_found f;

	switch (ss_find(core, ptr, &f)) {
	case SS_OK:
		/* The runtime's own pools, too, hand out more bytes than a caller asks for. */
		*left = ss_minus(__atomic_load_n(f.classic ? &f.block->request : &f.block->size,
						 __ATOMIC_RELAXED),
				 (uintptr_t)ptr - f.start);
		return true;
	case SS_ERR_INVALID:
		/* In hipMalloc memory no byte at this address is accessible. For a pool's memory
		 * the caller decides, because the runtime's pools, too, keep freed memory
		 * accessible for a while. */
		*left = 0;
		return f.pool->classic;
	default: return false;
	}
}

void ss_timeline_visits(struct ss_core *core, struct ss_timeline *tl, const void *ptr)
{
	struct ss_found f;

	if (!ptr)
		ss_order_visit(core, tl, UINT64_MAX);
	else if (ss_find(core, ptr, &f) == SS_OK)
		ss_order_visit(core, tl, 1ull << f.device);
}

bool ss_owns_range(struct ss_core *core, const void *ptr, size_t size)
{
	uint64_t addr = (uintptr_t)ptr, end = addr + (size ? size - 1 : 0);

	if (end < addr)
		end = UINT64_MAX;
	for (;;) {
		if (ss_map_segment(core, addr))
			return true;
		if (end - addr < SS_FRAME - addr % SS_FRAME)
			return false;
		addr += SS_FRAME - addr % SS_FRAME;
	}
}
