/* SPDX-License-Identifier: MIT */
/*
 * Ranges that lie side by side, but with different marks: each is in its own heap,
 * since each becomes usable by others at its own time. Where no single range is
 * long enough, an allocation takes what it needs of a run of them, and the rest
 * keeps its marks.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/grow.h"

bool ss_joins(const struct ss_block *b, uint32_t slot)
{
	return b && ss_is_state(b, SS_BLOCK_FREE) &&
	       (b->slot == slot || b->slot == SS_SLOT_CLEAN ||
		(SS_MUTANT_IS(47) && b->slot != SS_SLOT_EPOCH));
}

uint64_t ss_join_before(const struct ss_block *b, uint32_t slot)
{
	uint64_t bytes = 0;

	while ((b = b->prev) && ss_joins(b, slot))
		bytes += b->size;
	return bytes;
}

static uint64_t join_after(const struct ss_block *b, uint32_t slot)
{
	uint64_t bytes = 0;

	while ((b = b->next) && ss_joins(b, slot))
		bytes += b->size;
	return bytes;
}

struct search {
	uint64_t size, align;
	struct ss_block *first;         /* of the shortest run that is long enough */
	uint64_t bytes;
};

/* b: any range that q owns. A run is looked at once, from its first own range. */
static void consider(struct ss_block *b, void *arg)
{
	struct search *s = arg;
	uint32_t slot = b->slot;
	struct ss_block *first = b;
	uint64_t bytes;

	while (ss_joins(first->prev, slot)) {
		first = first->prev;
		if (first->slot == slot)
			return;
	}
	bytes = first->size + join_after(first, slot);
	if (ss_round(first->addr, s->align) + s->size > first->addr + bytes)
		return;
	if (!s->first || bytes < s->bytes || (bytes == s->bytes && first->addr < s->first->addr)) {
		s->first = first;
		s->bytes = bytes;
	}
}

/* Out of its heap, and not free, so that nothing merges with it. */
static void take(struct ss_pool *pool, struct ss_block *b)
{
	ss_unplace(pool, b);
	atomic_store_explicit(&b->state, SS_BLOCK_QUEUED, memory_order_relaxed);
}

/* Cuts what was taken at addr; the part before it is placed, or the part behind.
 * The other part, or NULL: host memory is out and b is placed as it was. */
static struct ss_block *cut(struct ss_pool *pool, struct ss_block *b, uint64_t addr, bool behind)
{
	struct ss_block *rest = ss_block_split(pool->core, b, addr - b->addr);

	if (!rest) {
		ss_place(pool, b);
		return NULL;
	}
	if (SS_MUTANT_IS(46))
		(behind ? rest : b)->slot = SS_SLOT_CLEAN;
	ss_place(pool, behind ? rest : b);
	return behind ? b : rest;
}

/* b and the range behind it, both taken, become one of q's stream. */
static void merge(struct ss_queue *q, struct ss_block *b)
{
	uint32_t slot = q->tl->slot;

	b->n = ss_merged_mark(b, b->next, slot);
	b->slot = slot;
	ss_block_merge(q->pool->core, b);
}

struct ss_block *ss_join(struct ss_pool *pool, struct ss_queue *q, uint64_t size, uint64_t align)
{
	struct search s = {.size = size, .align = align};
	struct ss_block *b;
	uint64_t start, end;

	if (!q || !q->own.count)
		return NULL;
	ss_heap_each(&q->own, consider, &s);
	b = s.first;
	if (!b)
		return NULL;
	/* From the end where q's own lies: what is clean serves everyone. */
	start = b->slot == SS_SLOT_CLEAN ? (b->addr + s.bytes - size) & ~(align - 1) :
					   ss_round(b->addr, align);
	end = start + size;
	while (b->addr + b->size <= start)
		b = b->next;
	take(pool, b);
	if (b->addr < start)
		b = cut(pool, b, start, false);
	if (b && b->addr + b->size > end)
		b = cut(pool, b, end, true);
	while (b && b->addr + b->size < end) {
		struct ss_block *next = b->next;

		take(pool, next);
		if (next->addr + next->size > end && !cut(pool, next, end, true)) {
			ss_place(pool, b);
			return NULL;
		}
		merge(q, b);
	}
	if (b && pool->vmm)
		ss_vmm_touch(pool, b);
	return b;
}
