/* SPDX-License-Identifier: MIT */
/*
 * Asking the runtime whether a stream is at its end. That proves what the application's own query
 * would prove. It costs the device nothing if the stream is idle. Behind work that is under way the
 * runtime puts a marker to learn of its end, a packet as a fence has one (Event::notifyCmdQueue in
 * ROCclr), so these queries are counted.
 *
 * Locks: order->lock. The driver is called without it; meanwhile `recording` keeps the stream from
 * being destroyed or captured.
 */
#include "core/order/timeline.h"

/* If tl is at its end, and that `proves` anything, tl completes to pos. `kind` was read before pos.
 * The slot may have become another stream's since. If that one is of another kind, its end proves
 * something else of pos. */
static enum ss_status ask(struct ss_core *core, struct ss_timeline *tl, enum ss_timeline_kind kind,
			  bool proves, uint64_t pos, uint64_t version)
{
	struct ss_order *o = core->order;
	enum ss_status s;
	bool may;

	pthread_mutex_lock(&o->lock);
	may = ss_fence_may(core, tl, SS_FENCE_JOINING) && tl->kind == kind;
	atomic_fetch_add(&tl->recording, may);
	pthread_mutex_unlock(&o->lock);
	if (!may)
		return SS_ERR_NOT_READY;
	s = SS_DRIVE(core, core->drv.stream_idle(core->drv.ctx, tl->dev, tl->native));
	atomic_fetch_sub(&tl->recording, 1);
	if (s == SS_ERR_NOT_READY)
		atomic_fetch_add_explicit(&o->busy_queries, 1, memory_order_relaxed);
	if (s == SS_OK && proves && !tl->capturing)
		ss_complete_seen(core, tl, pos, version, false);
	return s;
}

bool ss_stream_record_and_ask(struct ss_core *core, struct ss_timeline *tl)
{
	enum ss_timeline_kind kind = ss_timeline_kind(tl);
	struct ss_token t;

	/* After a bypass a query proves nothing. */
	if (!core->drv.stream_idle || ss_distrusted(core))
		return false;
	t = ss_stream_query_begin(core, tl);
	return ask(core, tl, kind, t.a != NULL, t.n, t.gen) == SS_OK;
}

uint64_t ss_order_busy_queries(const struct ss_core *core)
{
	return atomic_load_explicit(&core->order->busy_queries, memory_order_relaxed);
}

enum ss_status ss_stream_ask(struct ss_core *core, struct ss_timeline *tl)
{
	enum ss_timeline_kind kind = ss_timeline_kind(tl);
	bool joins = kind != SS_TL_NONBLOCKING &&
		     (kind != SS_TL_NULL || ss_order_joiners(core, tl->dev));
	uint64_t pos = joins ? atomic_load(&tl->commanded) : ss_position(tl);

	return ask(core, tl, kind, true, pos, ss_version(tl));
}

bool ss_stream_can_ask(const struct ss_core *core, struct ss_timeline *tl)
{
	/* The slot may become another stream's just now. ask() looks at it again. */
	return core->drv.stream_idle && ss_timeline_kind(tl) == SS_TL_NONBLOCKING;
}
