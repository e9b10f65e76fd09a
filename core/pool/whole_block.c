/* SPDX-License-Identifier: MIT */
/*
 * Blocks that are a segment of their own (SOMASHIM_IPC_WHOLE), so that processes without somashim
 * and libraries for RDMA can open them. They are memory of hipMalloc, also if hipMallocAsync hands
 * them out.
 *
 * Locks: the pool's, dropped for the driver.
 */
#include "core/pool/release.h"
#include "core/pool/request.h"

/* An idle segment of just this size; NULL: there is none. No lock held. */
static struct ss_block *take(struct ss_request *r, uint64_t size)
{
	struct ss_pool *pool = r->pool;
	struct ss_block *b = NULL;

	ss_pool_lock(pool);
	ss_reclaim_all(pool);
	for (struct ss_segment *seg = pool->mem.segments; seg && !b; seg = seg->next) {
		b = ss_segment_first(ss_core_of(pool), seg);
		if (seg->native_size != size || b->size != size ||
		    !ss_is_free_on(b, SS_SLOT_COMPLETED))
			b = NULL;
	}
	if (b) {
		ss_completed_remove(&pool->mem, b);
		ss_set_state(b, SS_BLOCK_QUEUED);
		r->missed = true;
		ss_request_serve(r, b, r->grown ? NULL : &pool->st.reuse_completed);
	}
	ss_pool_unlock(pool);
	return b;
}

/* hipFree has not waited, so hipMalloc may wait, for a bounded time. True: the device was found
 * idle. No lock held. */
static bool wait_idle(struct ss_pool *pool)
{
	struct ss_core *core = ss_core_of(pool);
	uint64_t begin, now = ss_now_ms(core);
	uint64_t ms = ss_min(core->opt.oom_wait_ms, ss_wait_budget_us(core, false) / 1000);
	unsigned failed = ss_waits_failed(core, false);
	bool idle;

	if (!pool->classic || !ms || !ss_wait_safe(core))
		return false;
	begin = ss_trace_wait_begin();
	idle = ss_device_wait_idle(core, pool->mem.dev, now + ms);
	ss_trace_wait_end(begin, SS_TRACE_WAIT_MEMORY, pool->mem.dev, NULL);
	if (!idle)
		ss_wait_failed(core, false, failed, 1000 * (ss_now_ms(core) - now));
	return idle;
}

/* If hipFree does not wait, a host that is ahead of the device would take a segment for every
 * pending free. So hipMalloc waits from the eighth pending segment on. */
static bool much_under_way(struct ss_pool *pool, uint64_t size)
{
	return ss_minus(ss_reserved(pool), ss_used(&pool->shelves)) >=
	       ss_max(7 * size, ss_used_high(&pool->shelves));
}

/* A block that cannot be made here is requested like any other block, with all steps of the
 * ladder. */
struct ss_block *ss_whole_block_alloc(struct ss_request *r, uint64_t request)
{
	uint64_t size = ss_round(request, SS_FRAME);
	struct ss_pool *pool = r->pool;
	struct ss_block *b;

	/* The runtime chooses where a segment begins. */
	if (pool->mem.backing != SS_BACKING_HIP || r->align > SS_FRAME)
		return NULL;
	/* Another thread may take the segment that was added for this request. */
	for (int tries = 0; tries < 4; tries++) {
		b = take(r, size);
		if (!b && much_under_way(pool, size) && wait_idle(pool))
			b = take(r, size);
		if (b)
			return b;
		if (ss_memory_add_whole(&pool->mem, size, ss_may_release(pool, SS_IDLE_FENCED)) !=
		    SS_OK)
			return NULL;
		r->grown++;
	}
	return NULL;
}
