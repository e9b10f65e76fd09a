/* SPDX-License-Identifier: MIT */
/*
 * Is a stream, or a whole device, idle? The runtime is queried first. That proves what the
 * application's own query would prove, and costs the device nothing if the stream is idle. Behind
 * pending work the runtime puts a marker of its own to learn when that work completes, a packet
 * like that of a fence (Event::notifyCmdQueue in ROCclr), so these queries are counted. If the
 * answer proves too little, a fence is recorded.
 *
 * Locks: order->lock. The driver is called without it; meanwhile `recording` keeps the stream from
 * being destroyed or captured.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

/* ---- one stream ---------------------------------------------------------------- */

/* If tl is idle, and that `proves` anything, tl completes to pos. `kind` was read before pos.
 * The slot may have become another stream's since. If that stream is of another kind, its being
 * idle proves something else about pos. */
static enum ss_status ask(struct ss_core *core, struct ss_timeline *tl, enum ss_timeline_kind kind,
			  bool proves, uint64_t pos, uint64_t version)
{
	struct ss_order *o = core->order;
	enum ss_status s;
	bool may;

	pthread_mutex_lock(&o->lock);
	may = tl->kind == kind && ss_asking_begin(core, tl, SS_FENCE_JOINING);
	pthread_mutex_unlock(&o->lock);
	if (!may)
		return SS_ERR_NOT_READY;
	s = SS_DRIVE(core, core->drv.stream_idle(core->drv.ctx, tl->dev, tl->native));
	ss_asking_end(tl);
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
	if (ss_distrusted(core))
		return false;
	t = ss_query_begin(core, tl, SS_FENCE_JOINING);
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

bool ss_stream_can_ask(const struct ss_timeline *tl)
{
	/* The slot may become another stream's just now. ask() checks the kind again. */
	return ss_timeline_kind(tl) == SS_TL_NONBLOCKING;
}

/* ---- a device --------------------------------------------------------------------- */

/* May there be busy streams that the list does not hold? After a bypass there may be unknown
 * streams. And a device is not idle while a destroyed stream still runs: call this after the
 * list was made, or a stream that is destroyed meanwhile could be in neither. */
static bool unlisted(struct ss_core *core, int dev)
{
	return ss_distrusted(core) || ss_zombies_poll(core, dev);
}

/* Each stream was idle some time after the list was made. For a stream that joins others a query
 * alone proves less: only the work before a command. But all streams that each could have joined
 * have completed, too. */
static void complete(struct ss_core *core, const struct ss_positions *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!s->at[i].tl->capturing)
			ss_complete_seen(core, s->at[i].tl, s->at[i].pos, s->at[i].version, false);
}

/* Are the streams from `first` to `end` idle? If not, *busy says that a fence was recorded which
 * will show it. */
static bool all_idle(struct ss_core *core, struct ss_seen *first, const struct ss_seen *end,
		     enum ss_fence_how how, unsigned *looks, bool *busy)
{
	for (struct ss_seen *a = first; a < end; a++) {
		a->idle = ss_stream_record_and_ask(core, a->tl);
		if (!a->idle && !ss_fence_request(core, a->tl, a->pos, how))
			return false;
	}
	for (struct ss_seen *a = first; a < end && !*busy; a++)
		*busy = !a->idle && !ss_fence_poll_briefly(core, a->tl, a->pos, looks);
	return !*busy;
}

static bool idle(struct ss_core *core, int dev, enum ss_who who, bool *busy)
{
	/* Since the list was made another thread may have made a stream that joins. */
	enum ss_fence_how how = who == SS_WHO_APART ? SS_FENCE_LATE : SS_FENCE_JOINING;
	struct ss_positions *s = ss_positions_take(core, dev, who);
	unsigned looks = 0;
	bool idle;

	*busy = false;
	/* The null stream comes last, and only when every other stream is idle. Then a fence on
	 * it joins no pending work. */
	idle = s && !unlisted(core, dev) &&
	       all_idle(core, s->at, s->at + s->others, how, &looks, busy) &&
	       all_idle(core, s->at + s->others, s->at + s->count, how, &looks, busy);
	if (idle)
		complete(core, s);
	free(s);
	return idle;
}

