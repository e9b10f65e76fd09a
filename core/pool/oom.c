/* SPDX-License-Identifier: MIT */
/*
 * Out of memory: the last steps of the ladder, and the same steps for calls of the runtime's own
 * that found no memory.
 *
 * Locks: pool locks one at a time; none across a driver call or a sleep.
 */
#include "core/pool/release.h"
#include "core/pool/request.h"

static void reclaim(struct ss_pool *pool)
{
	ss_pool_lock(pool);
	ss_reclaim_all(pool);
	ss_pool_unlock(pool);
}

/* Requests fences for all pending frees of one pool, in the shelves and of ALL. */
static void fence_everything(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	struct ss_timeline *tl;
	uint32_t i = 0;
	uint64_t n;

	reclaim(pool);
	SS_SHELVES_EACH(q, &pool->shelves)
		if (ss_shelf_free_hint(q))
			ss_fence_request(core, q->tl, ss_timeline_now(q->tl), SS_FENCE_LATE);
	while (atomic_load(&pool->all.bytes) && (tl = ss_all_open(core, pool->mem.dev, &i, &n)))
		ss_fence_request(core, tl, ss_timeline_now(tl), SS_FENCE_LATE);
	reclaim(pool);
}

/* ---- releasing -------------------------------------------------------------------------- */

struct release {
	int idle; /* -1: not asked yet */
	uint64_t end;
	uint64_t given;
};

/* If a release waits for the whole device, a kernel that never ends would make the wait endless.
 * In that case memory is released only if the device is known to be idle. */
static void release_idle(struct ss_pool *pool, struct release *r)
{
	if (!ss_may_release(pool, SS_IDLE_UNASKED)) {
		if (ss_reserved(pool) <= ss_used(&pool->shelves))
			return;
		if (r->idle < 0)
			r->idle = ss_device_wait_idle(ss_core_of(pool), pool->mem.dev, r->end);
		if (!r->idle || !ss_others_may_release(pool))
			return;
	}
	r->given += ss_pool_release(pool, 0, UINT64_MAX, SS_TRACE_TRIM_OOM);
	ss_pool_reap(pool);
}

/* Idle bytes of all pools, less those that exported blocks hold beside live ones. */
static uint64_t releasable(struct ss_core *core, int dev)
{
	uint64_t bytes = 0, used;

	SS_POOLS_EACH(pool, core, dev) {
		used = ss_used(&pool->shelves) + ss_ipc_pinned(pool);
		bytes += ss_minus(ss_reserved(pool), used);
	}
	return bytes;
}

/* A pool at its maxSize gets room only by releases of its own. */
static void release_from_each(struct ss_request *q, struct release *r)
{
	uint64_t max = atomic_load(&q->pool->mem.max_bytes);

	if (max && ss_reserved(q->pool) + q->size > ss_round(max, SS_FRAME))
		release_idle(q->pool, r);
	else
		SS_POOLS_EACH(pool, ss_core_of(q->pool), q->pool->mem.dev)
			release_idle(pool, r);
}

/* ---- the steps ------------------------------------------------------------------------------ */

/* Would the block fit if every idle byte were released? Releases that do not help would only
 * make the next allocations slow. */
static bool could_fit(struct ss_pool *pool, uint64_t size)
{
	struct ss_core *core = ss_core_of(pool);
	const struct ss_device_memory *d = ss_device_memory(core, pool->mem.dev);
	uint64_t max = atomic_load(&pool->mem.max_bytes), idle, reserved, taken;

	if (max && ss_used(&pool->shelves) + size > ss_round(max, SS_FRAME))
		return false;
	idle = releasable(core, pool->mem.dev);
	/* Memory that is being released is in neither figure. Memory moves from the first figure
	 * to the second only, so they are read in this order. */
	reserved = atomic_load(&d->reserved);
	taken = atomic_load(&d->taken);
	if (taken > reserved)
		idle += taken - reserved;
	if (d->limit && size + ss_counted(d) > d->limit + idle)
		return false;
	return !ss_device_lacks(core, pool->mem.dev, ss_minus(size, idle));
}

