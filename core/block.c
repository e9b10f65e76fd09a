/* SPDX-License-Identifier: MIT */
/*
 * Blocks: descriptors, and how one range becomes two and two become one.
 *
 * Descriptors are taken from whoever's spare ones the caller has the lock of (a pool's or
 * a queue's), and from the core where those are out. They are never freed.
 *
 * Locks: the lock of the spare descriptors; core->meta, a leaf, for the core's.
 */
#include "core/hit.h"

/* A chunk of them more. core->meta held. */
static void make_blocks(struct ss_core *core)
{
	struct ss_block *chunk, *b = NULL;

	if (core->chunk_count == SS_MAX_CHUNKS)
		return;
	chunk = ss_host_alloc(core, SS_CHUNK * sizeof(*chunk));
	if (!chunk)
		return;
	for (uint32_t i = SS_CHUNK; i-- > 0;) {
		chunk[i].index = core->chunk_count * SS_CHUNK + i;
		chunk[i].left = b;
		b = &chunk[i];
	}
	__atomic_store_n(&core->chunks[core->chunk_count], chunk, __ATOMIC_RELEASE);
	core->chunk_count++;
	core->spare_blocks = b;
}

#define SPARES 32 /* go to and fro at once: two dozen cache lines that nobody else has */

struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own)
{
	struct ss_block *b = own->head;

	if (!b) {
		pthread_mutex_lock(&core->meta);
		for (unsigned i = 0; i < SPARES; i++) {
			if (!core->spare_blocks)
				make_blocks(core);
			if (!core->spare_blocks)
				break;
			b = core->spare_blocks;
			core->spare_blocks = b->left;
			b->left = own->head;
			own->head = b;
			own->count++;
		}
		pthread_mutex_unlock(&core->meta);
		b = own->head;
	}
	if (b) {
		own->head = b->left;
		own->count--;
	}
	return b;
}

void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep)
{
	pthread_mutex_lock(&core->meta);
	while (own->count > keep) {
		struct ss_block *b = own->head;

		own->head = b->left;
		own->count--;
		b->left = core->spare_blocks;
		core->spare_blocks = b;
	}
	pthread_mutex_unlock(&core->meta);
}

void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b)
{
	atomic_store_explicit(&b->state, SS_BLOCK_UNUSED, memory_order_relaxed);
	b->left = own->head;
	own->head = b;
	if (++own->count > 4 * SPARES)
		ss_spares_return(core, own, 2 * SPARES);
}

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

struct ss_block *ss_block_wrap(struct ss_core *core, struct ss_spares *own,
			       struct ss_block *first, struct ss_block *last)
{
	struct ss_block *run = ss_block_new(core, own);

	if (!run)
		return NULL;
	run->addr = first->addr;
	run->size = last->addr + last->size - first->addr;
	run->seg = first->seg;
	run->request = run->n = 0;
	run->slot = SS_SLOT_CLEAN;
	run->classic = run->exported = false;
	ss_set_lessee(run, 0);
	ss_set_state(run, SS_BLOCK_LEASED);
	run->prev = first->prev;
	run->next = last->next;
	*(run->prev ? &run->prev->next : &run->seg->first) = run;
	if (run->next)
		run->next->prev = run;
	run->left = first;
	first->prev = last->next = NULL;
	return run;
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
	struct ss_block *home = ss_block_new(core, own);

	if (!home)
		return b;
	home->addr = b->addr;
	home->size = b->size;
	home->request = b->request;
	home->prev = b->prev;
	home->next = b->next;
	home->seg = b->seg;
	home->n = b->n;
	home->slot = b->slot;
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
