/* SPDX-License-Identifier: MIT */
/*
 * Commands that may need the host: they may wait for the next call of a thread, or for a lock that
 * a thread holds. A host function that reports itself may do so only while it runs. All other such
 * commands (waits for values, waits for events that another process records, graphs with such
 * nodes) may do so until they have completed.
 *
 * Such a command has completed when its stream has reached the position after it. That is known as
 * for any other work: by fences, and by the application's own waits. A stream without a pending
 * fence is asked for one only when a thread has to know.
 *
 * Locks: order->lock, by way of fences. None while no such command is pending.
 */
#include "core/order/timeline.h"

/* Host functions that run now, of all cores of the process: they may outlive the core. */
static atomic_uint running;

void ss_host_function_begin(void)
{
	atomic_fetch_add(&running, 1);
}

void ss_host_function_end(void)
{
	atomic_fetch_sub(&running, 1);
}

/* A call that enqueues counts as pending, so the two numbers differ meanwhile. */
void ss_host_begin(struct ss_core *core)
{
	atomic_fetch_add(&core->order->host_begun, 1);
}

void ss_host_end(struct ss_core *core, struct ss_timeline *tl, bool ok)
{
	uint64_t pos;

	if (ok && !tl)
		return; /* its completion will never be known */
	if (ok) {
		/* A thread that read an earlier position may have read it before the command. */
		pos = ss_position(tl);
		ss_timeline_marked(tl);
		ss_raise_to(&tl->host, pos);
	}
	atomic_fetch_add(&core->order->host_ended, 1);
	if (ok && unlikely(atomic_load_explicit(&tl->host_asked, memory_order_relaxed))) {
		atomic_store(&tl->host_asked, false);
		ss_fence_request(core, tl, pos, SS_FENCE_LATE);
	}
}

static bool is_pending(const struct ss_timeline *tl)
{
	return atomic_load(&tl->host) > atomic_load(&tl->progress.completed);
}

void ss_host_synced(struct ss_timeline *tl, uint64_t pos)
{
	/* tl->host stays if another such command was enqueued since. */
	atomic_compare_exchange_strong(&tl->host, &pos, 0);
}

bool ss_host_needed(struct ss_core *core)
{
	struct ss_order *o = core->order;
	/* If the numbers are equal, no call was in progress when the first was read. */
	uint64_t ended = atomic_load(&o->host_ended), begun = atomic_load(&o->host_begun);

	if (begun != ended || atomic_load(&running))
		return true;
	if (atomic_load(&o->host_reached) >= begun)
		return false;
	SS_TIMELINES_EACH(tl, o)
		if (is_pending(tl))
			return true;
	ss_raise_to(&o->host_reached, begun);
	return false;
}

bool ss_host_ask(struct ss_core *core)
{
	if (!ss_host_needed(core))
		return false;
	SS_TIMELINES_EACH(tl, core->order) {
		if (!is_pending(tl))
			continue;
		atomic_store(&tl->host_asked, true);
		ss_fence_request(core, tl, atomic_load(&tl->host), SS_FENCE_LATE);
		ss_fences_poll(core, tl, -1);
	}
	return ss_host_needed(core);
}
