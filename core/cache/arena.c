/* SPDX-License-Identifier: MIT */
/*
 * The arena of a stream: ranges that it cuts and merges under its own lock.
 *
 * Neighbours of one home merge whatever their marks, and the result carries the later mark: the
 * stream itself may always reuse them, and others wait a little longer. What the stream freed of
 * other arenas does not merge before it has completed. A stream that only frees what another
 * allocates would otherwise put a fresh mark on the same long range again and again, and on a
 * device that lags nobody could ever reuse it.
 *
 * Locks: cache->lock, held by the caller.
 */
#include "core/cache/hit.h"

struct ss_arena_lists {
	struct ss_block *own[SS_CLASSES], *foreign[SS_CLASSES];
};

void ss_arena_init(struct ss_stream_cache *q)
{
	q->cut_freely = SS_CUT_FREELY;
	ss_index_init(&q->own, NULL);
	ss_index_init(&q->foreign, NULL);
}

void ss_arena_finish(struct ss_stream_cache *q)
{
	ss_host_free(q->set->core, q->lists, sizeof(struct ss_arena_lists));
}

bool ss_arena_ready(struct ss_stream_cache *q)
{
	struct ss_arena_lists *lists = atomic_load_explicit(&q->lists, memory_order_relaxed);

	if (likely(lists != NULL))
		return true;
	lists = ss_host_alloc(q->set->core, sizeof(*lists));
	if (!lists)
		return false;
	ss_index_init(&q->own, lists->own);
	ss_index_init(&q->foreign, lists->foreign);
	atomic_store_explicit(&q->lists, lists, memory_order_relaxed);
	ss_hits_end(q->set->core); /* the hot path may free here from now on */
	return true;
}

static struct ss_free_index *index_of(struct ss_stream_cache *q, const struct ss_block *b)
{
	return ss_home(b) == q->slot + 1 ? &q->own : &q->foreign;
}

static void extract(struct ss_stream_cache *q, struct ss_block *b)
{
	ss_index_remove(index_of(q, b), b);
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (ss_is_whole(b))
		q->idle -= b->size;
}

void ss_border_consider(struct ss_block *b, struct ss_block *next)
{
	uint32_t home = ss_home(next);

	if (home && home != ss_home(b))
		ss_border_draw(b, next);
}

void ss_arena_put(struct ss_stream_cache *q, struct ss_block *b)
{
	if (ss_home(b) == q->slot + 1) {
		ss_arena_put_own(q, b, ss_merges_from(q, q->tl));
		return;
	}
	ss_set_free(b, q->slot, false);
	ss_index_insert(&q->foreign, b);
	if (ss_is_whole(b))
		q->idle += b->size;
}

void ss_arena_settle(struct ss_stream_cache *q)
{
	struct ss_block *picked = NULL, *b, *prev;

	if (!q->apart)
		return;
	q->apart = false;
	SS_INDEX_EACH(right, &q->own)
		if (ss_is_own(ss_block_prev(right), q->slot))
			ss_picked_push(&picked, right);
	while ((b = ss_picked_pop(&picked))) {
		prev = ss_block_prev(b);
		ss_index_remove(&q->own, prev);
		ss_index_remove(&q->own, b);
		ss_arena_merge(q, prev, b);
		ss_index_insert(&q->own, prev);
		if (ss_is_whole(prev))
			q->idle += prev->size;
	}
}

/* Cuts `size` bytes at `align` out of b, a range of the arena; the rest stays there. NULL: host
 * memory is out. */
static struct ss_block *cut(struct ss_stream_cache *q, struct ss_block *b, uint64_t size,
			    uint64_t align)
{
	uint64_t pad = ss_start_in(b, align) - b->addr, had = b->size;
	struct ss_free_index *index = index_of(q, b);
	struct ss_core *core = q->set->core;
	struct ss_block *head = b, *rest = NULL;
	bool whole = ss_is_whole(b);

	ss_index_remove(index, head);
	if (pad && !(b = ss_block_split(core, &q->spares, head, pad)))
		goto fail;
	if (b->size > size && !(rest = ss_block_split(core, &q->spares, b, size))) {
		if (pad)
			ss_block_merge(core, &q->spares, head, b);
		goto fail;
	}
	if (pad)
		ss_index_insert(index, head);
	if (rest)
		ss_index_insert(index, rest);
	if (whole)
		q->idle -= had;
	ss_set_state(b, SS_BLOCK_QUEUED);
	return b;

fail:
	ss_index_insert(index, head);
	return NULL;
}

/* Would cutting `size` off b divide an idle segment that is better given back whole? */
static bool splits_idle(const struct ss_stream_cache *q, const struct ss_block *b, uint64_t size)
{
	return ss_is_whole(b) && b->size != size && b->size > q->cut_freely;
}

/* The best fit in the arena as it is. Without may_cut no idle segment is divided for it. */
static inline struct ss_block *best(const struct ss_stream_cache *q, uint64_t size, uint64_t align,
				    bool may_cut)
{
	struct ss_block *b = ss_index_best(&q->own, size, align);

	if ((!b || (!may_cut && splits_idle(q, b, size))) && q->foreign.bytes)
		b = ss_index_best(&q->foreign, size, align);
	return b && (may_cut || !splits_idle(q, b, size)) ? b : NULL;
}

struct ss_block *ss_arena_take(struct ss_stream_cache *q, uint64_t size, uint64_t align,
			       bool may_cut)
{
	struct ss_block *b = best(q, size, align, may_cut);

	if (!b && q->apart) {
		ss_arena_settle(q);
		b = best(q, size, align, may_cut);
	}
	return b ? cut(q, b, size, align) : NULL;
}

struct ss_block *ss_arena_idle(const struct ss_stream_cache *q, uint64_t size, uint64_t align)
{
	struct ss_block *b = ss_index_best(&q->own, size, align);

	return b && splits_idle(q, b, size) ? b : NULL;
}

void ss_arena_adopt(struct ss_stream_cache *q, struct ss_block *b)
{
	if (b->n > q->completed_since)
		q->completed_since = b->n;
	b->n = 0;
	ss_set_slot(b, q->slot);
	ss_rehome(b, q->slot + 1);
	ss_memory_touch(q->set->memory, b);
	ss_arena_put_own(q, b, 0);
}

/* ---- for other streams ---------------------------------------------------- */

struct ss_block *ss_arena_next(const struct ss_stream_cache *q, const struct ss_block *b)
{
	bool own = !b || ss_home(b) == q->slot + 1;
	struct ss_block *next = ss_index_next(own ? &q->own : &q->foreign, b);

	return next || !own ? next : ss_index_next(&q->foreign, NULL);
}

struct ss_block *ss_arena_extract(struct ss_stream_cache *q, ss_range_test *may, const void *arg)
{
	struct ss_block *list = NULL, **tail = &list, *b, *next;

	for (b = ss_arena_next(q, NULL); b; b = next) {
		next = ss_arena_next(q, b);
		if (!may(b, arg))
			continue;
		extract(q, b);
		*tail = b;
		tail = &b->left;
		b->left = NULL;
	}
	return list;
}

/* A figure of a moment ago will do. (The thread sanitizer cannot know that.) */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread, noinline))
#endif
uint64_t
ss_cache_free_hint(const struct ss_stream_cache *q)
{
	const volatile uint64_t *own = &q->own.bytes, *foreign = &q->foreign.bytes;

	return *own + *foreign;
}
