/* SPDX-License-Identifier: MIT */
/*
 * The shelves of a pool: ranges that a stream cuts and merges under its shelf's own lock, single
 * blocks in and out of a shelf, and the table of shelves.
 *
 * Neighbours in a shelf merge whatever their marks, and the result carries the later mark: the
 * stream itself may always reuse them, and other streams wait a little longer.
 *
 * Locks: shelf->lock; a new shelf takes memory->lock.
 */
#include "core/shelf/fast_path.h"
#include "core/shelf/hit.h"

/* ---- one shelf. q->lock held. ----------------------------------------------- */

static void extract(struct ss_shelf *q, struct ss_block *b)
{
	ss_index_remove(&q->free, b);
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (ss_is_whole(b))
		ss_put(&q->idle, ss_get(&q->idle) - b->size);
}

void ss_border_consider(struct ss_block *b, struct ss_block *next)
{
	uint32_t home = ss_home(next);

	if (home && home != ss_home(b))
		ss_border_draw(b, next);
}

/* b has come from another structure. If its left neighbour is a range of this shelf behind a
 * border, the border is removed. */
static void open_left(struct ss_shelf *q, const struct ss_block *b)
{
	struct ss_block *left = ss_block_last_start(q->set->core, b->seg, b->addr - 1);

	if (ss_is_free_on(left, q->slot) && ss_block_next(left) == b)
		ss_border_remove(left);
}

void ss_shelf_put(struct ss_shelf *q, struct ss_block *b)
{
	if (ss_home(b) != q->slot + 1) {
		ss_rehome(b, q->slot + 1);
		if (!ss_is_first(b) && !ss_block_prev(b))
			open_left(q, b);
	}
	ss_shelf_put_own(q, b);
}

/* Cuts `size` bytes at `align` out of b, a range of the shelf; the rest stays there. NULL: host
 * memory is out. */
static struct ss_block *cut(struct ss_shelf *q, struct ss_block *b, uint64_t size, uint64_t align)
{
	uint64_t pad = ss_start_in(b, align) - b->addr, had = b->size;
	struct ss_core *core = q->set->core;
	struct ss_block *head = b, *rest = NULL;
	bool whole = ss_is_whole(b);

	ss_index_remove(&q->free, head);
	if (pad && !(b = ss_block_split(core, &q->spares, head, pad)))
		goto fail;
	if (b->size > size && !(rest = ss_block_split(core, &q->spares, b, size))) {
		if (pad)
			ss_block_merge(core, &q->spares, head, b);
		goto fail;
	}
	if (pad)
		ss_index_insert(&q->free, head);
	if (rest)
		ss_index_insert(&q->free, rest);
	if (whole)
		ss_put(&q->idle, ss_get(&q->idle) - had);
	ss_set_state(b, SS_BLOCK_QUEUED);
	return b;

fail:
	ss_index_insert(&q->free, head);
	return NULL;
}

/* Hits call this. A copy of it in ss_shelf_pop() would keep the compiler from inlining cut(). */
SS_NOINLINE struct ss_block *ss_shelf_take(struct ss_shelf *q, uint64_t size, uint64_t align,
					   bool may_cut)
{
	struct ss_block *b = ss_index_best(&q->free, size, align);

	return b && (may_cut || !ss_splits_idle(q, b, size)) ? cut(q, b, size, align) : NULL;
}

struct ss_block *ss_shelf_idle(const struct ss_shelf *q, uint64_t size, uint64_t align)
{
	struct ss_block *b = ss_index_best(&q->free, size, align);

	return b && ss_splits_idle(q, b, size) ? b : NULL;
}

void ss_shelf_adopt(struct ss_shelf *q, struct ss_block *b)
{
	if (b->n > q->completed_since)
		q->completed_since = b->n;
	b->n = 0;
	ss_set_slot(b, q->slot);
	ss_memory_touch(q->set->memory, b);
	ss_shelf_put(q, b);
}

/* ---- for other streams ---------------------------------------------------- */

struct ss_block *ss_shelf_extract(struct ss_shelf *q, ss_range_test *may, const void *arg)
{
	struct ss_block *list = NULL, **tail = &list, *b, *next;

	for (b = ss_index_next(&q->free, NULL); b; b = next) {
		next = ss_index_next(&q->free, b);
		if (!may(b, arg))
			continue;
		extract(q, b);
		*tail = b;
		tail = &b->left;
		b->left = NULL;
	}
	return list;
}

/* A slightly old figure is good enough. (The thread sanitizer cannot know that.) */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread, noinline))
#endif
uint64_t
ss_shelf_free_hint(const struct ss_shelf *q)
{
	return *(const volatile uint64_t *)&q->free.bytes;
}

/* ---- one block --------------------------------------------------------------- */

struct ss_block *ss_shelf_pop(struct ss_shelf *q, uint64_t size, uint64_t align, uint64_t *id)
{
	struct ss_block *b;

	ss_bias_lock(&q->lock);
	b = ss_shelf_take(q, size, align, false);
	if (b)
		*id = q->id | ++q->hits;
	ss_bias_unlock(&q->lock);
	return b;
}

