/* SPDX-License-Identifier: MIT */
/*
 * A device that is behind the host: when an allocation waits for pending frees instead of growing.
 *
 * A host that is far ahead has freed much memory that the device still uses. That memory cannot be
 * moved, exchanged or taken by other streams yet. A pool that has more free memory than the request
 * needs would then grow past its peak. Instead it waits for the oldest pending frees, and as soon
 * as enough of them have completed the ladder begins anew. Work that was enqueued since keeps the
 * device busy. A loop that has reached its peak never waits.
 *
 * If hipFree does not wait, a host that is ahead frees faster than the device completes. hipMalloc
 * takes only completed memory, so it would hold a block for every pending free. So beyond a bound
 * hipMalloc waits for the oldest pending frees. The real hipFree would have waited for all of them.
 *
 * Locks: the pool's. None while waiting.
 */
#include "core/base/rent.h"
#include "core/pool/release.h"
#include "core/pool/request.h"

#define FENCED_PART 4 /* fences cover so many times the missing bytes */
#define MOVES_PART 2  /* a wait for the device must save one part in so many of the missing bytes */
#define LOOKED_AT 16  /* streams that are asked between two naps; more take turns */

/* The bytes by which the pool would grow now; fills in the view. Pool lock held. */
static uint64_t missing(struct ss_request *r, struct ss_view *v)
{
	struct ss_growth growth = {.size = r->size, .align = r->align, .slot = r->shelf->slot};

	growth.segment = ss_growth_segment(r, v);
	return ss_memory_short(&r->pool->mem, &growth);
}

/* Would growing now set a new peak? Pool lock held. */
static bool sets_peak(struct ss_request *r)
{
	struct ss_view v;
	uint64_t more = missing(r, &v);

	return v.reserved + more > v.reserved_high;
}

/* Bytes of chunks that lie wholly in one free range. Ranges that merge only when they complete
 * are not counted. Pool lock held. */
static uint64_t movable(struct ss_pool *pool)
{
	uint64_t bytes = 0;

	SS_INDEX_EACH(b, &pool->mem.completed)
		bytes += ss_memory_movable(&pool->mem, b);
	SS_SHELVES_EACH(q, &pool->shelves) {
		if (!ss_shelf_free_hint(q))
			continue;
		ss_bias_visit(&q->lock);
		SS_INDEX_EACH(b, &q->free)
			bytes += ss_memory_movable(&pool->mem, b);
		ss_bias_unlock(&q->lock);
	}
	return bytes;
}

/* Would it help if all pending frees had completed? It would if chunks move, so that the pool
 * grows by less, or if idle segments are exchanged for one of another size. Pool lock held. */
static bool may_exchange(struct ss_request *r)
{
	struct ss_memory *m = &r->pool->mem;
	struct ss_view v;
	uint64_t more = missing(r, &v);

	if (m->backing == SS_BACKING_VMM)
		return !m->core->info[m->dev].access_prefix &&
		       v.reserved + more / MOVES_PART <= v.reserved_high + movable(r->pool);
	return v.reserved + ss_growth_segment(r, &v) <= v.reserved_high + v.idle;
}

/* ---- hipMalloc ------------------------------------------------------------------- */

/* hipMalloc waits if the pending bytes exceed the largest of these: */
#define FLOOR (32ull << 20) /* bytes; smaller growth does not matter */
#define PER_STREAM 3        /* blocks of the requested size; each stream uses a fourth */
#define HIGH_PART 8         /* one part in so many of the used peak */

bool ss_much_pending(struct ss_pool *pool, uint64_t size)
{
	uint64_t streams = ss_order_streams(ss_core_of(pool), pool->mem.dev);
	uint64_t bytes = PER_STREAM * ss_max(streams, 1) * size;

	bytes = ss_max(ss_max(bytes, ss_used_high(&pool->shelves) / HIGH_PART), FLOOR);
	return pool->classic && atomic_load(&pool->all.bytes) >= bytes;
}

/* ---- streams --------------------------------------------------------------------- */

/* The target of a stream's wait: frees of any stream, or an idle device. An idle device is
 * needed where a release waits for the device. */
enum target { ALL, DEVICE };

/* Might a wait for `target` help? Pool lock held. */
static bool might_help(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	uint64_t all, mine = pool->mem.completed.bytes;

	if (!r->tl)
		return target == ALL && ss_much_pending(pool, r->size);
	mine += ss_shelf_free_hint(r->shelf);
	all = ss_pool_free_hint(pool);
	if (all < r->size || !sets_peak(r))
		return false;
	if (target == DEVICE)
		return !ss_without(SS_RENT_WAIT_IDLE) && !ss_may_release(pool, SS_IDLE_UNASKED) &&
		       may_exchange(r);
	return all > mine;
}

