/* SPDX-License-Identifier: MIT */
/*
 * The shelf of a stream: ranges that the stream cuts and merges under the shelf's own lock.
 *
 * Neighbours merge whatever their marks, and the result carries the later mark: the stream itself
 * may always reuse them, and other streams wait a little longer.
 *
 * Locks: shelf->lock, held by the caller.
 */
#include "core/shelf/hit.h"

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

struct ss_block *ss_shelf_take(struct ss_shelf *q, uint64_t size, uint64_t align, bool may_cut)
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
