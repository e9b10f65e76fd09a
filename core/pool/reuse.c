/* SPDX-License-Identifier: MIT */
/*
 * The steps of the ladder that find memory which the pool has: the stream's own, what has
 * completed, and what other streams hold.
 *
 * Locks: the pool's, dropped for every driver call.
 */
#include "core/pool/request.h"
#include "core/range/divide.h"

#define FREES_PER_FENCE 96 /* a stream gets a fence for so many frees, in the long run, */
#define FIRST_FENCES 16    /* and so many more at the start */
/* So many bytes, or a 32nd of the pool, are worth asking an idle stream for */
#define GOOD_SHARE (8ull << 20)
/* So many such shares are worth a fence, where only a fence can tell */
#define NULL_SHARES 4
#define ASKED 64 /* so many streams are asked at a time */

/* ---- what the stream and the pool have ------------------------------------------- */

void ss_view(struct ss_request *r, struct ss_view *v)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	struct ss_device_memory *d = ss_device_memory(core, pool->mem.dev);
	uint64_t total = core->info[pool->mem.dev].total_bytes;

	v->used = ss_used(&pool->caches);
	v->used_high = ss_used_high(&pool->caches);
	v->reserved = ss_reserved(pool);
	v->reserved_high = atomic_load(&pool->mem.reserved_high);
	v->idle = pool->mem.idle_bytes + (r->cache ? r->cache->idle : 0);
	v->requests = pool->ids;
	v->exchanges = pool->mem.exchanges;
	v->device = d->limit && d->limit < total ? d->limit : total;
	v->device_reserved = atomic_load(&d->reserved);
}

/* The completed ranges, but idle segments, which may have to go. */
static struct ss_block *pick_all(struct ss_memory *m)
{
	struct ss_block *picked = NULL;

	SS_INDEX_EACH(b, &m->completed)
		if (m->backing == SS_BACKING_VMM || !ss_is_whole(b))
			ss_picked_push(&picked, b);
	return picked;
}

/* The completed ranges beside free ranges of the stream. */
static struct ss_block *pick_beside(struct ss_stream_cache *q)
{
	struct ss_block *picked = NULL, *prev, *next;

	/* What lies on the right may have come to the stream, or completed, since there is a
	 * border. */
	SS_INDEX_EACH(b, &q->own) {
		ss_border_review(b);
		q->apart |= ss_is_own(ss_block_next(b), q->slot);
	}
	SS_INDEX_EACH(b, &q->own) {
		prev = ss_block_prev(b);
		next = ss_block_next(b);
		if (ss_is_free_on(next, SS_SLOT_COMPLETED))
			ss_picked_push(&picked, next);
		/* One between two ranges of the stream is the left one's next. */
		if (ss_is_free_on(prev, SS_SLOT_COMPLETED) &&
		    !ss_is_own(ss_block_prev(prev), q->slot))
			ss_picked_push(&picked, prev);
	}
	return picked;
}

/* Completed ranges beside free ranges of the stream become part of its arena, and merge there. If
 * no other stream uses the pool, all do but idle segments. With many streams there may be thousands
 * of completed ranges, so the stream's own are walked then, which are few. q->lock held. */