/* Requests fences that cover enough of the pending frees. */
static void request_fences(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t bytes = 0;

	if (!r->tl)
		return; /* the row before this one has asked */
	if (target == DEVICE) {
		ss_device_record_and_ask(core, pool->mem.dev,
					 ss_timeline_kind(r->tl) == SS_TL_NULL);
		return;
	}
	SS_SHELVES_EACH(q, &pool->shelves) {
		uint64_t n = ss_timeline_now(q->tl), free = ss_shelf_free_hint(q);

		if (!free)
			continue;
		/* Natively, hipMallocAsync on the null stream joins the blocking streams. */
		if (ss_fence_request(core, q->tl, n,
				     q == r->shelf ? SS_FENCE_JOINING : SS_FENCE_LATE))
			bytes += free;
		if (bytes >= FENCED_PART * r->size)
			break;
	}
}

/* Will a fence, or (*waits) the end of another thread's wait, show that a free has completed? */
static bool is_expected(struct ss_request *r, enum target target, bool *waits)
{
	struct ss_core *core = ss_core_of(r->pool);

	*waits = false;
	if (!r->tl)
		return r->pool->all.oldest &&
		       r->pool->all.oldest->n <= ss_all_expected(core, r->pool->mem.dev);
	if (target == DEVICE)
		return ss_fences_expected(core, r->pool->mem.dev, waits);
	SS_SHELVES_EACH(q, &r->pool->shelves)
		if (ss_shelf_free_hint(q) && ss_fence_expected(core, q->tl, waits))
			return true;
	return false;
}

/* Has any free that r waits for completed? No lock held. */
static bool poll_fences(struct ss_request *r, enum target target)
{
	struct ss_core *core = ss_core_of(r->pool);

	if (!r->tl)
		return ss_fences_poll(core, NULL, -1);
	return ss_fences_poll_some(core, target == DEVICE ? r->pool->mem.dev : -1, LOOKED_AT,
				   &r->wait.turn);
}

/* Has the oldest block that hipMalloc waits for completed? Then whoever saw it may be another
 * thread, and a look of our own finds nothing new. Pool lock held. */
static bool has_completed(const struct ss_request *r)
{
	const struct ss_block *b = r->tl ? NULL : r->pool->all.oldest;

	return b && ss_pool_mark_done(r->pool, SS_SLOT_ALL, b->n);
}

/* Collects completed memory and looks for r's block in it. SS_AGAIN: enough completed that the
 * pool need not set a new peak. SS_NEXT: not enough. Pool lock held. */
static enum ss_next gather(struct ss_request *r)
{
	ss_reclaim_all(r->pool);
	if (ss_take_free(r, NULL))
		return SS_FOUND;
	return (r->tl ? sets_peak(r) : ss_much_pending(r->pool, r->size)) ? SS_NEXT : SS_AGAIN;
}

/* Waits until there is enough memory, or nothing more to wait for. Pool lock held, dropped
 * meanwhile. */
static enum ss_next wait_for(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	uint64_t before = r->wait.us;
	enum ss_next next = SS_NEXT;
	bool moved = false, waits;

	while (next == SS_NEXT && is_expected(r, target, &waits) && ss_wait_nap(r, moved)) {
		ss_pool_unlock(pool);
		moved = poll_fences(r, target);
		ss_pool_lock(pool);
		if (moved || waits || has_completed(r))
			next = gather(r);
	}
	if (next == SS_NEXT && (r->wait.us == before || r->wait.over))
		return SS_NEXT;
	ss_wait_worked(r);
	return next == SS_FOUND ? SS_FOUND : SS_AGAIN;
}

static enum ss_next try_wait(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	enum ss_next next = SS_NEXT;
	bool might, moved, waits;

	ss_pool_lock(pool);
	might = might_help(r, target);
	ss_pool_unlock(pool);
	if (!might)
		return SS_NEXT;
	request_fences(r, target);
	moved = ss_pool_poll_some(pool);
	ss_pool_lock(pool);
	/* The device may have reached the fences already. */
	if (moved || has_completed(r))
		next = gather(r);
	if (next == SS_NEXT && is_expected(r, target, &waits) && ss_wait_turn(r))
		next = wait_for(r, target);
	ss_pool_unlock(pool);
	return next;
}

enum ss_next ss_growth_wait(struct ss_request *r)
{
	enum ss_next next = SS_NEXT;

	for (enum target target = ALL; target <= DEVICE && next == SS_NEXT; target++)
		next = try_wait(r, target);
	return next;
}