enum ss_next ss_step_possible(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);
	int dev = r->pool->mem.dev;

	/* An allocation has one time limit for all of its waits. */
	if (!r->oom.end)
		r->oom.end = ss_now_ms(core) + core->opt.oom_wait_ms;
	ss_nearly_full_set(core, dev, true);
	atomic_store(&ss_device_memory(core, dev)->low, true);
	ss_decay_each_sync(core, dev);
	r->status = SS_ERR_NOMEM;
	if (r->oom.over)
		return SS_GIVE_UP;
	ss_tell_growth(core); /* the steps that follow may wait */
	if (could_fit(r->pool, r->size))
		return SS_NEXT;
	r->tried = 0; /* for the report: no step could have helped */
	return SS_GIVE_UP;
}

enum ss_next ss_step_fences(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);

	SS_POOLS_EACH(pool, core, r->pool->mem.dev)
		fence_everything(pool);
	ss_fences_poll(core, NULL, -1);
	SS_POOLS_EACH(pool, core, r->pool->mem.dev)
		fence_everything(pool);
	return SS_AGAIN;
}

static void release_for(struct ss_request *r)
{
	struct release release = {.idle = -1, .end = r->oom.end};

	release_from_each(r, &release);
	r->oom.gave = atomic_load(&ss_device_memory(ss_core_of(r->pool), r->pool->mem.dev)->gave);
}

enum ss_next ss_step_release(struct ss_request *r)
{
	r->oom.settled = atomic_load(
		&ss_device_pools(ss_core_of(r->pool), r->pool->mem.dev)->settled);
	r->oom.released = true;
	release_for(r);
	return SS_AGAIN;
}

/* The mark of the smallest range of q that would do; 0: there is none. */
static uint64_t waiting_mark(struct ss_shelf *q, uint64_t size)
{
	struct ss_block *b;
	uint64_t n;

	ss_bias_visit(&q->lock);
	b = ss_index_best(&q->free, size, SS_GRAIN);
	n = b ? b->n : 0;
	ss_bias_unlock(&q->lock);
	return n;
}

/* ReuseAllowInternalDependencies: the stream waits on the device for frees whose fences cover no
 * other work. */
enum ss_next ss_step_device_wait(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	uint64_t n;

	if (!r->tl || !atomic_load(&pool->internal))
		return SS_NEXT;
	SS_SHELVES_EACH(q, &pool->shelves) {
		if (q == r->shelf || !(n = waiting_mark(q, r->size)) ||
		    !ss_fence_gate(ss_core_of(pool), r->tl, q->tl, n))
			continue;
		ss_pool_lock(pool);
		if (ss_reclaim_gated(pool, r->tl, q, n))
			pool->st.reuse_internal++;
		ss_pool_unlock(pool);
		return SS_AGAIN;
	}
	return SS_NEXT;
}

/* How the completion of pending frees will show: by a fence or the end of another thread's wait
 * (`fenced`), or only by a query of the null streams of these devices (`null`, a bit each). */
struct pending {
	bool fenced;
	uint64_t null;
};

static void how_shown(struct ss_pool *pool, struct pending *f, struct ss_timeline *tl, uint64_t n)
{
	struct ss_core *core = ss_core_of(pool);
	uint32_t slot = ss_timeline_slot(tl);

	if (ss_fence_pending(tl) && !ss_fence_off_limits(core, tl))
		f->fenced = true;
	else if (ss_waited(core, tl) && !ss_pool_mark_done(pool, slot, n))
		f->fenced = true; /* the end of the other thread's wait shows it */
	else if (ss_timeline_kind(tl) == SS_TL_NULL && !ss_pool_mark_done(pool, slot, n))
		f->null |= 1ull << ss_timeline_device(tl);
}

static void find_pending(struct ss_pool *pool, struct pending *f)
{
	struct ss_timeline *tl;
	uint32_t i = 0;
	uint64_t n;

	ss_pool_lock(pool);
	SS_SHELVES_EACH(q, &pool->shelves)
		if (ss_shelf_free_hint(q))
			how_shown(pool, f, q->tl, ss_timeline_now(q->tl));
	while (pool->all.oldest && !f->fenced &&
	       (tl = ss_all_open(ss_core_of(pool), pool->mem.dev, &i, &n)))
		how_shown(pool, f, tl, n);
	ss_pool_unlock(pool);
}

