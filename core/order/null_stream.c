/* SPDX-License-Identifier: MIT */
/*
 * The order between the null stream of a device and its blocking streams.
 *
 * HIP joins the null stream with the blocking streams only when a command is enqueued, and neither
 * a free nor a hit enqueues one. So a mark of the null timeline is satisfied only by commands that
 * were seen to be enqueued on the null stream after the free (a record, a synchronization). Such a
 * command joins every blocking stream, also those of threads that the shim does not know.
 *
 * In the other direction, the null stream may take memory that a blocking stream freed, because the
 * next command on the null stream joins that stream first. But the stream must exist until then: if
 * the null stream relies on it, ss_timeline_retire() says that the stream must be drained.
 *
 * Locks: order->lock.
 */
#include "core/order/timeline.h"

bool ss_order_joiners(const struct ss_core *core, int dev)
{
	return atomic_load(&core->order->dev[dev].joiners) > 0;
}

bool ss_null_joins(struct ss_core *core, struct ss_timeline *x, struct ss_timeline *tl)
{
	struct ss_order *o = core->order;
	bool joins;

	if (x->kind != SS_TL_NULL || tl->dev != x->dev || tl->kind != SS_TL_BLOCKING)
		return false;
	pthread_mutex_lock(&o->lock);
	joins = tl->alive && !tl->capturing;
	tl->joined |= joins;
	pthread_mutex_unlock(&o->lock);
	return joins;
}

/* A command on the new stream would be joined by such a fence, in a call that joins nothing. */
void ss_null_quiesce(struct ss_core *core, const struct ss_timeline *tl)
{
	struct ss_timeline *null = NULL;

	if (tl && ss_kind_joins(ss_timeline_kind(tl)))
		null = __atomic_load_n(&core->order->dev[ss_timeline_device(tl)].null,
				       __ATOMIC_ACQUIRE);
	if (null)
		ss_fence_quiesce(null);
}

bool ss_null_relies_on(const struct ss_core *core, const struct ss_timeline *tl)
{
	const struct ss_timeline *null = core->order->dev[atomic_load(&tl->dev)].null;

	if (!ss_kind_joins(tl->kind))
		return false;
	return tl->joined || (null && atomic_load(&null->progress.uncovered));
}
