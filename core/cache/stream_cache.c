/* SPDX-License-Identifier: MIT */
/*
 * Free queues: what was freed on one stream of one pool, ready for the next
 * allocation of the same size on that stream. The hot path uses the inlined
 * pieces in core/hit.h: a spin lock that only users of the same stream share, one
 * bin, a few stores.
 *
 * Locks: queue->lock; creating a queue takes pool->lock.
 */
#include <stdlib.h>

#include "core/hit.h"

/* An entry that was not used yet is that of NULL, which is looked for at the first. */
static struct ss_block nothing;

struct ss_queue *ss_queue_new(struct ss_pool *pool, struct ss_timeline *tl)
{
	struct ss_queue *q = ss_host_alloc(pool->core, sizeof(*q));

	if (!q)
		return NULL;
	q->near[0].b = &nothing;
	q->most = SS_QUEUE_MAX_BLOCKS;
	q->pool = pool;
	q->tl = tl;
	q->slot = tl ? tl->slot : UINT32_MAX;
	q->id = atomic_fetch_add(&pool->core->next_queue_id, 1) << 40;
	return q;
}

void ss_queue_free(struct ss_core *core, struct ss_queue *q)
{
	if (!q)
		return;
	ss_host_free(core, q->lease, sizeof(*q->lease));
	ss_host_free(core, q, sizeof(*q));
}

struct ss_queue *ss_queue_slow(struct ss_pool *pool, struct ss_timeline *tl)
{
	struct ss_queue_table *t, *bigger;
	struct ss_queue *q = NULL;

	pthread_mutex_lock(&pool->lock);
	t = atomic_load_explicit(&pool->queues, memory_order_relaxed);
	if (!t || tl->slot >= t->cap) {
		uint32_t cap = t ? t->cap : 8;

		while (cap <= tl->slot)
			cap *= 2;
		bigger = ss_host_alloc(pool->core, sizeof(*t) + cap * sizeof(t->q[0]));
		if (!bigger)
			goto out;
		bigger->cap = cap;
		bigger->older = t; /* a reader may still be in it */
		for (uint32_t i = 0; t && i < t->cap; i++)
			atomic_store_explicit(&bigger->q[i], atomic_load(&t->q[i]),
					      memory_order_relaxed);
		atomic_store_explicit(&pool->queues, bigger, memory_order_release);
		t = bigger;
	}
	q = atomic_load_explicit(&t->q[tl->slot], memory_order_relaxed);
	if (!q) {
		q = ss_queue_new(pool, tl);
		pool->queue_count += q != NULL;
		atomic_store_explicit(&t->q[tl->slot], q, memory_order_release);
	}
out:
	pthread_mutex_unlock(&pool->lock);
	return q;
}

struct ss_block *ss_queue_pop(struct ss_queue *q, uint64_t size, uint64_t align, uint64_t *id)
{
	struct ss_block *b;

	ss_bias_lock(&q->lock);
	b = ss_bin_pop(q, size, align);
	if (!b && ss_leases(q))
		b = ss_lease_take(q, size, align);
	if (b)
		*id = q->id | q->hits;
	ss_bias_unlock(&q->lock);
	return b;
}

bool ss_queue_push(struct ss_queue *q, struct ss_block *b)
{
	bool room;

	ss_bias_lock(&q->lock);
	room = ss_bin_push(q, b);
	ss_bias_unlock(&q->lock);
	return room;
}

bool ss_queue_asked(struct ss_queue *q, uint64_t size)
{
	bool varied;

	ss_bias_lock(&q->lock);
	q->asked++;
	varied = ss_varied(q, size);
	ss_bias_unlock(&q->lock);
	return varied;
}

void ss_queue_unbin(struct ss_queue *q, bool on)
{
	if (q->unbinned == on)
		return;
	q->unbinned = on;
	ss_bias_lock(&q->lock);
	q->most = on ? 1 : SS_QUEUE_MAX_BLOCKS;
	ss_bias_unlock(&q->lock);
}

void ss_near_renew(struct ss_queue *q)
{
	uint64_t gone = atomic_load(&q->pool->gone);

	ss_bias_lock(&q->lock);
	if (q->near_gone != gone) {
		memset(q->near, 0, sizeof(q->near));
		q->near[0].b = &nothing;
	}
	q->near_gone = gone;
	ss_bias_unlock(&q->lock);
}

void ss_queue_empty(struct ss_queue *q)
{
	bool done;

	ss_bias_lock(&q->lock);
	done = ss_lease_collect(q);
	ss_bias_unlock(&q->lock);
	if (done)
		return;
	pthread_mutex_lock(&q->pool->lock);
	ss_flush(q->pool, q);
	pthread_mutex_unlock(&q->pool->lock);
}

void ss_queue_clear(struct ss_queue *q)
{
	ss_bias_visit(&q->lock);
	ss_queue_drain(q, 0);
	ss_bias_unlock(&q->lock);
}

/* Puts what bin i holds before `list`. q->lock held. */
static struct ss_block *empty(struct ss_queue *q, unsigned i, struct ss_block *list)
{
	struct ss_block *b;

	while ((b = q->bin[i].head)) {
		q->bin[i].head = b->left;
		b->left = list;
		list = b;
		q->blocks--;
		q->bytes -= b->size;
	}
	q->filled[i] = 0;
	return list;
}

struct ss_block *ss_queue_drain(struct ss_queue *q, uint64_t size)
{
	struct ss_block *list = NULL;

	for (unsigned i = ss_filled_from(q, 0); i < SS_BINS; i = ss_filled_from(q, i + 1))
		if (q->bin[i].size >= size)
			list = empty(q, i, list);
	if (!size) {
		struct ss_block **end = &list;

		while (*end)
			end = &(*end)->left;
		*end = q->overflow;
		q->overflow = NULL;
		q->blocks = 0;
		q->bytes = 0;
	}
	return list;
}
