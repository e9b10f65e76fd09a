/* SPDX-License-Identifier: MIT */
/*
 * How an allocation waits for pending frees: in naps, for a bounded time, and never while the
 * device may need the host. growth_wait.c says when an allocation waits.
 *
 * A wait costs nothing as long as the device has enough work after the fence that is waited for.
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
#include "core/pool/request.h"

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

static bool wanted(const struct ss_core *core)
{
	return core->drv.nap && core->opt.growth_wait_ms;
}

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

void ss_wait_worked(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);
	unsigned failed = ss_waits_failed(core, r->tl);

	if (failed && r->wait.us > r->wait.begin)
		atomic_compare_exchange_strong(&core->pools->waits[r->tl != NULL].failed, &failed,
					       failed - 1);
}

/* ---- a wait ------------------------------------------------------------------- */

/* How long a wait may go on without a completion. A wait that has begun may take that long even
 * if less of the budget is left: a shorter wait would not help where commands take long. */
static uint64_t quiet_us(const struct ss_request *r)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t lately = ss_max(1000 * ss_fence_ms(core, pool->mem.dev), pool->wait.gap_us);
	unsigned failed = ss_waits_failed(core, r->tl);

	if (r->wait.brief)
		return ss_min(lately, BRIEF_US) >> failed;
	/* The minimum lets a wait that lasted the longest allowed time count as failed, too. */
	return ss_min(ss_max((QUIET_US + QUIET_TIMES * lately) >> failed, lately),
		      longest_us(core));
}

bool ss_wait_turn(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);

	if (r->wait.over)
		return false;
	r->wait.brief = !ss_wait_budget_us(core, r->tl);
	r->wait.begin = r->wait.since = r->wait.us;
	r->wait.failed = ss_waits_failed(core, r->tl);
	return true;
}

bool ss_wait_nap(struct ss_request *r, bool moved)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t us = ss_min(ss_max(r->wait.us / NAP_PART, NAP_US), LONGEST_NAP_US), stood;

	/* As long as something completes, the device does not stand still. */
	if (moved) {
		pool->wait.gap_us = ss_max(r->wait.us - r->wait.since, pool->wait.gap_us / 2);
		r->wait.since = r->wait.us;
	}
	stood = r->wait.us - r->wait.since;
	r->wait.over = stood >= quiet_us(r);
	if (r->wait.over)
		ss_wait_failed(core, r->tl, r->wait.failed, stood);
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

enum ss_next ss_step_wait(struct ss_request *r)
{
	struct ss_core *core = ss_core_of(r->pool);
	uint64_t before = r->wait.us, begin = ss_trace_wait_begin();
	enum ss_next next;

	if (!wanted(core) || !ss_wait_safe(core))
		return SS_NEXT;
	next = ss_growth_wait(r);
	if (r->wait.us > before)
		ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, r->pool->mem.dev,
				  r->tl ? ss_timeline_native(r->tl) : NULL);
	return next;
}
