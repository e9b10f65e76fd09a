/* SPDX-License-Identifier: MIT */
/*
 * Blocks: how one range becomes two and two become one, under which descriptor.
 *
 * Locks: the caller's, of the range and of the spare descriptors (descriptor.c).
 */
#include "core/hit.h"

struct ss_block *ss_block_split_with(struct ss_core *core, struct ss_spares *own,
				     struct ss_block *b, uint64_t size)
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
	rest->slot = SS_MUTANT_IS(13) ? SS_SLOT_CLEAN : b->slot;
	rest->n = b->n;
	ss_set_lessee(rest, ss_lessee(b));
	rest->prev = b;
	rest->next = b->next;
	if (b->next)
		b->next->prev = rest;
	b->next = rest;
	b->size = size;
	atomic_store_explicit(&rest->state, atomic_load_explicit(&b->state, memory_order_relaxed),
			      memory_order_relaxed);
	ss_start_set(b->seg, rest->addr, rest->index + 1);
	return rest;
}

struct ss_block *ss_block_split(struct ss_core *core, struct ss_block *b, uint64_t size)
{
	return ss_block_split_with(core, &b->seg->pool->spares, b, size);
}

void ss_block_merge_with(struct ss_core *core, struct ss_spares *own, struct ss_block *b)
{
	struct ss_block *gone = b->next;

	ss_start_set(b->seg, gone->addr, 0);
	b->size += gone->size;
	b->next = gone->next;
	if (b->next)
		b->next->prev = b;
	ss_block_recycle(core, own, gone);
}

void ss_block_merge(struct ss_core *core, struct ss_block *b)
{
	ss_block_merge_with(core, &b->seg->pool->spares, b);
}

/* A run from `first` to the address `end`, that lies between prev and next. */
static struct ss_block *new_run(struct ss_core *core, struct ss_spares *own,
				struct ss_block *first, uint64_t end, struct ss_block *prev,
				struct ss_block *next)
{
	struct ss_block *run = ss_block_new(core, own);

	if (!run)
		return NULL;
	run->addr = first->addr;
	run->size = end - first->addr;
	run->seg = first->seg;
	run->request = run->n = 0;
	run->slot = SS_SLOT_CLEAN;
	run->classic = run->exported = false;
	ss_set_lessee(run, 0);
	ss_set_state(run, SS_BLOCK_LEASED);
	run->prev = prev;
	run->next = next;
	*(prev ? &prev->next : &run->seg->first) = run;
	if (next)
		next->prev = run;
	run->left = first;
	first->prev = NULL;
	return run;
}

struct ss_block *ss_block_wrap(struct ss_core *core, struct ss_spares *own,
			       struct ss_block *first, struct ss_block *last)
{
	struct ss_block *run = new_run(core, own, first, last->addr + last->size, first->prev,
				       last->next);

	if (run)
		last->next = NULL;
	return run;
}

struct ss_block *ss_block_wrap_rest(struct ss_core *core, struct ss_spares *own,
				    struct ss_block *run, struct ss_block *b)
{
	struct ss_block *last = b->prev;
	struct ss_block *rest = new_run(core, own, b, run->addr + run->size, run, run->next);

	if (!rest)
		return NULL;
	last->next = NULL;
	run->size = b->addr - run->addr;
	return rest;
}

void ss_block_unwrap(struct ss_core *core, struct ss_spares *own, struct ss_block *run,
		     struct ss_block *last)
{
	struct ss_block *first = run->left;

	first->prev = run->prev;
	last->next = run->next;
	*(first->prev ? &first->prev->next : &run->seg->first) = first;
	if (last->next)
		last->next->prev = last;
	ss_block_recycle(core, own, run);
}

struct ss_block *ss_block_rehome(struct ss_core *core, struct ss_spares *own,
				 struct ss_spares *theirs, struct ss_block *b)
{
	struct ss_block *home;

	if (ss_descriptor_owned(core, own, b) || !(home = ss_block_new(core, own)))
		return b;
	home->addr = b->addr;
	home->size = b->size;
	home->request = b->request;
	home->prev = b->prev;
	home->next = b->next;
	home->seg = b->seg;
	home->n = b->n;
	home->slot = b->slot;
	home->past = b->past;
	home->classic = b->classic;
	home->exported = b->exported;
	home->bin = b->bin;
	ss_set_lessee(home, ss_lessee(b));
	ss_set_state(home, atomic_load_explicit(&b->state, memory_order_relaxed));
	*(b->prev ? &b->prev->next : &b->seg->first) = home;
	if (b->next)
		b->next->prev = home;
	atomic_store_explicit(&b->seg->grains[(b->addr - b->seg->base) / SS_GRAIN],
			      home->index + 1,
			      memory_order_release);
	ss_block_recycle(core, theirs, b);
	return home;
}
