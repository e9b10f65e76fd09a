/* SPDX-License-Identifier: MIT */
/*
 * The front: bytes before a block that no caller gets. The front is allocated and freed with its
 * block. All callers see the block start after the front. The checker watches these bytes. In a
 * guarded segment they fill the space before the block, which ends with the segment.
 *
 * Locks: the pool's.
 */
#include "core/pool/request.h"
#include "core/range/divide.h"

struct ss_block *ss_front_split(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_block *front = r->block, *b;

	ss_pool_lock(pool);
	b = ss_block_split(ss_core_of(pool), &pool->mem.spares, front, r->front);
	if (b) {
		b->front = r->front;
		ss_set_state(front, SS_BLOCK_FRONT);
	}
	ss_pool_unlock(pool);
	return b ? b : front;
}

struct ss_block *ss_front_join(struct ss_pool *pool, struct ss_block *b)
{
	struct ss_block *front = ss_block_prev(b);

	ss_pool_lock(pool);
	b->front = 0;
	ss_set_word(front, atomic_load_explicit(&b->word, memory_order_relaxed));
	ss_block_merge(ss_core_of(pool), &pool->mem.spares, front, b);
	ss_pool_unlock(pool);
	return front;
}

enum ss_status ss_guarded_block(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_segment *seg;
	struct ss_block *b;
	enum ss_status s;

	s = ss_memory_add_guarded(&pool->mem, r->size, &seg);
	if (s != SS_OK)
		return s;
	ss_pool_lock(pool);
	b = ss_segment_first(ss_core_of(pool), seg);
	if (!b)
		__builtin_unreachable(); /* the compiler cannot see this */
	ss_set_state(b, SS_BLOCK_QUEUED);
	r->front = b->size - r->size;
	r->missed = true;
	r->grown++;
	ss_request_serve(r, b, NULL);
	/* The segment is released as soon as it is empty, as if the block had been exported
	 * (ipc.c). */
	seg->serial = ss_serial_new(ss_core_of(pool));
	ss_pool_unlock(pool);
	return SS_OK;
}
