/* SPDX-License-Identifier: MIT */
/*
 * The stream caches of a pool: which there are, and one block in and out of one.
 *
 * Locks: cache->lock; a new cache takes memory->lock.
 */
#include "core/cache/bin.h"
#include "core/cache/fast_path.h"

struct ss_cache_table {
	uint32_t cap;
	struct ss_cache_table *older; /* readers may still be in it */
	_Atomic(struct ss_stream_cache *) q[];
};

/* Entries of `handed` that were never used say address 0; looking for that finds this one. */
static struct ss_block nothing;

/* ---- which caches there are ------------------------------------------------ */

uint64_t ss_cache_new_ids(struct ss_core *core)
{
	return atomic_fetch_add(&core->fast->next_ids, 1) << 40;
}

static struct ss_stream_cache *cache_new(struct ss_caches *set, struct ss_timeline *tl)
{
	struct ss_stream_cache *q = ss_host_alloc(set->core, sizeof(*q));

	if (!q)
		return NULL;
	q->handed[0].b = &nothing;
	q->cut_freely = SS_CUT_FREELY;
	q->set = set;
	q->tl = tl;
	q->slot = tl ? ss_timeline_slot(tl) : UINT32_MAX;
	q->id = ss_cache_new_ids(set->core);
	return q;
}

bool ss_caches_init(struct ss_caches *set, struct ss_core *core, struct ss_memory *memory)
{
	set->core = core;
	set->memory = memory;
	set->done = cache_new(set, NULL);
	return set->done != NULL;
}

void ss_caches_finish(struct ss_caches *set)
{
	struct ss_cache_table *t = atomic_load(&set->table), *older;

	for (uint32_t i = 0; t && i < t->cap; i++)
		ss_host_free(set->core, atomic_load(&t->q[i]), sizeof(struct ss_stream_cache));
	for (; t; t = older) {
		older = t->older;
		ss_host_free(set->core, t, sizeof(*t) + t->cap * sizeof(t->q[0]));
	}
	ss_host_free(set->core, set->done, sizeof(*set->done));
}

/* A table with room for `slot`. memory->lock held. NULL: host memory is out. */
static struct ss_cache_table *table_for(struct ss_caches *set, uint32_t slot)
{
	struct ss_cache_table *t = atomic_load_explicit(&set->table, memory_order_relaxed), *bigger;
	uint32_t cap = t ? t->cap : 8;

	if (t && slot < t->cap)
		return t;
	while (cap <= slot)
		cap *= 2;
	bigger = ss_host_alloc(set->core, sizeof(*t) + cap * sizeof(t->q[0]));
	if (!bigger)
		return NULL;
	bigger->cap = cap;
	bigger->older = t;
	for (uint32_t i = 0; t && i < t->cap; i++)
		atomic_store_explicit(&bigger->q[i], atomic_load(&t->q[i]), memory_order_relaxed);
	atomic_store_explicit(&set->table, bigger, memory_order_release);
	return bigger;
}

static SS_NOINLINE struct ss_stream_cache *cache_make(struct ss_caches *set, struct ss_timeline *tl)
{
	struct ss_stream_cache *q = NULL;
	struct ss_cache_table *t;
	uint32_t slot = ss_timeline_slot(tl);

	pthread_mutex_lock(&set->memory->lock);
	t = table_for(set, slot);
	if (t)
		q = atomic_load_explicit(&t->q[slot], memory_order_relaxed);
	if (t && !q) {
		q = cache_new(set, tl);
		set->count += q != NULL;
		atomic_store_explicit(&t->q[slot], q, memory_order_release);
	}
	pthread_mutex_unlock(&set->memory->lock);
	return q;
}

struct ss_stream_cache *ss_cache_of_slot(const struct ss_caches *set, uint32_t slot)
{
	struct ss_cache_table *t = atomic_load_explicit(&set->table, memory_order_acquire);

	return t && slot < t->cap ? atomic_load_explicit(&t->q[slot], memory_order_acquire) : NULL;
}

struct ss_stream_cache *ss_cache_get(struct ss_caches *set, struct ss_timeline *tl)
{
	struct ss_stream_cache *q = ss_cache_of_slot(set, ss_timeline_slot(tl));

	return q ? q : cache_make(set, tl);
}

struct ss_stream_cache *ss_cache_after(const struct ss_caches *set, const struct ss_stream_cache *q)
{
	struct ss_cache_table *t = atomic_load_explicit(&set->table, memory_order_acquire);
	struct ss_stream_cache *next = NULL;

