/* SPDX-License-Identifier: MIT */
/*
 * The steps of the ladder that find memory in the pool: the stream's own ranges, completed ranges,
 * and ranges of other streams.
 *
 * Locks: the pool's, dropped for every driver call.
 */
#include "core/base/rent.h"
#include "core/pool/request.h"
#include "core/range/divide.h"

#define ASKED 64 /* streams that are asked at a time */

/* ---- ranges of the stream and of the pool ---------------------------------------- */

void ss_view(struct ss_request *r, struct ss_view *v)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	struct ss_device_memory *d = ss_device_memory(core, pool->mem.dev);
	uint64_t total = core->info[pool->mem.dev].total_bytes;

	v->used = ss_used(&pool->shelves);
	v->used_high = ss_used_high(&pool->shelves);
	v->reserved = ss_reserved(pool);
	v->reserved_high = atomic_load(&pool->mem.reserved_high);
	v->idle = pool->mem.idle_bytes +
		  (r->shelf ? atomic_load_explicit(&r->shelf->idle, memory_order_relaxed) : 0);
	v->requests = pool->ids;
	v->exchanges = pool->mem.exchanges;
	v->device = d->limit && d->limit < total ? d->limit : total;
	v->device_reserved = atomic_load(&d->reserved);
}

/* The completed ranges, except idle segments, which may have to be released. */
static struct ss_block *pick_all(struct ss_memory *m)
{
	struct ss_block *picked = NULL;

	SS_INDEX_EACH(b, &m->completed)
		if (m->backing == SS_BACKING_VMM || !ss_is_whole(b))
			ss_picked_push(&picked, b);
	return picked;
}

/* The completed ranges beside free ranges of the stream. */
static struct ss_block *pick_beside(struct ss_shelf *q)
{
	struct ss_block *picked = NULL, *prev, *next;

	SS_INDEX_EACH(b, &q->free)
		ss_border_review(b); /* the range across the border may have completed meanwhile */
	SS_INDEX_EACH(b, &q->free) {
		prev = ss_block_prev(b);
		next = ss_block_next(b);
		if (ss_is_free_on(next, SS_SLOT_COMPLETED))
			ss_picked_push(&picked, next);
		/* A completed range with the stream's ranges on both sides is found from the
		 * left one. */
		if (ss_is_free_on(prev, SS_SLOT_COMPLETED) &&
		    !ss_is_free_on(ss_block_prev(prev), q->slot))
			ss_picked_push(&picked, prev);
	}
	return picked;
}

/* Completed ranges beside free ranges of the stream become part of its shelf, and merge there.
 * If no other stream uses the pool, all completed ranges do, except idle segments. With many
 * streams there may be thousands of completed ranges; then the stream's own ranges are walked,
 * which are few. q->lock held. */
static void adopt_completed(struct ss_pool *pool, struct ss_shelf *q)
{
	struct ss_block *picked, *b;

	if (ss_without(SS_RENT_ADOPT))
		return;
	picked = q->set->count > 1 ? pick_beside(q) : pick_all(&pool->mem);
	while ((b = ss_picked_pop(&picked))) {
		ss_completed_remove(&pool->mem, b);
		ss_shelf_adopt(q, b);
	}
}

bool ss_request_serve(struct ss_request *r, struct ss_block *b, uint64_t *rule)
{
	struct ss_pool *pool = r->pool;

	if (!b)
		return false;
	r->rule = rule;
	if (rule)
		++*rule;
	pool->st.misses += r->grown != 0;
	r->block = b;
	r->id = pool->id_base | ++pool->ids;
	return true;
}

/* A segment that the pool added for a request may be larger than the block, because of its
 * alignment. */
static bool may_cut(const struct ss_request *r)
{
	return r->cut || r->grown;
}

/* Is there a completed range that fits the block more closely than this one? */
static bool fits_closer(const struct ss_request *r, const struct ss_block *than)
{
	struct ss_block *b = ss_index_best(&r->pool->mem.completed, r->size, r->align);

	return b && b->size < than->size;
}

/* May the idle segment be cut for r by the rules of placement? */
static bool agrees(struct ss_request *r, const struct ss_block *idle, struct ss_view *v)
{
	ss_view(r, v);
	if (ss_place_cut(v, idle->size, r->size))
		return true;
	r->left_uncut = idle->size;
	return false;
}

