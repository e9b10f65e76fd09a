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
#include "core/cache/bin.h"

#define BIN_PART 8 /* part of the merged bytes that may wait in bins */

static struct ss_free_index *index_of(struct ss_stream_cache *q, const struct ss_block *b)
{
	return ss_home(b) == q->slot + 1 ? &q->own : &q->foreign;
}

static void insert(struct ss_stream_cache *q, struct ss_block *b)
{
	ss_set_state(b, SS_BLOCK_FREE);
	ss_index_insert(index_of(q, b), b);
	if (ss_is_whole(b))
		q->idle += b->size;
}

static void extract(struct ss_stream_cache *q, struct ss_block *b)
{
	ss_index_remove(index_of(q, b), b);
	ss_set_state(b, SS_BLOCK_QUEUED);
	if (ss_is_whole(b))
		q->idle -= b->size;
}

/* a swallows b, its right neighbour. */
static void merge(struct ss_stream_cache *q, struct ss_block *a, struct ss_block *b)
{
	if (!SS_MUTANT_IS(47))
		a->n = ss_merged_mark(a, b, q->slot);
	ss_block_merge(q->set->core, &q->spares, a, b);
}

void ss_arena_put(struct ss_stream_cache *q, struct ss_block *b)
{
	struct ss_block *next, *prev;

	if (ss_home(b) != q->slot + 1) {
		insert(q, b);
		return;
	}
	next = ss_block_next(q->set->core, b);
	prev = ss_block_prev(b);
	if (ss_is_own(prev, q->slot)) {
		if (ss_is_own(next, q->slot)) {
			ss_index_remove(&q->own, next);
			merge(q, b, next);
		}
		ss_index_replace(&q->own, prev, prev->size, prev, prev->size + b->size);
		merge(q, prev, b);
		b = prev;
	} else if (ss_is_own(next, q->slot)) {
		ss_index_replace(&q->own, next, next->size, b, b->size + next->size);
		merge(q, b, next);
		ss_set_state(b, SS_BLOCK_FREE);
	} else {
		insert(q, b);
		return;
	}
	if (ss_is_whole(b))
		q->idle += b->size;
}

void ss_arena_drain(struct ss_stream_cache *q)
{
	for (unsigned i = 0; q->blocks; i++) {
		struct ss_block *b, *next;

		i = ss_filled_from(q, i);
		b = q->bin[i].head;
		q->bin[i].head = NULL;
		q->filled[i] = 0;
		for (; b; b = next, q->blocks--) {
			next = b->left;
			ss_arena_put(q, b);
		}
	}
	q->bytes = 0;
}

/* Cuts `size` bytes at `align` out of b, a range of the arena; the rest stays there. NULL: host memory is
 * out. */
