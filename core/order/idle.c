/* SPDX-License-Identifier: MIT */
/*
 * Is a whole device at its end? Every stream is asked first, which costs the device nothing. Where
 * the answer proves too little, a fence is recorded.
 *
 * Locks: order->lock, for the list of streams. The driver is called without it.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

/* ---- the streams of a device ------------------------------------------------- */

enum who {
	ALL_BUT_JOIN, /* every stream, but nothing may join the null stream with others */
	ALL,          /* every stream; the null stream may be joined */
	JOINED,       /* the null stream and the streams that join it */
};

#define FEW 16 /* streams that fit on the stack of any thread */

struct streams {
	/* Where each stream was when it was listed. */
	struct asked {
		struct ss_timeline *tl;
		uint64_t pos, version;
		bool idle;
	} few[FEW], *list;
	uint32_t count;
	uint32_t others; /* all but the null stream, which is the last */
};

static void add(struct streams *s, struct ss_timeline *tl, uint32_t max)
{
	if (s->count < max)
		s->list[s->count] = (struct asked){tl, ss_position(tl), ss_version(tl), false};
	s->count++;
}

/* Stores at most `max`, and counts all. False: one of them may not be asked. */
static bool fill(struct streams *s, struct ss_core *core, int dev, enum who who, uint32_t max)
{
	struct ss_order *o = core->order;
	struct ss_timeline *null;
	bool may;

	s->count = 0;
	pthread_mutex_lock(&o->lock);
	null = o->dev[dev].null;
	may = who != ALL_BUT_JOIN || !null || !atomic_load(&o->dev[dev].joiners);
	for (uint32_t i = 0; i < o->slot_count && may; i++) {
		struct ss_timeline *tl = o->slots[i];

		if (tl->dev == dev && tl->alive && tl != null &&
		    (who != JOINED || tl->kind != SS_TL_NONBLOCKING))
			add(s, tl, max);
	}
	s->others = s->count;
	if (null && may)
		add(s, null, max);
	pthread_mutex_unlock(&o->lock);
	return may;
}

static void streams_finish(struct streams *s)
{
	if (s->list != s->few)
		free(s->list);
}

/* Lists the live streams of dev. False: one of them may not be asked, or host memory is out. */
static bool streams_init(struct streams *s, struct ss_core *core, int dev, enum who who)
{
	uint32_t max = FEW;

	s->list = s->few;
	while (fill(s, core, dev, who, max)) {
		if (s->count <= max)
			return true;
		streams_finish(s);
		max = s->count + FEW;
		s->list = malloc(max * sizeof(*s->list));
		if (!s->list)
			return false;
	}
	return false;
}

/* Are there streams that no list has? After a bypass there may be some that we do not know. And a
 * device is not idle while a destroyed stream still runs: call this after the list was made, or a
 * stream that is destroyed meanwhile could be in neither. */
static bool unlisted(struct ss_core *core, int dev)
{
	return ss_distrusted(core) || ss_zombies_poll(core, dev);
}

/* Each stream was at its end some time after the list was made. A query alone proves less for a
 * stream that joins others: only what a command stands behind. But everything that each could have
 * joined has completed, too. */
static void complete(struct ss_core *core, const struct streams *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!s->list[i].tl->capturing)
			ss_complete_seen(core, s->list[i].tl, s->list[i].pos, s->list[i].version,
					 false);
}

/* ---- asking, with fences where a query is not enough --------------------------- */

/* Are the streams from `first` to `end` at their end? If not, *busy says that a fence was recorded
 * which will tell. */
static bool part_at_end(struct ss_core *core, struct asked *first, const struct asked *end,
			enum ss_fence_how how, unsigned *looks, bool *busy)
{
	for (struct asked *a = first; a < end; a++) {
		a->idle = ss_stream_record_and_ask(core, a->tl);
		if (!a->idle && !ss_fence_request(core, a->tl, a->pos, how))
			return false;
	}
	for (struct asked *a = first; a < end && !*busy; a++)
		*busy = !a->idle && !ss_fence_poll_briefly(core, a->tl, a->pos, looks);
	return !*busy;
}

static bool idle(struct ss_core *core, int dev, enum who who, bool *busy)
{
	/* Another thread may have made a stream that joins since the list was made. */
	enum ss_fence_how how = who == ALL_BUT_JOIN ? SS_FENCE_LATE : SS_FENCE_JOINING;
	unsigned looks = 0;
	struct streams s;
	bool idle;

	*busy = false;
	/* The null stream comes last, and only when every other stream is at its end. Then a fence
	 * on it joins nothing that is still in flight. */
	idle = streams_init(&s, core, dev, who) && !unlisted(core, dev) &&
	       part_at_end(core, s.list, s.list + s.others, how, &looks, busy) &&
	       part_at_end(core, s.list + s.others, s.list + s.count, how, &looks, busy);
	if (idle)
		complete(core, &s);
	streams_finish(&s);
	return idle;
}

bool ss_device_record_and_ask(struct ss_core *core, int dev, bool join_null)
{
	bool busy;

	return idle(core, dev, join_null ? ALL : ALL_BUT_JOIN, &busy);
}

bool ss_null_record_and_ask(struct ss_core *core, int dev, bool *busy)
{
	return idle(core, dev, JOINED, busy);
}

/* ---- asking without a command -------------------------------------------------- */

static bool at_end(struct ss_core *core, struct ss_timeline *tl)
{
	return ss_stream_ask(core, tl) == SS_OK;
}

/* Can a query tell? It cannot for another thread's stream, or for one that is captured. */
static bool can_ask(struct ss_core *core, struct ss_timeline *tl)
{
	bool can;

	pthread_mutex_lock(&core->order->lock);
	can = ss_fence_may(core, tl, SS_FENCE_JOINING);
	pthread_mutex_unlock(&core->order->lock);
	return can;
}

/* Asks the streams, the null stream last. Returns the first that is not at its end; NULL: there is
 * none. Then everything that was enqueued before the list was made has completed: just the streams
 * in it are asked, and one that is destroyed meanwhile answers nothing. */
static struct ss_timeline *first_busy(struct ss_core *core, const struct streams *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!at_end(core, s->list[i].tl))
			return s->list[i].tl;
	complete(core, s);
	return NULL;
}

bool ss_device_ask(struct ss_core *core, int dev, struct ss_timeline **busy)
{
	struct ss_timeline *last = *busy;
	struct streams s;
	bool listed;

	*busy = NULL;
	if (!core->drv.stream_idle || !ss_timeline_null(core, dev) || ss_distrusted(core))
		return false;
	listed = streams_init(&s, core, dev, ALL) && !unlisted(core, dev);
	/* The one that was busy lately probably still is. */
	if (listed && last && atomic_load(&last->alive) && last->dev == dev && !at_end(core, last))
		*busy = last;
	else if (listed)
		*busy = first_busy(core, &s);
	streams_finish(&s);
	return listed && !*busy;
}

bool ss_device_ask_busy(struct ss_core *core, int dev)
{
	bool others = false, busy = false;
	struct streams s;

	if (!core->drv.stream_idle || !ss_timeline_null(core, dev) || ss_distrusted(core))
		return false;
	if (!streams_init(&s, core, dev, ALL))
		s.count = 0;
	/* The null stream is not asked if others are busy, which it may have joined. */
	for (uint32_t i = 0; i < s.count && !(others && i == s.others); i++)
		if (!at_end(core, s.list[i].tl)) {
			others = true;
			busy |= can_ask(core, s.list[i].tl);
		}
	streams_finish(&s);
	return busy;
}