/* From the stream's shelf, with the completed ranges beside it. Parts of a stream's memory may
 * have completed in the middle of its round, so an idle segment is not cut if a completed range
 * fits more closely. */
static struct ss_block *from_shelf(struct ss_request *r)
{
	struct ss_shelf *q = r->shelf;
	struct ss_block *b, *idle;
	struct ss_view view;

	ss_bias_lock(&q->lock);
	adopt_completed(r->pool, q);
	b = ss_shelf_take(q, r->size, r->align, may_cut(r));
	if (!b && !may_cut(r) && (idle = ss_shelf_idle(q, r->size, r->align)) &&
	    !fits_closer(r, idle) && agrees(r, idle, &view)) {
		/* A range that fits this block closely may not be cut for a smaller block. */
		if (!ss_without(SS_RENT_CUT_FREELY) && q->cut_freely < idle->size &&
		    !ss_place_fragments(&view, idle->size, SS_GRAIN))
			q->cut_freely = idle->size;
		b = ss_shelf_take(q, r->size, r->align, true);
	}
	ss_bias_unlock(&q->lock);
	return b;
}

/* From the completed ranges. From now on the block belongs to the stream's shelf. *before: the
 * memory had an owner before. */
static struct ss_block *from_completed(struct ss_request *r, bool *before)
{
	struct ss_memory *m = &r->pool->mem;
	struct ss_block *b = ss_index_best(&m->completed, r->size, r->align);
	struct ss_view view;

	if (!b || (m->backing != SS_BACKING_VMM && ss_is_whole(b) && b->size != r->size &&
		   !may_cut(r) && !agrees(r, b, &view)))
		return NULL;
	*before = b->n != 0;
	b = ss_completed_cut(m, b, ss_start_in(b, r->align), r->size);
	if (b && r->shelf)
		ss_rehome(b, r->shelf->slot + 1);
	return b;
}

bool ss_take_free(struct ss_request *r, uint64_t *rule)
{
	struct ss_pool_stats *st = &r->pool->st;
	struct ss_block *b = NULL;
	bool before = false;

	r->left_uncut = 0;
	if (r->shelf)
		b = from_shelf(r);
	if (ss_request_serve(r, b, rule ? rule : &st->reuse_same_stream))
		return true;
	b = from_completed(r, &before);
	return ss_request_serve(r, b, rule ? rule : before ? &st->reuse_completed : NULL);
}

enum ss_next ss_step_own(struct ss_request *r)
{
	bool yes;

	ss_pool_lock(r->pool);
	yes = ss_take_free(r, NULL);
	ss_pool_unlock(r->pool);
	return yes ? SS_FOUND : SS_NEXT;
}

/* ---- ranges of other streams ------------------------------------------------------- */

/* Does only the asking stream use the pool? Then the rest of this file has nothing to find. */
static bool is_alone(const struct ss_request *r)
{
	return r->shelf && r->shelf->set->count == 1 && !atomic_load(&r->pool->all.bytes);
}

/* Of a thousand streams with an open fence most have not reached it, so only a few are polled. */
bool ss_pool_poll_some(struct ss_pool *pool)
{
	uint32_t turn = atomic_load_explicit(&pool->next_polled, memory_order_relaxed);
	bool any = ss_fences_poll_some(ss_core_of(pool), -1, ASKED, &turn);

	atomic_store_explicit(&pool->next_polled, turn, memory_order_relaxed);
	return any;
}

/* From the completed ranges of all streams. */
static bool from_all(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	bool yes = false;

	ss_pool_lock(pool);
	if (ss_pool_free_hint(pool) >= r->size) {
		ss_reclaim_all(pool);
		yes = ss_take_free(r, NULL);
	}
	ss_pool_unlock(pool);
	return yes;
}

enum ss_next ss_step_event_order(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_clock *clock;
	unsigned rules;
	bool yes = false;

	if (is_alone(r) || !r->tl)
		return SS_NEXT;
	clock = ss_clock_of(r->tl);
	ss_pool_lock(pool);
	if (ss_pool_free_hint(pool) >= r->size) {
		rules = ss_reclaim_ordered(pool, r->tl, clock, r->size);
		yes = rules && ss_take_free(r, rules & SS_RULE_EVENT ? &pool->st.reuse_event :
								       &pool->st.reuse_implicit);
	}
	ss_pool_unlock(pool);
	ss_clock_free(clock);
	return yes ? SS_FOUND : SS_NEXT;
}

