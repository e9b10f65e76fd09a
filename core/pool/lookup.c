/* SPDX-License-Identifier: MIT */
/*
 * From a pointer to its block, for queries and for calls that check a range.
 *
 * A live block is found without a lock: it stays what it is, for it is the caller's, and so does the
 * mark of its start. What is found is either that block or does not hold the address.
 *
 * Locks: the pool's, for what is not live.
 */
#include "core/pool/pool_state.h"

/* The live block that begins last before addr, or at it; NULL: none. */
static struct ss_block *live_before(struct ss_core *core, struct ss_segment *seg, uint64_t addr)
{
	struct ss_block *b = seg ? ss_block_last_start(core, seg, addr) : NULL;

	return ss_is_live(b) && __atomic_load_n(&b->seg, __ATOMIC_RELAXED) == seg ? b : NULL;
}

static uint64_t size_of(const struct ss_block *b)
{
	return __atomic_load_n(&b->size, __ATOMIC_RELAXED);
}

bool ss_lookup(struct ss_core *core, const void *ptr, struct ss_block_info *out)
{
	uint64_t addr = (uintptr_t)ptr;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b = NULL;
	struct ss_pool *pool;

	if (!seg)
		return false;
	pool = seg->pool;
	ss_pool_lock(pool);
	if (ss_map_segment(core, addr) == seg && seg->pool == pool) {
		*out = (struct ss_block_info){
			.segment = seg->native, .segment_size = seg->native_size,
			.device = pool->mem.dev, .backing = seg->backing, .pool = pool,
		};
		b = live_before(core, seg, addr);
		if (b && addr - b->addr >= size_of(b))
			b = NULL;
	} else {
		seg = NULL;
	}
	if (b) {
		out->base = (void *)(uintptr_t)b->addr;
		out->size = b->request;
		out->id = b->id;
		out->classic = b->classic;
		out->live = true;
	}
	ss_pool_unlock(pool);
	return seg != NULL;
}

/* An address in one of our segments, but in no live block. In hipMalloc memory nothing is accessible there. In a pool's
 * memory the answer is left to the caller, because the runtime's pools keep freed memory accessible for a while, too. */
static bool stray(struct ss_core *core, const void *ptr, uint64_t *left)
{
	struct ss_block_info info;
	uint64_t at;

	if (!ss_lookup(core, ptr, &info) || !info.pool->classic)
		return false;
	at = (uintptr_t)ptr - (uintptr_t)info.base;
	*left = info.live && at < info.size ? info.size - at : 0;
	return true;
}

bool ss_bytes_left(struct ss_core *core, const void *ptr, uint64_t *left)
{
	uint64_t addr = (uintptr_t)ptr, size;
	struct ss_segment *seg = ss_map_segment(core, addr);
	struct ss_block *b = live_before(core, seg, addr);

	if (!seg)
		return false;
	if (!b)
		return stray(core, ptr, left);
	/* The runtime's own pools, too, give out more than they are asked for. */
	size = b->classic ? __atomic_load_n(&b->request, __ATOMIC_RELAXED) : size_of(b);
	if (addr - b->addr > size || ss_map_segment(core, addr) != seg)
		return stray(core, ptr, left);
	*left = size - (addr - b->addr);
	return true;
}

void ss_timeline_visits(struct ss_core *core, struct ss_timeline *tl, const void *ptr)
{
	struct ss_segment *seg = ptr ? ss_map_segment(core, (uintptr_t)ptr) : NULL;
	uint64_t bits = UINT64_MAX;

	if (ptr && !live_before(core, seg, (uintptr_t)ptr))
		return;
	if (ptr)
		bits = 1ull << seg->pool->mem.dev;
	ss_order_visit(core, tl, bits);
}

enum ss_status ss_where(struct ss_core *core, const void *ptr, int *dev)
{
	struct ss_segment *seg = ss_map_segment(core, (uintptr_t)ptr);
	struct ss_block *b = seg ? ss_block_at(core, seg, (uintptr_t)ptr) : NULL;
	struct ss_block_info info;

	if (ss_is_live(b)) {
		*dev = seg->pool->mem.dev;
		return SS_OK;
	}
	if (!seg || !ss_lookup(core, ptr, &info))
		return SS_ERR_FOREIGN;
	*dev = info.device;
	return info.live ? SS_OK : SS_ERR_INVALID;
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
