/* SPDX-License-Identifier: MIT */
/*
 * The steps of the ladder that take memory from the device.
 *
 * Locks: the pool's, dropped for every driver call.
 */
#include "core/base/rent.h"
#include "core/pool/release.h"
#include "core/pool/request.h"

#define MOST_MOVES 8    /* growths for one allocation that may move or release memory */
#define MANY_STREAMS 64 /* more make an idle check too dear: it costs a fence for each */

/* Bytes that the release threshold keeps during an exchange. They are at most a quarter more
 * than the used peak, because segments of other sizes do not add up. */
static uint64_t kept_by_threshold(const struct ss_pool *pool, const struct ss_view *v)
{
	uint64_t most = ss_min(v->used_high + v->used_high / 4, v->reserved);

	return atomic_load(&pool->threshold_set) ? ss_min(atomic_load(&pool->threshold), most) : 0;
}

uint64_t ss_growth_segment(struct ss_request *r, struct ss_view *v)
{
	ss_view(r, v);
	atomic_store(&r->pool->mem.keep, kept_by_threshold(r->pool, v));
	return ss_place_segment(r->size);
}

/* The idle segments that are released for a new one: none, all, or those that have completed and
 * exceed the threshold. */
enum released { NOTHING, ALL_IDLE, COMPLETED };

/* Can the pool grow without a new peak, if such idle segments are released for it? */
static bool within_peak(struct ss_request *r, enum released released)
{
	struct ss_pool *pool = r->pool;
	uint64_t want, idle = 0;
	struct ss_view v;

	ss_pool_lock(pool);
	if (released == COMPLETED)
		ss_reclaim_all(pool);
	want = ss_growth_segment(r, &v);
	if (released != NOTHING)
		idle = released == ALL_IDLE ? v.idle : ss_memory_releasable(&pool->mem, want);
	ss_pool_unlock(pool);
	return v.reserved + want <= v.reserved_high + idle;
}

/* May idle memory be released or moved? An idle device has completed all frees. If no query is
 * needed, a fence may show that the stream's own frees have completed by now. */
static bool may_move(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	/* Natively, hipMallocAsync on the null stream joins the blocking streams. hipMalloc
	 * joins none. */
	bool joins = r->tl && ss_timeline_kind(r->tl) == SS_TL_NULL && !pool->classic;
	bool unasked = ss_may_release(pool, SS_IDLE_UNASKED), any;

	if (ss_without(SS_RENT_MOVE))
		return false;
	ss_pool_lock(pool);
	any = ss_pool_free_hint(pool) >= SS_FRAME;
	ss_pool_unlock(pool);
	if (any && unasked && r->tl) {
		ss_fence_request(core, r->tl, ss_timeline_now(r->tl),
				 joins ? SS_FENCE_JOINING : SS_FENCE_LATE);
		ss_fences_poll(core, r->tl, -1);
	}
	return unasked || (any && ss_may_release(pool, joins ? SS_IDLE_JOINED : SS_IDLE_FENCED));
}

static bool cheap_to_ask(const struct ss_pool *pool)
{
	return ss_may_release(pool, SS_IDLE_UNASKED) ||
	       ss_order_slots(ss_core_of(pool)) < MANY_STREAMS;
}

enum ss_next ss_step_cut(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_view v;
	bool fragments, yes = false;

	/* A segment of the right size in exchange for idle segments fits better. */
	if (!r->left_uncut || within_peak(r, NOTHING) ||
	    (cheap_to_ask(pool) && within_peak(r, ALL_IDLE) && may_move(r) &&
	     within_peak(r, COMPLETED)))
		return SS_NEXT;
	ss_pool_lock(pool);
	ss_view(r, &v);
	fragments = ss_place_fragments(&v, r->left_uncut, r->size);
	/* Cut only if the pool cannot grow, even with the memory that other pools have idle. */
	if (!fragments || r->oom.released) {
		r->cut = true;
		yes = ss_take_free(r, NULL);
	}
	ss_pool_unlock(pool);
	return yes ? SS_FOUND : SS_NEXT;
}

/* First releases exported segments whose blocks are all free, and retries releases that the
 * driver refused. */
static void retry_releases(struct ss_pool *pool)
{
	bool owes;

	ss_pool_lock(pool);
	owes = ss_memory_owes(&pool->mem) && !ss_order_capturing(ss_core_of(pool));
	ss_pool_unlock(pool);
	if ((atomic_load(&pool->kept) || owes) && ss_may_release(pool, SS_IDLE_FENCED)) {
		ss_ipc_release(pool, false);
		ss_memory_retry(&pool->mem);
	}
}

enum ss_next ss_step_grow(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_growth growth = {.size = r->size, .align = r->align, .slot = SS_SLOT_COMPLETED};
	enum ss_status s;
	struct ss_view v;

	/* A growth may fail to help, because another thread took the memory or because the new
	 * memory did not merge. Then the next growth may fail as well, so the moves are limited.
	 * After them the pool takes memory from the device, until there is none. */
	if (r->grown < MOST_MOVES &&
	    (pool->mem.backing == SS_BACKING_VMM || !within_peak(r, NOTHING)))
		growth.move = may_move(r);
	retry_releases(pool);
	ss_pool_lock(pool);
	if (growth.move)
		ss_reclaim_all(pool); /* the stream's own frees may have completed by now */
	growth.segment = ss_growth_segment(r, &v);
	growth.waited = r->wait.us;
	ss_pool_unlock(pool);
	if (r->shelf) {
		growth.slot = r->shelf->slot;
		r->shelf->cut_freely = SS_CUT_FREELY;
	}
	s = ss_memory_grow(&pool->mem, &growth);
	if (ss_device_low(ss_core_of(pool), pool->mem.dev))
		ss_decay_each_sync(ss_core_of(pool), pool->mem.dev);
	r->grown += s == SS_OK;
	if (s == SS_OK)
		return SS_AGAIN;
	/* After any refusal a smaller request may succeed. Programs can handle
	 * out of memory, but not an unknown error. */
	r->refused = s == SS_ERR_FAILED;
	r->status = s;
	return s == SS_ERR_NOMEM || r->refused ? SS_NEXT : SS_GIVE_UP;
}
