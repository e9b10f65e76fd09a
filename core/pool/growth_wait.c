/* SPDX-License-Identifier: MIT */
/*
 * A device that is behind the host: when an allocation waits for pending frees instead of growing,
 * and for how long.
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
 * A wait is made of naps, lasts for a bounded time, and never goes on while the device may need the
 * host. It costs nothing as long as the device has enough work after the fence that is waited for.
 * But the work before a fence may itself wait for the next call of this thread. So a wait ends when
 * nothing has completed for some time. Each failed wait makes the next waits shorter, and a wait
 * that helped takes one such failure back. With these two rules alone, a stream that stands still
 * would be forgotten whenever another stream progresses. So all failed waits share a budget, which
 * grows with the running time of the process. When the budget is spent, waits are brief. Waits do
 * not stop altogether, because a host that is ahead of the device and never waits soon takes many
 * times the memory that it needs. No wait is inside the runtime: fences are polled.
 *
 * Locks: the pool's. None while waiting.
 */
#include "core/base/rent.h"
#include "core/pool/release.h"
#include "core/pool/request.h"

#define FENCED_PART 4 /* fences cover so many times the missing bytes */
#define MOVES_PART 2  /* a wait for the device must save one part in so many of the missing bytes */
#define LOOKED_AT 16  /* streams that are asked between two naps; more take turns */

/* A wait ends after QUIET_US without a completion, since a busy machine alone may take that
 * long, plus QUIET_TIMES the longest time that passed lately between two completions. */
#define QUIET_US 50000
#define QUIET_TIMES 4 /* times the recent gap between completions */
#define MOST_FAILED 16
/* The budget of the streams: BUDGET_US to begin with, and one part in BUDGET_PART of the time
 * since then. The budget of hipMalloc begins with the longest wait instead, because the real
 * hipFree would have waited. */
#define BUDGET_US 100000
#define BUDGET_PART 20
#define BRIEF_US 5000 /* longest wait when the budget is spent */
/* A nap lasts one part in NAP_PART of the wait so far, between the two limits. The device may
 * stand idle for as long as a nap is too long. */
#define NAP_PART 64
#define NAP_US 5
#define LONGEST_NAP_US 1000

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

/* ---- the limits of waits ------------------------------------------------------- */

bool ss_wait_safe(struct ss_core *core)
{
	return !ss_order_capturing(core) && !ss_host_ask(core);
}

/* The longest that one allocation waits. */
static uint64_t longest_us(const struct ss_core *core)
{
	return core->opt.growth_wait_ms * 1000;
}

/* ---- the cost of failed waits ----------------------------------------------- */

void ss_waits_init(struct ss_core *core)
{
	for (int stream = 0; stream < 2; stream++) {
		core->pools->waits[stream].begin_us = stream ? BUDGET_US : longest_us(core);
		core->pools->waits[stream].since = ss_now_ms(core);
	}
}

unsigned ss_waits_failed(struct ss_core *core, bool stream)
{
	return atomic_load_explicit(&core->pools->waits[stream].failed, memory_order_relaxed);
}

uint64_t ss_wait_budget_us(struct ss_core *core, bool stream)
{
	const struct ss_waits *w = &core->pools->waits[stream];
	uint64_t all = w->begin_us + 1000 * (ss_now_ms(core) - w->since) / BUDGET_PART;
	uint64_t spent = atomic_load_explicit(&w->spent_us, memory_order_relaxed);

	return all > spent ? all - spent : 0;
}

void ss_wait_failed(struct ss_core *core, bool stream, unsigned failed, uint64_t us)
{
	struct ss_waits *w = &core->pools->waits[stream];

	atomic_fetch_add(&w->spent_us, us);
	/* Threads that waited together count as one failure. */
	if (failed < MOST_FAILED)
		atomic_compare_exchange_strong(&w->failed, &failed, failed + 1);
}

/* A wait has helped. Pool lock held. */
static void wait_worked(struct ss_core *core, bool stream)
{
	unsigned failed = ss_waits_failed(core, stream);

	if (failed)
		atomic_compare_exchange_strong(&core->pools->waits[stream].failed, &failed,
					       failed - 1);
}

/* ---- one wait ----------------------------------------------------------------- */

/* The frees that a wait is for. */
enum target {
	MARKS_OF_ALL, /* hipMalloc: those that any stream may still use */
	STREAMS,      /* a stream: those of any stream, */
	DEVICE,       /* and then all of the device, since some releases wait for all of it */
};

struct wait {
	uint64_t begin, since; /* its start and the last completion, by r->wait.us */
	unsigned failed;       /* the count of failures when it began */
	bool brief;            /* the budget was spent when it began */
};

/* How long a wait may go on without a completion. A wait that has begun may take that long even
 * if less of the budget is left: a shorter wait would not help where commands take long. */
static uint64_t quiet_us(const struct ss_request *r, const struct wait *w)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t lately = ss_max(1000 * ss_fence_ms(core, pool->mem.dev), pool->wait_gap_us);
	unsigned failed = ss_waits_failed(core, r->tl);

	if (w->brief)
		return ss_min(lately, BRIEF_US) >> failed;
	/* The minimum lets a wait that lasted the longest allowed time count as failed, too. */
	return ss_min(ss_max((QUIET_US + QUIET_TIMES * lately) >> failed, lately),
		      longest_us(core));
}

/* A nap; `moved`: something has completed since the last nap. False: there was no nap, since the
 * wait takes too long, and no more waits follow. Pool lock held, dropped meanwhile. */
