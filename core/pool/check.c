/* SPDX-License-Identifier: MIT */
/*
 * Checks that tests make on the structures of the core: every byte of every segment is in one
 * block, and every free block in one place.
 *
 * Locks: one pool's at a time, with its shelves frozen. No other thread may be in the core.
 */
#include "core/pool/reclaim.h"

struct checker {
	const char *broken;
	struct ss_pool *pool;
	uint64_t indexed; /* bytes in indexes */
	uint64_t live, rest;
};

/* `home`: the slot of the stream that owns the blocks; 0: any. */
static void check_index(struct checker *c, const struct ss_free_index *x, uint32_t slot,
			uint32_t home)
{
	uint64_t bytes = 0;

	SS_INDEX_EACH(b, x) {
		bytes += b->size;
		if (!ss_is_free_on(b, slot))
			c->broken =
				"a range in an index is not free, or has another timeline's mark";
		if (home && ss_home(b) != home)
			c->broken = "a range is on a shelf of another stream";
	}
	c->indexed += bytes;
	if (bytes != x->bytes)
		c->broken = "the bytes of an index do not add up";
}

/* The blocks of a segment tile it. */
static void check_segment(struct checker *c, struct ss_segment *seg)
{
	struct ss_core *core = ss_core_of(c->pool);
	struct ss_block *prev = NULL;
	uint64_t at = seg->base;
	bool border = false; /* between prev and b */

	for (struct ss_block *b = ss_segment_first(core, seg); b; prev = b, b = ss_block_next(b)) {
		unsigned state = atomic_load(&b->state);

		if (b->addr != at || !b->size || b->size % SS_GRAIN || b->seg != seg)
			c->broken = "blocks of a segment do not tile it";
		if (ss_block_prev(b) != (border ? NULL : prev) ||
		    (prev && ss_block_at(core, seg, b->addr) != b))
			c->broken = "neighbours disagree";
		border = ss_right_of(b) != ss_block_next(b);
		if (border && !ss_home(b))
			c->broken = "a range that is in no shelf has a border";
		if (ss_block_last_start(core, seg, b->addr + b->size - 1) != b)
			c->broken = "the address map does not find a block's last byte";
		if (state == SS_BLOCK_UNUSED)
			c->broken = "an unused descriptor is in a segment";
		at = b->addr + b->size;
		if (state != SS_BLOCK_GAP && state != SS_BLOCK_FRONT)
			*(state == SS_BLOCK_LIVE ? &c->live : &c->rest) += b->size;
		if (state == SS_BLOCK_FRONT &&
		    !(ss_is_live(ss_block_next(b)) && ss_block_next(b)->front == b->size))
			c->broken = "a front is not its block's";
	}
	if (at != seg->base + seg->size)
		c->broken = "blocks do not fill their segment";
}

static void check_pool(struct checker *c, struct ss_pool *pool)
{
	uint64_t queued = 0;

	c->pool = pool;
	c->indexed = c->live = c->rest = 0;
	ss_pool_lock(pool);
	ss_shelves_freeze(&pool->shelves, true);
	for (struct ss_segment *seg = pool->mem.segments; seg; seg = seg->next)
		check_segment(c, seg);
	check_index(c, &pool->mem.completed, SS_SLOT_COMPLETED, 0);
	SS_SHELVES_EACH(q, &pool->shelves)
		check_index(c, &q->free, q->slot, q->slot + 1);
	for (const struct ss_block *b = pool->all.oldest; b; b = b->right)
		queued += b->size;
	if (c->live != ss_used(&pool->shelves))
		c->broken = "used bytes are not the sum of live blocks";
	if (queued != atomic_load(&pool->all.bytes))
		c->broken = "the bytes with a mark of ALL do not add up";
	if (c->rest != queued + c->indexed)
		c->broken = "free bytes are in no index or list, or in two";
	if (ss_reserved(pool) < c->live + c->rest)
		c->broken = "reserved bytes are fewer than what the segments hold";
	ss_shelves_freeze(&pool->shelves, false);
	ss_pool_unlock(pool);
}

const char *ss_check(struct ss_core *core)
{
	struct checker c = {0};

	SS_POOLS_EACH(pool, core, -1)
		check_pool(&c, pool);
	return c.broken;
}
