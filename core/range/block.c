/* SPDX-License-Identifier: MIT */
/*
 * Splitting and merging blocks.
 *
 * Locks: the caller's, which guard the blocks and the spare descriptors.
 */
#include "core/base/mutants.h"
#include "core/range/address_map.h"

static void set_prev(struct ss_block *b, struct ss_block *prev)
{
	if (b)
		atomic_store_explicit(&b->prev, prev, memory_order_relaxed);
}

struct ss_block *ss_block_split(struct ss_core *core, struct ss_spares *own, struct ss_block *b,
				uint64_t size)
{
	struct ss_block *rest = ss_block_new(core, own);

	if (!rest)
		return NULL;
	rest->addr = b->addr + size - (SS_MUTANT_IS(12) ? SS_GRAIN : 0);
	rest->size = b->size - size;
	rest->request = 0;
	rest->seg = b->seg;
	rest->classic = b->classic;
	rest->exported = false;
	ss_set_slot(rest, SS_MUTANT_IS(13) ? SS_SLOT_COMPLETED : b->slot);
	rest->n = b->n;
	ss_set_home(rest, ss_home(b));
	set_prev(ss_block_next(core, b), rest);
	set_prev(rest, b);
	b->size = size;
	ss_set_state(rest, atomic_load_explicit(&b->state, memory_order_relaxed));
	ss_start_set(b->seg, rest->addr, rest->index + 1);
	return rest;
}

void ss_block_merge(struct ss_core *core, struct ss_spares *own, struct ss_block *a,
		    struct ss_block *b)
{
	set_prev(ss_block_next(core, b), a);
	ss_start_set(b->seg, b->addr, 0);
	a->size += b->size;
	ss_block_recycle(core, own, b);
}

uint64_t ss_merged_mark(const struct ss_block *a, const struct ss_block *b, uint32_t slot)
{
	uint64_t x = a->slot == slot ? a->n : 0, y = b->slot == slot ? b->n : 0;

	if (SS_MUTANT_IS(26))
		return x && (x < y || !y) ? x : y;
	return ss_max(x, y);
}

struct ss_block *ss_block_rehome(struct ss_core *core, struct ss_spares *own,
				 struct ss_spares *theirs, struct ss_block *b, uint32_t slot)
{
	struct ss_block *fresh, *prev = ss_block_prev(b);

	/* The holder of the left neighbour writes b->prev at any time. In the old descriptor that would be lost, and later
	 * harm the block that the descriptor has become. So the caller must be that holder. */
	if (prev && !ss_is_free_on(prev, SS_SLOT_COMPLETED) && !ss_is_own(prev, slot))
		return b;
	if (ss_descriptor_owned(core, own, b) || !(fresh = ss_block_new(core, own)))
		return b;
	fresh->addr = b->addr;
	fresh->size = b->size;
	fresh->request = b->request;
	fresh->seg = b->seg;
	fresh->n = b->n;
	fresh->classic = b->classic;
	fresh->exported = b->exported;
	fresh->bin = b->bin;
	ss_set_slot(fresh, b->slot);
	ss_set_home(fresh, ss_home(b));
	ss_set_state(fresh, atomic_load_explicit(&b->state, memory_order_relaxed));
	set_prev(fresh, prev);
	set_prev(ss_block_next(core, b), fresh);
	/* The start stays where it is in the bitmap. */
	atomic_store_explicit(&b->seg->grains[(b->addr - b->seg->base) / SS_GRAIN],
			      fresh->index + 1, memory_order_release);
	ss_block_recycle(core, theirs, b);
	return fresh;
}
