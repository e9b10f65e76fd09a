/* SPDX-License-Identifier: MIT */
/*
 * The storage of block descriptors, which are never freed.
 *
 * Descriptors are made in batches, each a whole number of cache lines. A batch belongs to the stream
 * cache or pool that took descriptors from it, until all of them are back: a descriptor that another
 * owner does not need any more is returned to its batch. So two streams seldom write to one cache line.
 * They do where a block that changes hands must keep its descriptor (ss_block_rehome). (Caches and
 * pools live as long as the core.)
 *
 * Locks: the lock of the spare descriptors' owner; core->map->lock, a leaf, for batches.
 */
#include <utlist.h>

#include "core/base/lock.h"
#include "core/range/address_map.h"
#include "core/range/descriptor.h"

struct ss_batch {
	struct ss_block *free;        /* its unused descriptors */
	uint32_t count;
	/* In its owner's list or, if nobody has it, in map->whole; in none while count is 0. */
	struct ss_batch *prev, *next;
};

/* Lies behind the descriptors of a slab. The owners are read without a lock, because an owner only
 * asks whether it is the owner. core->map->lock guards the batches. */
struct tail {
	struct ss_spares *owner[SS_SLAB / SS_BATCH]; /* NULL: nobody */
	struct ss_batch batch[SS_SLAB / SS_BATCH];
};

_Static_assert(SS_BATCH * sizeof(struct ss_block) % SS_LINES == 0, "a batch shares a line");

static struct tail *tail_of(struct ss_block *slab)
{
	return (struct tail *)(slab + SS_SLAB);
}

size_t ss_slab_bytes(void)
{
	return SS_SLAB * sizeof(struct ss_block) + sizeof(struct tail);
}

static struct tail *tail_for(const struct ss_core *core, const struct ss_block *b)
{
	return tail_of(core->map->slabs[b->index / SS_SLAB]);
}

static uint32_t batch_of(const struct ss_block *b)
{
	return b->index % SS_SLAB / SS_BATCH;
}

bool ss_descriptor_owned(const struct ss_core *core, const struct ss_spares *own,
			 const struct ss_block *b)
{
	return tail_for(core, b)->owner[batch_of(b)] == own;
}

/* Makes one more slab. core->map->lock held. */
static void make_batches(struct ss_core *core)
{
	struct ss_block *slab;

	if (core->map->slab_count == SS_MAX_SLABS)
		return;
	slab = ss_host_alloc(core, ss_slab_bytes());
	if (!slab)
		return;
	for (uint32_t i = SS_SLAB; i-- > 0;) {
		struct ss_batch *batch = &tail_of(slab)->batch[i / SS_BATCH];

		slab[i].index = core->map->slab_count * SS_SLAB + i;
		slab[i].left = batch->free;
		batch->free = &slab[i];
		if (++batch->count == SS_BATCH)
			DL_PREPEND(core->map->whole, batch);
	}
	__atomic_store_n(&core->map->slabs[core->map->slab_count], slab, __ATOMIC_RELEASE);
	core->map->slab_count++;
}

/* core->map->lock held. */
static void send_home(struct ss_core *core, struct ss_block *b)
{
	struct tail *tail = tail_for(core, b);
	struct ss_batch *batch = &tail->batch[batch_of(b)];
	struct ss_spares **owner = &tail->owner[batch_of(b)];

	b->left = batch->free;
	batch->free = b;
	if (!batch->count++)
		DL_PREPEND((*owner)->mine, batch);
	if (batch->count < SS_BATCH)
		return;
	DL_DELETE((*owner)->mine, batch);
	*owner = NULL;
	DL_PREPEND(core->map->whole, batch);
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

/* core->map->lock held, own->head empty. */
static void refill(struct ss_core *core, struct ss_spares *own)
{
	struct ss_batch *batch;

	send_away_home(core, own);
	while ((batch = own->mine) && own->count < SS_BATCH) {
		DL_DELETE(own->mine, batch);
		take(own, batch);
	}
	if (own->count)
		return;
	if (!core->map->whole)
		make_batches(core);
	batch = core->map->whole;
	if (!batch)
		return;
	DL_DELETE(core->map->whole, batch);
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
		pthread_mutex_lock(&core->map->lock);
		refill(core, own);
		pthread_mutex_unlock(&core->map->lock);
	}
	return pop(own);
}

struct ss_block *ss_block_new_alone(struct ss_core *core)
{
	struct ss_block *b;

	pthread_mutex_lock(&core->map->lock);
	if (!core->map->spares.head)
		refill(core, &core->map->spares);
	b = pop(&core->map->spares);
	pthread_mutex_unlock(&core->map->lock);
	return b;
}

void ss_spares_return(struct ss_core *core, struct ss_spares *own, uint32_t keep)
{
	pthread_mutex_lock(&core->map->lock);
	send_away_home(core, own);
	while (own->count > keep)
		send_home(core, pop(own));
	pthread_mutex_unlock(&core->map->lock);
}

void ss_block_recycle(struct ss_core *core, struct ss_spares *own, struct ss_block *b)
{
	atomic_store_explicit(&b->state, SS_BLOCK_UNUSED, memory_order_relaxed);
	b->right = NULL;
	if (ss_descriptor_owned(core, own, b)) {
		b->left = own->head;
		own->head = b;
		if (++own->count > 8 * SS_BATCH)
			ss_spares_return(core, own, 4 * SS_BATCH);
	} else {
		b->left = own->away;
		own->away = b;
		if (++own->away_count == SS_BATCH)
			ss_spares_return(core, own, own->count);
	}
}