static struct ss_block *cut(struct ss_stream_cache *q, struct ss_block *b, uint64_t size,
			    uint64_t align)
{
	uint64_t pad = ss_start_in(b, align) - b->addr, had = b->size;
	struct ss_free_index *index = index_of(q, b);
	struct ss_core *core = q->set->core;
	struct ss_block *head = b, *rest = NULL;
	bool whole = ss_is_whole(b);

	if (pad && !(b = ss_block_split(core, &q->spares, head, pad)))
		return NULL;
	if (b->size > size && !(rest = ss_block_split(core, &q->spares, b, size))) {
		if (pad)
			ss_block_merge(core, &q->spares, head, b);
		return NULL;
	}
	if (SS_MUTANT_IS(46) && rest)
		rest->n = 0;
	if (pad) {
		ss_index_replace(index, head, had, head, pad);
		if (rest)
			ss_index_insert(index, rest);
	} else if (rest) {
		ss_index_replace(index, b, had, rest, rest->size);
	} else {
		ss_index_remove(index, b);
	}
	if (whole)
		q->idle -= had;
	ss_set_state(b, SS_BLOCK_QUEUED);
	return b;
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

struct ss_block *ss_arena_take(struct ss_stream_cache *q, uint64_t size, uint64_t align, bool may_cut)
{
	struct ss_block *b;

	/* An exact fit costs nothing. Before anything is cut up, everything merges, unless what waits
	 * in bins is little beside what has merged. */
	while (!(b = best(q, size, align, may_cut)) ||
	       (b->size != size && q->bytes * BIN_PART > q->own.bytes)) {
		if (!q->blocks)
			break;
		ss_arena_drain(q);
	}
	if (!b)
		return NULL;
	b = cut(q, b, size, align);
	if (!b)
		return NULL;
	b->bin = (uint8_t)ss_bin(size);
	if (q->asked[b->bin] == size && !ss_bin_holding(q, size))
		ss_bin_claim(q, size);
	q->asked[b->bin] = size;
	return b;
}

struct ss_block *ss_arena_idle(const struct ss_stream_cache *q, uint64_t size, uint64_t align)
{
	struct ss_block *b = ss_index_best(&q->own, size, align);

	return b && splits_idle(q, b, size) ? b : NULL;
}

void ss_arena_adopt(struct ss_stream_cache *q, struct ss_block *b)
{
	if (q->set->count > 1)
		b = ss_block_rehome(q->set->core, &q->spares, &q->set->memory->spares, b, q->slot);
	if (b->n > q->completed_since)
		q->completed_since = b->n;
	b->n = 0;
	ss_set_slot(b, q->slot);
	ss_set_home(b, q->slot + 1);
	ss_memory_touch(q->set->memory, b);
	ss_arena_put(q, b);
}

/* ---- for other streams ---------------------------------------------------- */

/* What a walk over the free ranges of an arena finds. */
struct find {
	ss_range_test *may;
	const void *arg;
	struct ss_block *picked;
	uint64_t bytes;
};

static void pick(struct ss_block *b, void *arg)
{
	struct find *f = arg;

	if (f->may(b, f->arg))
		ss_picked_push(&f->picked, b);
}

static void add(struct ss_block *b, void *arg)
{
	struct find *f = arg;

	f->bytes += f->may(b, f->arg) ? b->size : 0;
}

uint64_t ss_arena_bytes(struct ss_stream_cache *q, ss_range_test *may, const void *arg)
{
	struct find f = {.may = may, .arg = arg};

	ss_index_each(&q->own, add, &f);
	ss_index_each(&q->foreign, add, &f);
	for (unsigned i = ss_filled_from(q, 0); i < SS_BINS; i = ss_filled_from(q, i + 1))
		for (struct ss_block *b = q->bin[i].head; b; b = b->left)
			add(b, &f);
	return f.bytes;
}

/* Takes what `may` is true for out of a bin. Returns it before `list`. */
static struct ss_block *extract_bin(struct ss_stream_cache *q, unsigned i, const struct find *f,
				    struct ss_block *list)
{
	struct ss_block **at = &q->bin[i].head, *b;

	while ((b = *at)) {
		if (!f->may(b, f->arg)) {
			at = &b->left;
			continue;
		}
		*at = b->left;
		b->left = list;
		list = b;
		q->blocks--;
		q->bytes -= b->size;
	}
	q->filled[i] = q->bin[i].head != NULL;
	return list;
}

/* Block by block: neighbours that merged first would carry the later mark. */
struct ss_block *ss_arena_extract(struct ss_stream_cache *q, ss_range_test *may, const void *arg)
{
	struct find f = {.may = may, .arg = arg};
	struct ss_block *list = NULL, *b;

	ss_index_each(&q->own, pick, &f);
	ss_index_each(&q->foreign, pick, &f);
	while ((b = ss_picked_pop(&f.picked))) {
		extract(q, b);
		b->left = list;
		list = b;
	}
	for (unsigned i = ss_filled_from(q, 0); i < SS_BINS; i = ss_filled_from(q, i + 1))
		list = extract_bin(q, i, &f, list);
	return list;
}

/* A figure of a moment ago will do. (The thread sanitizer cannot know that.) */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize_thread, noinline))
#endif
uint64_t ss_cache_free_hint(const struct ss_stream_cache *q)
{
	const volatile uint64_t *own = &q->own.bytes, *foreign = &q->foreign.bytes, *bins = &q->bytes;

	return *own + *foreign + *bins;
}
