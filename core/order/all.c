/* SPDX-License-Identifier: MIT */
/*
 * ALL, the virtual timeline of a device: it counts every stream that may work with the device's
 * memory. If any stream may be using a block when it is freed, the block carries a mark of ALL.
 *
 * A snapshot closes a position of ALL: it holds the position of each stream. ALL has reached its
 * position when every stream has reached its own. Frees share a snapshot if no stream has moved
 * between them. Each snapshot waits for all that older ones wait for, so snapshots complete in
 * their order. A mark needs no memory. If there is no memory for the snapshot, a later snapshot
 * closes the mark, and covers at least as much.
 *
 * A stream of another device counts while it has access to the memory, or has used it (visits).
 *
 * Locks: order->lock.
 */
#include <stdlib.h>
#include <utlist.h>

#include "core/order/timeline.h"

struct ss_snapshot {
	struct ss_snapshot *prev, *next; /* the oldest first */
	uint64_t n;                      /* position of ALL that it closes */
	bool wide;                       /* it needs a device-wide wait, too */
	uint32_t count;
	/* Entries that were not reached, and that had no fence, at the last look */
	uint32_t open, unasked;
	struct {
		struct ss_timeline *tl;
		uint64_t n;
	} at[];
};

/* May tl work with memory of `dev`, and may any of its work be unfinished, as far as the
 * application knows? Order lock held. */
static bool concerns(const struct ss_timeline *tl, int dev, uint64_t access)
{
	if (tl->dev != dev && !(access >> tl->dev & 1) && !(atomic_load(&tl->visits) >> dev & 1))
		return false;
	return tl->alive || atomic_load(&tl->progress.synced) < tl->last;
}

static uint64_t position(struct ss_timeline *tl)
{
	return tl->alive ? ss_timeline_now(tl) : tl->last;
}

/* Does the newest snapshot hold the present positions of the streams? Sets *count to the number
 * of streams. Order lock held. */
static bool is_current(struct ss_order *o, int dev, uint32_t *count)
{
	const struct ss_all *all = &o->dev[dev].all;
	const struct ss_snapshot *s = all->snapshots ? all->snapshots->prev : NULL;
	bool same = s && !s->wide;

	*count = 0;
	SS_TIMELINES_EACH(tl, o) {
		if (!concerns(tl, dev, all->access))
			continue;
		same = same && *count < s->count && s->at[*count].tl == tl &&
		       s->at[*count].n == position(tl);
		++*count;
	}
	return same && *count == s->count;
}

/* Makes a snapshot of the streams' present positions the newest. False: it cannot be made. Order
 * lock held. */
static bool snapshot(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	struct ss_all *all = &o->dev[dev].all;
	bool wide = ss_distrusted(core);
	struct ss_snapshot *s;
	uint32_t count;

	if (is_current(o, dev, &count) && !wide)
		return true;
	s = count ? malloc(sizeof(*s) + count * sizeof(s->at[0])) : NULL;
	if (!s)
		return false;
	*s = (struct ss_snapshot){.n = atomic_fetch_add(&all->now, 1), .wide = wide};
	SS_TIMELINES_EACH(tl, o) {
		if (!concerns(tl, dev, all->access))
			continue;
		s->at[s->count].tl = tl;
		s->at[s->count++].n = position(tl);
		ss_timeline_marked(tl);
	}
	if (!s->count) {
		free(s);
		return false;
	}
	DL_APPEND(all->snapshots, s);
	all->unclosed = false;
	return true;
}

/* The application may use a null stream by calls that the shim does not see, so its timeline is
 * made here. No lock held. */
static bool null_streams(struct ss_core *core, uint64_t devices)
{
	bool all = true;

	for (int d = 0; d < core->devices; d++)
		all &= !(devices >> d & 1) || ss_timeline_null(core, d);
	return all;
}

uint64_t ss_all_mark(struct ss_core *core, int dev, uint64_t access)
{
	struct ss_order *o = core->order;
	struct ss_all *all = &o->dev[dev].all;
	uint64_t open = atomic_load(&all->unclosed) ? atomic_load(&all->access) : 0, n;
	bool ready = null_streams(core, open | access | 1ull << dev);

	pthread_mutex_lock(&o->lock);
	/* A device that has lost its access counts as long as a mark waits for it. */
	all->access = (all->snapshots || all->unclosed ? all->access : 0) | access | 1ull << dev;
	/* A snapshot closes older marks, too, and has the null streams that those have. */
	ready = ready && !(all->unclosed && all->access & ~(open | access | 1ull << dev));
	if (ready && snapshot(core, dev)) {
		n = all->snapshots->prev->n;
	} else {
		n = atomic_load(&all->now);
		all->unclosed = true;
	}
	pthread_mutex_unlock(&o->lock);
	return n;
}

