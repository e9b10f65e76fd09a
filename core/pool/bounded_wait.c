/* SPDX-License-Identifier: MIT */
/*
 * How an allocation waits for frees in flight: in naps, for a bounded time, and never while the
 * device may need the host. backpressure.c says when hipMalloc does so, growth_wait.c when a stream
 * does.
 *
 * Waiting costs nothing as long as the device has enough to do behind the point that is waited for.
 * But the work in front of a fence may itself wait for what this thread does next. So a wait ends
 * when nothing has completed for some time, and each that was for nothing makes the next ones
 * shorter and rarer. No wait is inside the runtime: fences are polled.
 *
 * Locks: the pool's. None while waiting.
 */
#include "core/pool/request.h"

/* A wait lasts so long without anything completing, since a busy machine alone may take that, */
#define QUIET_US 50000
#define QUIET_TIMES 4     /* and as many times as long as anything took lately */
#define RAREST 16         /* after waits for nothing, at least one allocation in 2^16 waits */
/* A nap: this part of the wait so far, between the two limits. What a nap is too long, the device
 * may stand idle. */
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

/* In all. */
static uint64_t longest_us(const struct ss_core *core)
{
	return core->opt.growth_wait_ms * 1000;
}

/* How long nothing may complete. */
static uint64_t quiet_us(struct ss_pool *pool)
{
	uint64_t ms = ss_max(ss_fence_ms(ss_core_of(pool), pool->mem.dev), pool->pressure.took);
	uint64_t lately = ss_max(1000 * ms, pool->wait.gap_us);
	uint64_t us = ss_max((QUIET_US + QUIET_TIMES * lately) >> pool->wait.failed, lately);

	/* So that one which was given up for the longest time has failed, too. */
	return ss_min(us, longest_us(ss_core_of(pool)));
}

bool ss_wait_turn(struct ss_request *r)
{
	struct ss_pool *pool = r->pool;

	if (r->wait.over)
		return false;
	if (pool->wait.skip && !r->wait.us) {
		pool->wait.skip--;
		r->wait.over = true;
		return false;
	}
	r->wait.since = r->wait.us;
	r->wait.failed = pool->wait.failed;
	return true;
}

void ss_wait_failed(struct ss_pool *pool)
{
	pool->wait.skip = (1u << pool->wait.failed) - 1;
	pool->wait.failed += pool->wait.failed < RAREST;
}

void ss_wait_worked(struct ss_request *r)
{
	if (r->wait.us > r->wait.since)
		r->pool->wait.failed /= 2;
}

bool ss_wait_nap(struct ss_request *r, bool moved)
{
	struct ss_pool *pool = r->pool;
	struct ss_core *core = ss_core_of(pool);
	uint64_t us = ss_min(ss_max(r->wait.us / NAP_PART, NAP_US), LONGEST_NAP_US);

	/* As long as something completes, the device does not stand still. */
	if (moved) {
		pool->wait.gap_us = ss_max(r->wait.us - r->wait.since, pool->wait.gap_us / 2);
		r->wait.since = r->wait.us;
	}
	if (r->wait.us - r->wait.since >= quiet_us(pool)) {
		/* Threads that waited together have failed once. */
		if (r->wait.failed == pool->wait.failed)
			ss_wait_failed(pool);
		r->wait.over = true;
	}
	/* What another thread enqueues meanwhile may need this one. */
	r->wait.over |= r->wait.us >= longest_us(core) || ss_order_capturing(core) ||
			ss_host_needed(core);
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
	next = r->tl ? ss_growth_wait(r) : ss_backpressure_wait(r);
	if (r->wait.us > before)
		ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, r->pool->mem.dev,
				  r->tl ? ss_timeline_native(r->tl) : NULL);
	return next;
}