static void adopt_completed(struct ss_pool *pool, struct ss_stream_cache *q)
{
	struct ss_block *picked = q->set->count == 1 ? pick_all(&pool->mem) : pick_beside(q), *b;

	if (picked && !ss_arena_ready(q))
		while (ss_picked_pop(&picked))
			;
	atomic_store(&q->scattered, false);
	while ((b = ss_picked_pop(&picked))) {
		ss_completed_remove(&pool->mem, b);
		ss_arena_adopt(q, b);
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

/* What the pool grew for a request may be larger than the block, by its alignment. */
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

/* From the stream's arena, with what lies completed beside it. The parts of a stream's memory may
 * have completed in the middle of its round, so an idle segment is not cut where a completed range
 * fits closer. */
static struct ss_block *from_arena(struct ss_request *r)
{
	struct ss_stream_cache *q = r->cache;
	struct ss_block *b, *idle;
	struct ss_view view;

	ss_bias_lock(&q->lock);
	adopt_completed(r->pool, q);
	b = ss_arena_take(q, r->size, r->align, may_cut(r));
	if (!b && !may_cut(r) && (idle = ss_arena_idle(q, r->size, r->align)) &&
	    !fits_closer(r, idle)) {
		ss_view(r, &view);
		if (!ss_place_cut(&view, idle->size, r->size)) {
			r->left_uncut = idle->size;
		} else {
			/* A range that fits this block closely may not be cut for a smaller one. */
			if (q->cut_freely < idle->size &&
			    !ss_place_fragments(&view, idle->size, SS_GRAIN))
				q->cut_freely = idle->size;
			b = ss_arena_take(q, r->size, r->align, true);
		}
	}
	ss_bias_unlock(&q->lock);
	return b;
}

/* `size` bytes of the completed range b. They are at home in the stream's arena from now on. */
static struct ss_block *cut_completed(struct ss_request *r, struct ss_block *b)
{
	struct ss_memory *m = &r->pool->mem;
	struct ss_stream_cache *q = r->cache;

	b = ss_completed_cut(m, b, ss_start_in(b, r->align), r->size);
	if (b && q)
		ss_rehome(b, q->slot + 1);
	return b;
}

/* From the completed ranges. *before: somebody had that memory before. */
static struct ss_block *from_completed(struct ss_request *r, bool *before)
{
	struct ss_memory *m = &r->pool->mem;
	struct ss_block *b = ss_index_best(&m->completed, r->size, r->align);
	struct ss_view view;

	if (!b)
		return NULL;
	if (m->backing != SS_BACKING_VMM && ss_is_whole(b) && b->size != r->size && !may_cut(r)) {
		ss_view(r, &view);
		if (!ss_place_cut(&view, b->size, r->size)) {
			r->left_uncut = b->size;
			return NULL;
		}
	}
	*before = b->n != 0;
	return cut_completed(r, b);
}

bool ss_look(struct ss_request *r, uint64_t *rule)
{
	struct ss_pool_stats *st = &r->pool->st;
	struct ss_block *b = NULL;
	bool before = false;

	r->left_uncut = 0;
	if (r->cache)
		b = from_arena(r);
	if (ss_request_serve(r, b, rule ? rule : &st->reuse_same_stream))
		return true;
	b = from_completed(r, &before);
	return ss_request_serve(r, b, rule ? rule : before ? &st->reuse_completed : NULL);
}

enum ss_next ss_step_own(struct ss_request *r)
{
	bool yes;

	ss_pool_lock(r->pool);
	yes = ss_look(r, NULL);
	ss_pool_unlock(r->pool);
	return yes ? SS_FOUND : SS_NEXT;
}

/* ---- what other streams have ------------------------------------------------------- */

/* Does only the asking stream use the pool? Then the rest of this file has nothing to find. */
static bool is_alone(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	bool none;

	if (!r->cache || r->cache->set->count != 1)
		return false;
	ss_pool_lock(pool);
	none = !pool->epochs && !pool->unmarked;
	ss_pool_unlock(pool);
	return none;
}

/* Of a thousand streams with a fence under way most have not reached it. */
bool ss_poll_some(struct ss_pool *pool)
{
	uint32_t turn = atomic_load_explicit(&pool->next_polled, memory_order_relaxed);
	bool any = ss_fence_poll_some(ss_core_of(pool), -1, ASKED, &turn);

	atomic_store_explicit(&pool->next_polled, turn, memory_order_relaxed);
	return any;
}

enum ss_next ss_step_other_streams(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	bool yes = false;

	if (is_alone(r))
		return SS_NEXT;
	ss_poll_some(pool);
	ss_pool_lock(pool);
	if (ss_pool_free_hint(pool) >= r->size) {
		ss_reclaim_all(pool);
		yes = ss_look(r, NULL);
	}
	ss_pool_unlock(pool);
	return yes ? SS_FOUND : SS_NEXT;
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
		yes = rules && ss_look(r, rules & SS_RULE_EVENT ? &pool->st.reuse_event :
								  &pool->st.reuse_implicit);
	}
	ss_pool_unlock(pool);
	ss_clock_free(clock);
	return yes ? SS_FOUND : SS_NEXT;
}

/* ---- asking how far the streams are -------------------------------------------------- */

/* How: by a query, which costs an idle stream nothing, and a busy one a packet like a fence; by a
 * fence, one per FREES_PER_FENCE frees in the long run, a few at the start, and two for every
 * growth that went before, because a fence is much cheaper than memory. A stream with a fence under
 * way is busy, so a query of it would be for nothing. A stream that joins others would need a
 * command before a query says anything, so it gets a fence when it holds several good shares of the
 * pool. */
enum { ASK_IDLE = 1, ASK_FENCE = 2 };

struct asked {
	struct ss_timeline *tl;
	struct ss_stream_cache *q; /* NULL: asked for the sake of an epoch */
	uint64_t n;
	unsigned how;
};

static uint64_t good_share(const struct ss_pool *pool)
{
	return ss_max(ss_reserved(pool) / 32, GOOD_SHARE);
}

/* Do streams that can be asked hold a good share together? A producer may have a hundred
 * consumers. */
static bool much_elsewhere(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	uint64_t share = good_share(pool), bytes = 0;

	SS_CACHES_EACH(q, &pool->caches) {
		if (q != r->cache && ss_stream_can_ask(q->tl))
			bytes += ss_cache_free_hint(q);
		if (bytes >= share)
			return true;
	}
	return false;
}

static unsigned how_to_ask(struct ss_pool *pool, struct ss_stream_cache *q, bool much)
{
	bool can = ss_stream_can_ask(q->tl);
	unsigned how = 0;
	uint64_t frees;

	if (!ss_cache_free_hint(q))
		return 0;
	ss_bias_visit(&q->lock);
	frees = q->frees;
	ss_bias_unlock(&q->lock);
	/* Asked already, and a fence will tell? */
	if (frees == q->frees_fenced && (!much || ss_fence_pending(q->tl)))
		return 0;
	if (frees != q->frees_fenced &&
	    (q->fences < FIRST_FENCES + frees / FREES_PER_FENCE + 2 * pool->mem.grown ||
	     (!can && ss_cache_free_hint(q) >= NULL_SHARES * good_share(pool))))
		how = ASK_FENCE;
	if ((how || much) && can && !ss_fence_pending(q->tl))
		how |= ASK_IDLE;
	if (how)
		q->frees_fenced = frees;
	return how;
}

/* An epoch marks every stream, and most of them are idle. A query tells that without a command on
 * the stream. */
static struct asked ask_for_epoch(const struct ss_pool *pool, const struct ss_mark *m)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_timeline *tl = ss_slot(core, m->slot);
	unsigned how = ASK_FENCE;

	if (!ss_fence_pending(tl) && ss_stream_can_ask(tl))
		how |= ASK_IDLE;
	return (struct asked){tl, NULL, m->n, how};
}