void ss_shelf_push(struct ss_shelf *q, struct ss_block *b)
{
	ss_bias_lock(&q->lock);
	q->frees++;
	ss_shelf_put(q, b);
	ss_bias_unlock(&q->lock);
}

bool ss_shelf_claim(struct ss_shelf *q, struct ss_block *b, uint64_t addr, bool *moved)
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

uint64_t ss_shelf_hand_out(struct ss_shelf *q, struct ss_block *b, uint64_t request, uint64_t id,
			   bool classic)
{
	b->request = request;
	b->id = id;
	ss_set_word(b, ss_word(q->slot, SS_BLOCK_QUEUED, classic));
	atomic_store_explicit(&b->state, SS_BLOCK_LIVE, memory_order_release);
	return ss_used_add(q, b->size);
}

/* ---- the table of shelves --------------------------------------------------- */

struct ss_shelf_table {
	uint32_t cap;
	struct ss_shelf_table *older; /* readers may still use it */
	_Atomic(struct ss_shelf *) q[];
};

uint64_t ss_shelf_new_ids(struct ss_core *core)
{
	return atomic_fetch_add(&core->fast->next_ids, 1) << 40;
}

static struct ss_shelf *shelf_new(struct ss_shelves *set, struct ss_timeline *tl)
{
	struct ss_shelf *q = ss_host_alloc(set->core, sizeof(*q));

	if (!q)
		return NULL;
	q->set = set;
	q->cut_freely = SS_CUT_FREELY;
	ss_index_init(&q->free, q->lists);
	q->tl = tl;
	q->slot = tl ? ss_timeline_slot(tl) : UINT32_MAX;
	q->id = ss_shelf_new_ids(set->core);
	return q;
}

bool ss_shelves_init(struct ss_shelves *set, struct ss_core *core, struct ss_memory *memory)
{
	set->core = core;
	set->memory = memory;
	set->done = shelf_new(set, NULL);
	return set->done != NULL;
}

void ss_shelves_finish(struct ss_shelves *set)
{
	struct ss_shelf_table *t = atomic_load(&set->table), *older;

	for (uint32_t i = 0; t && i < t->cap; i++)
		ss_host_free(set->core, atomic_load(&t->q[i]), sizeof(struct ss_shelf));
	for (; t; t = older) {
		older = t->older;
		ss_host_free(set->core, t, sizeof(*t) + t->cap * sizeof(t->q[0]));
	}
	ss_host_free(set->core, set->done, sizeof(*set->done));
}

/* A table with room for `slot`. memory->lock held. NULL: host memory is out. */
static struct ss_shelf_table *table_for(struct ss_shelves *set, uint32_t slot)
{
	struct ss_shelf_table *t = atomic_load_explicit(&set->table, memory_order_relaxed), *bigger;
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

static SS_NOINLINE struct ss_shelf *shelf_make(struct ss_shelves *set, struct ss_timeline *tl)
{
	struct ss_shelf *q = NULL;
	struct ss_shelf_table *t;
	uint32_t slot = ss_timeline_slot(tl);

	pthread_mutex_lock(&set->memory->lock);
	t = table_for(set, slot);
	if (t)
		q = atomic_load_explicit(&t->q[slot], memory_order_relaxed);
	if (t && !q) {
		q = shelf_new(set, tl);
		set->count += q != NULL;
		atomic_store_explicit(&t->q[slot], q, memory_order_release);
	}
	pthread_mutex_unlock(&set->memory->lock);
	return q;
}

struct ss_shelf *ss_shelf_of_slot(const struct ss_shelves *set, uint32_t slot)
{
	struct ss_shelf_table *t = atomic_load_explicit(&set->table, memory_order_acquire);

	return t && slot < t->cap ? atomic_load_explicit(&t->q[slot], memory_order_acquire) : NULL;
}

struct ss_shelf *ss_shelf_get(struct ss_shelves *set, struct ss_timeline *tl)
{
	struct ss_shelf *q = ss_shelf_of_slot(set, ss_timeline_slot(tl));

	return likely(q != NULL) ? q : shelf_make(set, tl);
}

struct ss_shelf *ss_shelf_after(const struct ss_shelves *set, const struct ss_shelf *q)
{
	struct ss_shelf_table *t = atomic_load_explicit(&set->table, memory_order_acquire);
	struct ss_shelf *next = NULL;

	for (uint32_t i = q ? q->slot + 1 : 0; t && i < t->cap && !next; i++)
		next = atomic_load_explicit(&t->q[i], memory_order_acquire);
	return next;
}

void ss_shelves_freeze(struct ss_shelves *set, bool on)
{
	SS_SHELVES_EACH(q, set)
		if (on)
			ss_bias_visit(&q->lock);
		else
			ss_bias_unlock(&q->lock);
}

void ss_shelf_clear(struct ss_shelf *q)
{
	ss_bias_visit(&q->lock);
	ss_index_clear(&q->free);
	atomic_store(&q->idle, 0);
	ss_bias_unlock(&q->lock);
}