/* ---- completed positions ------------------------------------------------------- */

static bool done(const struct ss_snapshot *s, uint32_t i)
{
	return atomic_load(&s->at[i].tl->progress.completed) >= s->at[i].n;
}

/* Order lock held. */
static bool is_reached(const struct ss_all *all, struct ss_snapshot *s)
{
	if (s->wide && atomic_load(&all->waited) < s->n)
		return false;
	/* With a thousand streams, most looks end here. */
	if (!done(s, s->open))
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		if (!done(s, i)) {
			s->open = i;
			return false;
		}
	return true;
}

static void look(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	struct ss_all *all = &o->dev[dev].all;
	uint64_t access = atomic_load(&all->access);
	bool ready = atomic_load(&all->unclosed) && null_streams(core, access);
	struct ss_snapshot *s;

	pthread_mutex_lock(&o->lock);
	/* Another thread may have added devices, or marks for want of a null stream, meanwhile. */
	if (ready && all->unclosed && all->access == access)
		snapshot(core, dev);
	while ((s = all->snapshots) && is_reached(all, s)) {
		atomic_store(&all->completed, s->n);
		DL_DELETE(all->snapshots, s);
		free(s);
	}
	pthread_mutex_unlock(&o->lock);
}

bool ss_all_reached(struct ss_core *core, int dev, uint64_t n, bool any)
{
	struct ss_all *all = &core->order->dev[dev].all;

	if (atomic_load(&all->completed) < n)
		look(core, dev);
	return atomic_load(&all->completed) >= n && (any || atomic_load(&all->waited) >= n);
}

struct ss_timeline *ss_all_open(struct ss_core *core, int dev, uint32_t *i, uint64_t *n)
{
	struct ss_order *o = core->order;
	struct ss_all *all = &o->dev[dev].all;
	struct ss_timeline *tl = NULL;
	const struct ss_snapshot *s;
	uint32_t at;

	pthread_mutex_lock(&o->lock);
	s = all->snapshots;
	for (s = s ? s->prev : NULL; s && *i < s->count && !tl; ++*i) {
		at = all->turn++ % s->count;
		if (!done(s, at)) {
			tl = s->at[at].tl;
			*n = s->at[at].n;
		}
	}
	pthread_mutex_unlock(&o->lock);
	return tl;
}

static bool is_asked(const struct ss_core *core, const struct ss_snapshot *s, uint32_t i)
{
	return done(s, i) || ss_position_expected(core, s->at[i].tl, s->at[i].n);
}

static bool all_asked(const struct ss_core *core, struct ss_snapshot *s)
{
	if (!is_asked(core, s, s->unasked))
		return false;
	for (uint32_t i = 0; i < s->count; i++)
		if (!is_asked(core, s, i)) {
			s->unasked = i;
			return false;
		}
	return !s->wide;
}

/* If a snapshot has fences, the older snapshots have theirs. */
uint64_t ss_all_expected(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	struct ss_all *all = &o->dev[dev].all;
	struct ss_snapshot *s;
	uint64_t n;

	pthread_mutex_lock(&o->lock);
	n = atomic_load(&all->completed);
	s = all->snapshots ? all->snapshots->prev : NULL;
	while (s && !all_asked(core, s))
		s = s == all->snapshots ? NULL : s->prev;
	if (s)
		n = s->n;
	pthread_mutex_unlock(&o->lock);
	return n;
}

/* ---- streams of other devices --------------------------------------------------- */

uint64_t ss_order_visited(const struct ss_core *core)
{
	return atomic_load(&core->order->visited);
}

void ss_order_visit(struct ss_core *core, struct ss_timeline *tl, uint64_t bits)
{
	struct ss_order *o = core->order;

	bits &= ~(1ull << tl->dev);
	if (!(bits & ~atomic_load(&tl->visits)))
		return;
	/* The lock makes a snapshot see all of the change or none of it. And a reader of
	 * the second set relies on the first. */
	pthread_mutex_lock(&o->lock);
	atomic_fetch_or(&o->visited, bits);
	atomic_fetch_or(&tl->visits, bits);
	pthread_mutex_unlock(&o->lock);
}

/* ---- the end of the core ---------------------------------------------------------- */

void ss_all_finish(struct ss_order *o)
{
	struct ss_snapshot *s, *next;

	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		DL_FOREACH_SAFE(o->dev[dev].all.snapshots, s, next)
	free(s);
}
