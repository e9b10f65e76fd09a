/* SPDX-License-Identifier: MIT */
/*
 * The end of a stream: its last fence, and streams that were destroyed but may still run (zombies).
 *
 * Locks: order->lock. The driver is called without it.
 */
#include "core/order/timeline.h"

bool ss_stream_ask_last(struct ss_core *core, struct ss_timeline *tl, enum ss_status *asked)
{
	*asked = SS_ERR_NOT_READY;
	if (!ss_distrusted(core) && !ss_needs_cover(tl))
		*asked = ss_stream_ask(core, tl);
	return *asked == SS_OK;
}

/* Any stream of any device may use hipMalloc memory, even if no block carries the stream's mark. */
bool ss_stream_may_be_marked(const struct ss_core *core, const struct ss_timeline *tl)
{
	bool any = atomic_load(&tl->progress.marked);

	for (int dev = 0; dev < core->devices && !any; dev++)
		any = atomic_load(&core->order->dev[dev].classic);
	return any;
}

bool ss_timeline_retire(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_order *o = core->order;
	bool must_join = false, ended, marked, fenced = false;
	enum ss_status asked;

	/* A fence joins a blocking stream with the null stream. The stream's destruction then
	 * waits for the null stream's work, which may itself wait for the destroying thread. So
	 * no fence is recorded if the stream is idle already. Likewise none is recorded if the
	 * stream cannot be queried, after a capture that failed; then a device-wide wait shows
	 * the completion. */
	ended = ss_stream_ask_last(core, tl, &asked);
	/* The fence comes first, while the handle still is this stream. */
	marked = ss_stream_may_be_marked(core, tl);
	if (marked && !ended && asked != SS_ERR_CAPTURE)
		fenced = ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_LAST);
	ss_fences_poll(core, tl, -1);

	pthread_mutex_lock(&o->lock);
	if (tl->alive) {
		must_join = ss_null_relies_on(core, tl) && !ended;
		ss_timeline_end(core, tl);
		/* Nothing was enqueued between the fence and this point, since a stream that is
		 * being destroyed may not be used. But a hipFree may have put a mark on it. So
		 * the fence covers the last position, too. */
		if (!marked)
			ss_complete(core, tl, tl->last, NULL, true);
		else if (ended || (fenced && atomic_load(&tl->progress.completed) >= tl->sealed))
			ss_complete(core, tl, tl->last, NULL, false);
		if (fenced)
			tl->fenced = tl->last;
		if (atomic_load(&tl->progress.completed) < tl->last)
			atomic_fetch_add(&o->zombies, 1);
		if (fenced && atomic_load(&tl->progress.completed) >= tl->last)
			must_join = false;
	}
	pthread_mutex_unlock(&o->lock);
	ss_fence_quiesce(tl);
	return must_join;
}

bool ss_zombies_poll(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	bool found = false, any = false;

	if (!atomic_load_explicit(&o->zombies, memory_order_relaxed))
		return false;
	ss_fences_poll(core, NULL, -1);
	pthread_mutex_lock(&o->lock);
	SS_TIMELINES_EACH(tl, o) {
		if (tl->alive || atomic_load(&tl->progress.completed) >= tl->last)
			continue;
		any = true;
		found |= tl->dev == dev;
	}
	if (!any)
		atomic_store(&o->zombies, 0);
	pthread_mutex_unlock(&o->lock);
	return found;
}
