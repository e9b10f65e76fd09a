/* SPDX-License-Identifier: MIT */
/*
 * Blocks: descriptors, and how one range becomes two and two become one.
 *
 * Descriptors are made in batches, each a whole number of cache lines. A batch belongs to
 * whoever took descriptors from it (a queue or a pool, which live as long as the core)
 * until all of them are back, so no two streams ever write to one line: a descriptor that
 * somebody else has no more use for is sent home. They are never freed.
 *
 * Locks: the lock of the spare descriptors' owner; core->meta, a leaf, for batches.
 */
#include <utlist.h>

#include "core/hit.h"

#define BATCH 32u

struct ss_batch {
	struct ss_block *free;        /* those at home */
	uint32_t count;
	struct ss_batch *prev, *next; /* of its owner's, or of the whole ones; without any: of none */
};

/* What is behind the descriptors of a chunk. Everybody reads the owners, and they seldom
 * change; the batches are for who holds core->meta. */
struct tail {
	struct ss_spares *owner[SS_CHUNK / BATCH]; /* NULL: whole */
	struct ss_batch batch[SS_CHUNK / BATCH];
};

_Static_assert(BATCH * sizeof(struct ss_block) % 128 == 0, "a batch shares a line");

static struct tail *tail_of(struct ss_block *chunk)
{
	return (struct tail *)(chunk + SS_CHUNK);
}

size_t ss_chunk_bytes(void)
{
	return SS_CHUNK * sizeof(struct ss_block) + sizeof(struct tail);
}

static struct tail *tail_for(const struct ss_core *core, const struct ss_block *b)
{
	return tail_of(core->chunks[b->index / SS_CHUNK]);
}

static uint32_t batch_of(const struct ss_block *b)
{
	return b->index % SS_CHUNK / BATCH;
}

static bool owns(const struct ss_core *core, const struct ss_spares *own, const struct ss_block *b)
{
	return tail_for(core, b)->owner[batch_of(b)] == own;
}

/* A chunk of them more. core->meta held. */
static void make_batches(struct ss_core *core)
{
	struct ss_block *chunk;

	if (core->chunk_count == SS_MAX_CHUNKS)
		return;
	chunk = ss_host_alloc(core, ss_chunk_bytes());
	if (!chunk)
		return;
	for (uint32_t i = SS_CHUNK; i-- > 0;) {
		struct ss_batch *batch = &tail_of(chunk)->batch[i / BATCH];

		chunk[i].index = core->chunk_count * SS_CHUNK + i;
		chunk[i].left = batch->free;
		batch->free = &chunk[i];
		if (++batch->count == BATCH)
			DL_PREPEND(core->whole, batch);
	}
	__atomic_store_n(&core->chunks[core->chunk_count], chunk, __ATOMIC_RELEASE);
	core->chunk_count++;
}

/* core->meta held. */
static void send_home(struct ss_core *core, struct ss_block *b)
{
	struct tail *tail = tail_for(core, b);
	struct ss_batch *batch = &tail->batch[batch_of(b)];
	struct ss_spares **owner = &tail->owner[batch_of(b)];

	b->left = batch->free;
	batch->free = b;
	if (!batch->count++)
		DL_PREPEND((*owner)->mine, batch);
	if (batch->count < BATCH)
		return;
	DL_DELETE((*owner)->mine, batch);
	*owner = NULL;
	DL_PREPEND(core->whole, batch);
}

static void send_away_home(struct ss_core *core, struct ss_spares *own)
{
	struct ss_block *b;

	while ((b = own->away)) {
		own->away = b->left;
		send_home(core, b);
	}
	own->away_count = 0;
}

static void take(struct ss_spares *own, struct ss_batch *batch)
{
	struct ss_block *b;

	while ((b = batch->free)) {
		batch->free = b->left;
		b->left = own->head;
		own->head = b;
	}
	own->count += batch->count;
	batch->count = 0;
}

/* core->meta held, own->head empty. */
static void refill(struct ss_core *core, struct ss_spares *own)
{
	struct ss_batch *batch;

	send_away_home(core, own);
	while ((batch = own->mine) && own->count < BATCH) {
		DL_DELETE(own->mine, batch);
		take(own, batch);
	}
	if (own->count)
		return;
	if (!core->whole)
		make_batches(core);
	batch = core->whole;
	if (!batch)
		return;
	DL_DELETE(core->whole, batch);
	tail_for(core, batch->free)->owner[batch_of(batch->free)] = own;
	take(own, batch);
}

static struct ss_block *pop(struct ss_spares *own)
{
	struct ss_block *b = own->head;

	if (b) {
		own->head = b->left;
		own->count--;
	}
	return b;
}

struct ss_block *ss_block_new(struct ss_core *core, struct ss_spares *own)
{
	if (!own->head) {
		pthread_mutex_lock(&core->meta);
		refill(core, own);
		pthread_mutex_unlock(&core->meta);
	}
	return pop(own);
}

struct ss_block *ss_block_new_alone(struct ss_core *core)
{
	struct ss_block *b;

	pthread_mutex_lock(&core->meta);
	if (!core->spares.head)
		refill(core, &core->spares);
	b = pop(&core->spares);
	pthread_mutex_unlock(&core->meta);
	return b;
}

void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep)
{
	pthread_mutex_lock(&core->meta);
	send_away_home(core, own);
	while (own->count > keep)
		send_home(core, pop(own));
	pthread_mutex_unlock(&core->meta);
}

void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b)
{
	atomic_store_explicit(&b->state, SS_BLOCK_UNUSED, memory_order_relaxed);
	if (owns(core, own, b)) {
		b->left = own->head;
		own->head = b;
		if (++own->count > 8 * BATCH)
			ss_spares_return(core, own, 4 * BATCH);
	} else {
		b->left = own->away;
		own->away = b;
		if (++own->away_count == BATCH)
			ss_spares_return(core, own, own->count);
	}
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
	struct ss_block *home;

	if (owns(core, own, b) || !(home = ss_block_new(core, own)))
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