/* ---- asking the streams for their progress ------------------------------------------- */

/* A stream with pending frees whose progress is not known. A query costs an idle stream nothing.
 * A busy stream gets a fence, so that it is not asked again: a fence is much cheaper than
 * memory. A stream that joins others would need a command before a query proves anything, so it
 * gets the fence at once. */
struct asked {
	struct ss_timeline *tl;
	uint64_t n;
	bool fenced; /* a fence was recorded */
};

static bool is_to_be_asked(struct ss_shelf *q)
{
	uint64_t frees;
	bool told;

	if (!ss_shelf_free_hint(q))
		return false;
	ss_bias_visit(&q->lock);
	frees = q->frees;
	ss_bias_unlock(&q->lock);
	told = frees == q->frees_fenced && ss_fence_pending(q->tl);
	q->frees_fenced = frees;
	return !told;
}

/* Is it time to ask the streams on behalf of ALL? A fence for every stream is dear, but frees
 * that are fenced in large groups complete late. So a fence is due when a fifth of the bytes has
 * none. Pool lock held. */
static bool is_due(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t told, open = atomic_load(&pool->all.bytes);

	if (!open || !pool->classic || ss_nearly_full(core, pool->mem.dev))
		return open;
	told = ss_all_expected(core, pool->mem.dev);
	for (const struct ss_block *b = pool->all.oldest; b && b->n <= told; b = b->right)
		open -= b->size;
	return 5 * open >= atomic_load(&pool->all.bytes);
}

/* Lists the streams to ask in `want`. Pool lock held. */
static unsigned list_asked(struct ss_request *r, struct asked *want)
{
	struct ss_pool *pool = r->pool;
	uint32_t first = pool->next_asked, i = 0;
	struct ss_timeline *tl;
	unsigned count = 0;
	uint64_t n;

	/* First from next_asked to the end, then from the first stream on. */
	for (int round = 0; round < 2 && atomic_load(&pool->opportunistic); round++)
		SS_SHELVES_EACH(q, &pool->shelves) {
			if (count == ASKED)
				break;
			if (q == r->shelf || (q->slot < first) != (round == 1) ||
			    !is_to_be_asked(q))
				continue;
			want[count++] = (struct asked){q->tl, ss_timeline_now(q->tl), false};
			pool->next_asked = q->slot + 1;
		}
	if (is_due(pool))
		while (count < ASKED && (tl = ss_all_open(ss_core_of(pool), pool->mem.dev, &i, &n)))
			want[count++] = (struct asked){tl, n, false};
	return count;
}

/* Asks the streams in `want`. True: a stream was idle, or a fence will show its progress. No
 * lock held. */
static bool ask(struct ss_core *core, struct asked *want, unsigned count)
{
	unsigned looks = 0;
	bool any = false;

	for (struct asked *a = want; a < want + count; a++) {
		if (ss_stream_can_ask(a->tl) && !ss_fence_pending(a->tl) &&
		    ss_stream_record_and_ask(core, a->tl)) {
			any = true;
			continue;
		}
		a->fenced = ss_fence_request(core, a->tl, a->n, SS_FENCE_LATE);
		any |= a->fenced;
	}
	/* A stream that has not reached an older fence is busy; repeated polls would only pay on
	 * a quiet machine. */
	for (struct asked *a = want; a < want + count; a++)
		if (a->fenced && ss_fence_pending(a->tl) <= 1)
			ss_fence_poll_briefly(core, a->tl, a->n, &looks);
	return any;
}

enum ss_next ss_step_ask(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct asked want[ASKED];
	unsigned count;

	if (is_alone(r))
		return SS_NEXT;
	ss_pool_poll_some(pool);
	if (from_all(r))
		return SS_FOUND;
	ss_pool_lock(pool);
	count = list_asked(r, want);
	ss_pool_unlock(pool);
	return count && ask(ss_core_of(pool), want, count) && from_all(r) ? SS_FOUND : SS_NEXT;
}