static bool nap(struct ss_request *r, struct wait *w, bool moved)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t us = ss_min(ss_max(r->wait.us / NAP_PART, NAP_US), LONGEST_NAP_US), stood;

	/* As long as something completes, the device does not stand still. */
	if (moved) {
		pool->wait_gap_us = ss_max(r->wait.us - w->since, pool->wait_gap_us / 2);
		w->since = r->wait.us;
	}
	stood = r->wait.us - w->since;
	r->wait.over = stood >= quiet_us(r, w);
	if (r->wait.over)
		ss_wait_failed(core, r->tl, w->failed, stood);
	r->wait.over |= r->wait.us >= longest_us(core);
	/* Another thread may meanwhile have enqueued work that needs this thread. */
	r->wait.over |= ss_order_capturing(core) || ss_host_needed(core);
	if (r->wait.over)
		return false;
	pool->st.waits += !r->wait.us;
	ss_pool_unlock(pool);
	r->wait.us += core->drv.nap(core->drv.ctx, (unsigned)us) + 1;
	ss_pool_lock(pool);
	return true;
}

/* Might a wait for `target` help? Pool lock held. */
static bool might_help(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	uint64_t all;

	if (target == MARKS_OF_ALL)
		return ss_much_pending(pool, r->size);
	all = ss_pool_free_hint(pool);
	if (all < r->size || !sets_peak(r))
		return false;
	if (target == DEVICE)
		return !ss_without(SS_RENT_WAIT_IDLE) && !ss_may_release(pool, SS_IDLE_UNASKED) &&
		       may_exchange(r);
	return all > pool->mem.completed.bytes + ss_shelf_free_hint(r->shelf);
}

/* Requests fences that cover enough of the pending frees. */
static void request_fences(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t bytes = 0;

	if (target == MARKS_OF_ALL)
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
	const struct ss_block *oldest = r->pool->all.oldest;

	*waits = false;
	if (target == MARKS_OF_ALL)
		return oldest && oldest->n <= ss_all_expected(core, r->pool->mem.dev);
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

	if (target == MARKS_OF_ALL)
		return ss_fences_poll(core, NULL, -1);
	return ss_fences_poll_some(core, target == DEVICE ? r->pool->mem.dev : -1, LOOKED_AT,
				   &r->wait.turn);
}

/* Has the oldest block that hipMalloc waits for completed? Then whoever saw it may be another
 * thread, and a look of our own finds nothing new. Pool lock held. */
static bool has_completed(const struct ss_request *r, enum target target)
{
	const struct ss_block *b = target == MARKS_OF_ALL ? r->pool->all.oldest : NULL;

	return b && ss_pool_mark_done(r->pool, SS_SLOT_ALL, b->n);
}

/* Collects completed memory and looks for r's block in it. SS_AGAIN: enough completed that the
 * pool need not set a new peak. SS_NEXT: not enough. Pool lock held. */
static enum ss_next gather(struct ss_request *r, enum target target)
{
	ss_reclaim_all(r->pool);
	if (ss_take_free(r, NULL))
		return SS_FOUND;
	return (target == MARKS_OF_ALL ? ss_much_pending(r->pool, r->size) : sets_peak(r)) ?
		       SS_NEXT :
		       SS_AGAIN;
}

/* Waits until there is enough memory, or nothing more to wait for. Pool lock held, dropped
 * meanwhile. */
static enum ss_next wait_for(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	struct wait w = {.begin = r->wait.us,
			 .since = r->wait.us,
			 .failed = ss_waits_failed(core, r->tl),
			 .brief = !ss_wait_budget_us(core, r->tl)};
	enum ss_next next = SS_NEXT;
	bool moved = false, waits;

	if (r->wait.over)
		return SS_NEXT;
	while (next == SS_NEXT && is_expected(r, target, &waits) && nap(r, &w, moved)) {
		ss_pool_unlock(pool);
		moved = poll_fences(r, target);
		ss_pool_lock(pool);
		if (moved || waits || has_completed(r, target))
			next = gather(r, target);
	}
	if (next == SS_NEXT && (r->wait.us == w.begin || r->wait.over))
		return SS_NEXT;
	if (r->wait.us > w.begin)
		wait_worked(core, r->tl);
	return next == SS_FOUND ? SS_FOUND : SS_AGAIN;
}

static enum ss_next try_wait(struct ss_request *r, enum target target)
{
	struct ss_pool *pool = r->pool;
	enum ss_next next = SS_NEXT;
	bool might, moved;

	ss_pool_lock(pool);
	might = might_help(r, target);
	ss_pool_unlock(pool);
	if (!might)
		return SS_NEXT;
	request_fences(r, target);
	moved = ss_pool_poll_some(pool);
	ss_pool_lock(pool);
	/* The device may have reached the fences already. */
	if (moved || has_completed(r, target))
		next = gather(r, target);
	if (next == SS_NEXT)
		next = wait_for(r, target);
	ss_pool_unlock(pool);
	return next;
}

enum ss_next ss_step_wait(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);
	uint64_t before = r->wait.us, begin = ss_trace_wait_begin();
	enum target last = r->tl ? DEVICE : MARKS_OF_ALL;
	enum ss_next next = SS_NEXT;

	if (!core->drv.nap || !core->opt.growth_wait_ms || !ss_wait_safe(core))
		return SS_NEXT;
	for (enum target t = r->tl ? STREAMS : MARKS_OF_ALL; t <= last && next == SS_NEXT; t++)
		next = try_wait(r, t);
	if (r->wait.us > before)
		ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, r->pool->mem.dev,
				  r->tl ? ss_timeline_native(r->tl) : NULL);
	return next;
}