/* Naps, if any free is pending. No fence covers a null stream that other streams join. But once
 * those streams are idle, a query finds the null stream idle, too; that query is made less and
 * less often. *ms: 1 at first. */
static bool nap(struct ss_core *core, int dev, struct ss_deadline *d, uint64_t *ms)
{
	bool idle = false, wait = false, busy;
	struct pending f = {0};

	SS_POOLS_EACH(pool, core, dev)
		find_pending(pool, &f);
	if (!*ms || ss_deadline_over(d, ss_now_ms(core)))
		return false;
	if (!f.fenced && !atomic_load(&ss_device_memory(core, dev)->releasing)) {
		for (int i = 0; i < core->devices; i++)
			if (f.null >> i & 1) {
				idle |= ss_null_record_and_ask(core, i, &busy);
				wait |= busy;
			}
		*ms = idle ? 0 : 2 * *ms;
		if (idle || !wait)
			return idle;
	}
	return ss_sleep(core, d, *ms);
}

/* Looks, for a bounded time, whether a pending free completes or another thread releases memory.
 * A reached fence alone is not enough, since a query records fences itself. A fence may also
 * cover a kernel that never ends, which is why this thread never sleeps in the runtime. */
static enum ss_next host_wait(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);
	struct ss_deadline d = ss_deadline_at(ss_now_ms(core), r->oom.end);
	int dev = r->pool->mem.dev;
	uint64_t ms = 1;

	for (bool last = false;; last = !nap(core, dev, &d, &ms)) {
		uint64_t gave = atomic_load(&ss_device_memory(core, dev)->gave), settled;

		ss_fences_poll(core, NULL, -1);
		SS_POOLS_EACH(pool, core, dev)
			reclaim(pool);
		settled = atomic_load(&ss_device_pools(core, dev)->settled);
		r->oom.over = ss_deadline_over(&d, ss_now_ms(core));
		if (settled != r->oom.settled || gave != r->oom.gave) {
			r->oom.settled = settled;
			release_for(r);
			return SS_AGAIN;
		}
		if (last) {
			r->status = SS_ERR_NOMEM;
			return SS_GIVE_UP;
		}
	}
}

enum ss_next ss_step_host_wait(struct ss_request *r)
{
	uint64_t begin = ss_trace_wait_begin();
	enum ss_next next = host_wait(r);

	ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, r->pool->mem.dev,
			  r->tl ? ss_timeline_native(r->tl) : NULL);
	return next;
}

/* ---- for calls of the runtime's own ---------------------------------------------------------- */

bool ss_release_idle(struct ss_core *core, int dev, bool may_wait, uint64_t *end)
{
	struct release r = {.idle = may_wait ? -1 : 0};
	uint64_t begin = ss_trace_wait_begin(), gave, ms = 1;
	struct ss_deadline d;

	if (dev < 0 || dev >= core->devices)
		return false;
	if (!*end)
		*end = ss_now_ms(core) + core->opt.oom_wait_ms;
	r.end = *end;
	d = ss_deadline_at(ss_now_ms(core), *end);
	gave = atomic_load(&ss_device_memory(core, dev)->gave);
	if (may_wait)
		SS_POOLS_EACH(pool, core, dev)
			fence_everything(pool);
	do {
		ss_fences_poll(core, NULL, -1);
		SS_POOLS_EACH(pool, core, dev)
			release_idle(pool, &r);
	} while (!r.given && may_wait && nap(core, dev, &d, &ms));
	if (may_wait)
		ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, dev, NULL);
	return r.given || (!ss_deadline_over(&d, ss_now_ms(core)) &&
			   atomic_load(&ss_device_memory(core, dev)->gave) != gave);
}

void ss_make_room(struct ss_core *core, int dev, uint64_t size, bool may_wait)
{
	uint64_t end = 0, left, total;

	if (dev < 0 || dev >= core->devices)
		return;
	while (ss_idle_bytes(core, dev) &&
	       SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, dev, &left, &total)) == SS_OK &&
	       left < size && ss_release_idle(core, dev, may_wait, &end))
		;
}
