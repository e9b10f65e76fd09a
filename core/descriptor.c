/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of blocks, and who has them. They are never freed.
 *
 * They are made in batches, each a whole number of cache lines. A batch belongs to
 * whoever took descriptors from it (a queue or a pool, which live as long as the core)
 * until all of them are back, so no two streams ever write to one line: a descriptor that
 * somebody else has no more use for is sent home.
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

_Static_assert(BATCH * sizeof(struct ss_block) % SS_LINES == 0, "a batch shares a line");

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

bool ss_descriptor_owned(const struct ss_core *core, const struct ss_spares *own,
			 const struct ss_block *b)
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
	b->right = NULL;
	if (ss_descriptor_owned(core, own, b)) {
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
