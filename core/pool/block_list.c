/* SPDX-License-Identifier: MIT */
/*
 * A copy of all live blocks, for the dump of a running process.
 *
 * While the shelves of a pool are frozen, the hot path neither hands out nor frees a block of the
 * pool. A thread may still split or merge free blocks that it has taken out of all structures. The
 * walk may therefore find no block at an address; then it goes on grain by grain.
 *
 * Locks: one pool's at a time, with its shelves frozen.
 */
#include <stdlib.h>

#include "core/pool/pool_state.h"

struct copy {
	struct ss_block_entry *block;
	size_t count, room;
};

static void copy_block(struct copy *c, struct ss_pool *pool, const struct ss_block *b)
{
	const struct ss_shelf *q = ss_shelf_of_slot(&pool->shelves, b->slot);

	if (c->count < c->room)
		c->block[c->count] = (struct ss_block_entry){
			.address = b->addr,
			.size = b->request,
			.rounded = b->size,
			.id = b->id,
			.stream = q && !b->classic ? ss_timeline_native(q->tl) : NULL,
			.device = pool->mem.dev,
			.classic = b->classic,
			.pool = ss_pool_number(pool),
			.default_pool = pool->is_default,
		};
	c->count++;
}

/* Sizes of blocks that other threads hold may change while they are read. */
__attribute__((no_sanitize("thread"))) static uint64_t size_of(const struct ss_block *b)
{
	uint64_t size = *(const volatile uint64_t *)&b->size;

	return size && size % SS_GRAIN == 0 ? size : SS_GRAIN;
}

static void copy_segment(struct copy *c, struct ss_pool *pool, const struct ss_segment *seg)
{
	uint64_t end = seg->base + seg->size, at = seg->base, size;

	while (at < end) {
		const struct ss_block *b = ss_block_at(ss_core_of(pool), seg, at);

		if (ss_is_live(b))
			copy_block(c, pool, b);
		size = b ? size_of(b) : SS_GRAIN;
		at = size < end - at ? at + size : end;
	}
}

/* Copies the live blocks of the pool. Blocks for which there is no room are only counted. */
static void copy_pool(struct copy *c, struct ss_pool *pool)
{
	if (!ss_reserved(pool))
		return;
	ss_pool_lock(pool);
	ss_bias_visit(&pool->shelves.done->lock);
	ss_shelves_freeze(&pool->shelves, true);
	for (const struct ss_segment *seg = pool->mem.segments; seg; seg = seg->next)
		copy_segment(c, pool, seg);
	ss_shelves_freeze(&pool->shelves, false);
	ss_bias_unlock(&pool->shelves.done->lock);
	ss_pool_unlock(pool);
}

/* No memory is allocated with locks held, so a first walk counts the blocks. Other threads may
 * have allocated more blocks by then, so the walk is repeated until there is enough room. */
size_t ss_blocks_list(struct ss_core *core, struct ss_block_entry **out)
{
	struct copy c = {0};

	for (;;) {
		c.count = 0;
		SS_POOLS_EACH(pool, core, -1)
			copy_pool(&c, pool);
		if (c.count <= c.room)
			break;
		free(c.block);
		c.room = c.count + c.count / 4 + 64;
		c.block = calloc(c.room, sizeof(*c.block));
		if (!c.block)
			return SIZE_MAX;
	}
	*out = c.block;
	return c.count;
}
