/* SPDX-License-Identifier: MIT */
/*
 * Completed ranges: free memory whose every access has completed, so that any stream may take it.
 *
 * All functions are called with the memory's lock held.
 */
#include "core/backing/vmm.h"
#include "core/range/divide.h"

void ss_completed_insert(struct ss_memory *m, struct ss_block *b)
{
	struct ss_core *core = m->core;
	struct ss_block *side;

	ss_set_free(b, SS_SLOT_COMPLETED);
	ss_rehome(b, 0);
	side = ss_block_next(b);
	if (ss_is_free_on(side, SS_SLOT_COMPLETED)) {
		ss_completed_remove(m, side);
		b->n = ss_merged_mark(b, side, SS_SLOT_COMPLETED);
		ss_block_merge(core, &m->spares, b, side);
	}
	side = ss_block_prev(b);
	if (ss_is_free_on(side, SS_SLOT_COMPLETED)) {
		ss_completed_remove(m, side);
		side->n = ss_merged_mark(side, b, SS_SLOT_COMPLETED);
		ss_block_merge(core, &m->spares, side, b);
		b = side;
	}
	if (ss_is_whole(b)) {
		b->seg->idle_since = b->n ? b->n : ss_now_ms(core);
		m->idle_bytes += b->size;
	}
	ss_index_insert(&m->completed, b);
}

void ss_completed_remove(struct ss_memory *m, struct ss_block *b)
{
	if (ss_is_whole(b))
		m->idle_bytes -= b->size;
	ss_index_remove(&m->completed, b);
}

struct ss_block *ss_completed_cut(struct ss_memory *m, struct ss_block *b, uint64_t start,
				  uint64_t size)
{
	struct ss_core *core = m->core;
	struct ss_block *head = NULL, *rest = NULL;

	ss_completed_remove(m, b);
	/* QUEUED instead of FREE keeps the parts from merging again with each other. */
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (start > b->addr) {
		head = b;
		b = ss_block_split(core, &m->spares, head, start - head->addr);
	}
	if (b && b->size > size && !(rest = ss_block_split(core, &m->spares, b, size))) {
		ss_completed_insert(m, b);
		b = NULL;
	}
	if (rest)
		ss_completed_insert(m, rest);
	if (head)
		ss_completed_insert(m, head);
	if (b)
		ss_memory_touch(m, b);
	return b;
}

void ss_memory_touch(struct ss_memory *m, const struct ss_block *b)
{
	uint64_t va = b->addr;

	if (!m->vmm || b->seg != m->vmm->seg)
		return;
	while (va < b->addr + b->size) {
		struct ss_chunk *c = *ss_frame_at(m->vmm, va);

		c->idle_since = 0;
		va = c->va + c->size;
	}
}