	for (uint32_t i = q ? q->slot + 1 : 0; t && i < t->cap && !next; i++)
		next = atomic_load_explicit(&t->q[i], memory_order_acquire);
	return next;
}

void ss_caches_freeze(struct ss_caches *set, bool on)
{
	SS_CACHES_EACH(q, set)
		if (on)
			ss_bias_visit(&q->lock);
		else
			ss_bias_unlock(&q->lock);
}

struct ss_block *ss_cache_drain(struct ss_stream_cache *q)
{
	struct ss_block *list = NULL, *b;

	for (unsigned i = ss_filled_from(q, 0); i < SS_BINS; i = ss_filled_from(q, i + 1)) {
		while ((b = q->bin[i].head)) {
			q->bin[i].head = b->left;
			b->left = list;
			list = b;
		}
		q->filled[i] = 0;
	}
	q->blocks = 0;
	q->bytes = 0;
	return list;
}

void ss_cache_clear(struct ss_stream_cache *q)
{
	ss_bias_visit(&q->lock);
	ss_cache_drain(q);
	memset(&q->own, 0, sizeof(q->own));
	memset(&q->foreign, 0, sizeof(q->foreign));
	q->idle = 0;
	ss_bias_unlock(&q->lock);
}

/* ---- one block --------------------------------------------------------------- */

struct ss_block *ss_cache_pop(struct ss_stream_cache *q, uint64_t size, uint64_t align, uint64_t *id)
{
	struct ss_block *b;

	ss_bias_lock(&q->lock);
	b = ss_bin_pop(q, size, align);
	if (!b && q->tl) {
		b = ss_arena_take(q, size, align, false);
		q->hits += b != NULL;
	}
	if (b)
		*id = q->id | q->hits;
	ss_bias_unlock(&q->lock);
	return b;
}

void ss_bin_claim(struct ss_stream_cache *q, uint64_t size)
{
	uint64_t i = ss_bin(size);

	if (q->bin[i].head)
		i = ss_bin_next(i);
	if (!q->bin[i].head)
		q->bin[i].size = size;
}

enum ss_push ss_bin_push_slow(struct ss_stream_cache *q, struct ss_block *b)
{
	struct ss_bin *bin;

	if (!q->tl && !ss_bin_holding(q, b->size))
		ss_bin_claim(q, b->size);
	bin = ss_bin_holding(q, b->size);
	if (!bin) {
		if (!q->tl)
			return SS_NOT_PUSHED;
		q->frees++;
		ss_arena_put(q, b);
		return SS_PUSHED;
	}
	q->filled[bin - q->bin] = 1;
	if (ss_bin_put(q, b, &bin->head, b->size))
		return SS_PUSHED;
	if (!q->tl)
		return SS_PUSHED_FULL;
	ss_arena_drain(q);
	return SS_PUSHED;
}

enum ss_push ss_cache_push(struct ss_stream_cache *q, struct ss_block *b)
{
	enum ss_push pushed;

	ss_bias_lock(&q->lock);
	pushed = ss_bin_push_slow(q, b);
	ss_bias_unlock(&q->lock);
	return pushed;
}

bool ss_cache_claim(struct ss_stream_cache *q, struct ss_block *b, uint64_t addr, bool *moved)
{
	bool mine;

	ss_bias_lock(&q->lock);
	mine = ss_is_live(b) && b->slot == q->slot && b->addr == addr;
	if (mine)
		ss_set_state(b, SS_BLOCK_QUEUED);
	*moved = b->slot != q->slot;
	ss_bias_unlock(&q->lock);
	return mine;
}

uint64_t ss_cache_hand_out(struct ss_stream_cache *q, struct ss_block *b, uint64_t request,
			   uint64_t id, bool classic)
{
	b->request = request;
	b->id = id;
	b->bin = (uint8_t)ss_bin(b->size);
	b->classic = classic;
	ss_set_slot(b, q->slot);
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	return ss_used_add(q, b->size);
}

void ss_handed_renew(struct ss_stream_cache *q)
{
	uint64_t forgotten = atomic_load(&q->set->memory->forgotten);

	ss_bias_lock(&q->lock);
	if (q->handed_forgotten != forgotten) {
		memset(q->handed, 0, sizeof(q->handed));
		q->handed[0].b = &nothing;
	}
	q->handed_forgotten = forgotten;
	ss_bias_unlock(&q->lock);
}