/* Who is to be asked; fills `want`. Pool lock held. */
static unsigned list_asked(struct ss_request *r, struct asked *want)
{
	struct ss_pool *pool = r->pool;
	bool much = much_elsewhere(r);
	uint32_t first = pool->next_asked;
	const struct ss_epoch *e;
	unsigned count = 0;

	/* From the stream that is next on, then from the first on. */
	for (int round = 0; round < 2 && atomic_load(&pool->opportunistic); round++)
		SS_CACHES_EACH(q, &pool->caches) {
			if (count == ASKED)
				break;
			if (q == r->cache || (q->slot < first) != (round == 1))
				continue;
			want[count] = (struct asked){q->tl, q, ss_timeline_now(q->tl),
						     how_to_ask(pool, q, much)};
			count += want[count].how != 0;
			if (count == ASKED)
				pool->next_asked = q->slot + 1;
		}
	e = ss_pressure_due(pool) ? pool->epochs : NULL;
	for (uint32_t i = 0; e && i < e->count && count < ASKED; i++)
		if (!ss_pool_mark_done(pool, e->mark[i].slot, e->mark[i].n))
			want[count++] = ask_for_epoch(pool, &e->mark[i]);
	return count;
}

/* True: a stream was at its end, or a fence is on its way. No lock held. */
static bool ask(struct ss_core *core, struct asked *want, unsigned count)
{
	unsigned looks = 0;
	bool any = false;

	for (unsigned i = 0; i < count; i++) {
		struct asked *a = &want[i];

		if (a->how & ASK_IDLE && ss_stream_record_and_ask(core, a->tl))
			a->how = ASK_IDLE;
		else if (a->how & ASK_FENCE && ss_fence_request(core, a->tl, a->n, SS_FENCE_LATE))
			a->how = ASK_FENCE;
		else
			a->how = 0;
		any |= a->how != 0;
	}
	/* A stream that has not reached an older fence is busy; looking again and again would only
	 * pay on a quiet machine. */
	for (unsigned i = 0; i < count; i++)
		if (want[i].how == ASK_FENCE && ss_fence_pending(want[i].tl) <= 1)
			ss_fence_poll_briefly(core, want[i].tl, want[i].n, &looks);
	return any;
}

enum ss_next ss_step_ask(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct asked want[ASKED];
	unsigned count;
	bool yes = false;

	if (is_alone(r))
		return SS_NEXT;
	ss_pool_lock(pool);
	count = list_asked(r, want);
	ss_pool_unlock(pool);
	if (!count || !ask(ss_core_of(pool), want, count))
		return SS_NEXT;
	ss_pool_lock(pool);
	for (unsigned i = 0; i < count; i++)
		if (want[i].q)
			want[i].q->fences += want[i].how == ASK_FENCE;
	if (ss_pool_free_hint(pool) >= r->size) {
		ss_reclaim_all(pool);
		yes = ss_look(r, NULL);
	}
	ss_pool_unlock(pool);
	return yes ? SS_FOUND : SS_NEXT;
}