bool ss_device_record_and_ask(struct ss_core *core, int dev, bool join_null)
{
	bool busy;

	return idle(core, dev, join_null ? SS_WHO_ALL : SS_WHO_APART, &busy);
}

bool ss_null_record_and_ask(struct ss_core *core, int dev, bool *busy)
{
	return idle(core, dev, SS_WHO_JOINED, busy);
}

static bool is_idle(struct ss_core *core, struct ss_timeline *tl)
{
	return ss_stream_ask(core, tl) == SS_OK;
}

/* Can a query tell? A query cannot tell for another thread's stream, or for one that is
 * captured. A stream for which a thread waits is busy, and needs no query. */
static bool can_ask(struct ss_core *core, struct ss_timeline *tl)
{
	bool can;

	pthread_mutex_lock(&core->order->lock);
	can = ss_fence_may(core, tl, SS_FENCE_JOINING);
	pthread_mutex_unlock(&core->order->lock);
	return can;
}

/* Queries the streams, the null stream last. Returns the first that is not idle. NULL: all are
 * idle, and all work that was enqueued before the list was made has completed. Only the streams
 * in the list are queried, and a stream that is destroyed meanwhile is not idle. */
static struct ss_timeline *first_busy(struct ss_core *core, const struct ss_positions *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!is_idle(core, s->at[i].tl))
			return s->at[i].tl;
	complete(core, s);
	return NULL;
}

bool ss_device_ask(struct ss_core *core, int dev, struct ss_timeline **busy)
{
	struct ss_timeline *last = *busy;
	struct ss_positions *s;
	bool listed;

	*busy = NULL;
	if (!ss_timeline_null(core, dev) || ss_distrusted(core))
		return false;
	s = ss_positions_take(core, dev, SS_WHO_ALL);
	listed = s && !unlisted(core, dev);
	/* The stream that was busy lately probably still is. */
	if (listed && last && atomic_load(&last->alive) && last->dev == dev && !is_idle(core, last))
		*busy = last;
	else if (listed)
		*busy = first_busy(core, s);
	free(s);
	return listed && !*busy;
}

bool ss_joined_idle(struct ss_core *core)
{
	bool idle = true;

	for (int dev = 0; dev < core->devices && idle; dev++) {
		struct ss_positions *s = ss_positions_take(core, dev, SS_WHO_JOINED);

		idle = s && !unlisted(core, dev);
		for (uint32_t i = 0; idle && i < s->count; i++)
			idle = is_idle(core, s->at[i].tl);
		free(s);
	}
	return idle;
}

bool ss_null_wake(struct ss_core *core, int dev)
{
	struct ss_timeline *null = ss_timeline_null(core, dev);
	bool may = false, woken;

	if (!null)
		return false;
	pthread_mutex_lock(&core->order->lock);
	may = ss_asking_begin(core, null, SS_FENCE_JOINING);
	pthread_mutex_unlock(&core->order->lock);
	if (!may)
		return false;
	woken = core->drv.stream_idle(core->drv.ctx, dev, NULL) != SS_ERR_CAPTURE;
	ss_asking_end(null);
	return woken;
}

bool ss_device_ask_busy(struct ss_core *core, int dev)
{
	bool others = false, busy = false;
	struct ss_positions *s;

	if (!ss_timeline_null(core, dev) || ss_distrusted(core))
		return false;
	s = ss_positions_take(core, dev, SS_WHO_ALL);
	/* The null stream is not queried if others are busy, since it may have joined them. */
	for (uint32_t i = 0; s && i < s->count && !(others && i == s->others); i++)
		if (!is_idle(core, s->at[i].tl)) {
			others = true;
			busy |= can_ask(core, s->at[i].tl);
		}
	free(s);
	return busy;
}
