/* SPDX-License-Identifier: MIT */
/*
 * Is a whole device at its end? Every stream is asked first, which costs the device nothing. Where
 * the answer proves too little, a fence is recorded.
 *
 * Locks: order->lock, for the list of streams. The driver is called without it.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

struct asked {
	struct ss_timeline *tl;
	uint64_t pos, version;
	bool null, idle;
};

enum who {
	ALL_BUT_JOIN, /* every stream, but nothing may join the null stream with others */
	ALL,          /* every stream; the null stream may be joined */
	JOINED,       /* the null stream and the streams that join it */
};

/* Lists the streams of dev and where each is now. *count may be larger than `max`. False: one of
 * them may not be asked. */
static bool list_streams(struct ss_core *core, int dev, enum who who, struct asked *list,
			 uint32_t max, uint32_t *count)
{
	struct ss_order *o = core->order;
	bool may = true;

	*count = 0;
	pthread_mutex_lock(&o->lock);
	for (uint32_t i = 0; i < o->slot_count && may; i++) {
		struct ss_timeline *tl = o->slots[i];

		if (tl->dev != dev || !tl->alive ||
		    (who == JOINED && tl->kind == SS_TL_NONBLOCKING))
			continue;
		may = tl->kind != SS_TL_NULL || who != ALL_BUT_JOIN ||
		      !atomic_load(&o->dev[dev].joiners);
		if (*count < max)
			list[*count] = (struct asked){tl, ss_position(tl), ss_version(tl),
							  tl->kind == SS_TL_NULL, false};
		++*count;
	}
	pthread_mutex_unlock(&o->lock);
	return may;
}

/* Each stream was at its end some time after the list was made. A query alone proves less for a
 * stream that joins others: only what a command stands behind. But everything that each could have
 * joined has completed, too. */
static void complete(struct ss_core *core, const struct asked *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!list[i].tl->capturing)
			ss_complete_seen(core, list[i].tl, list[i].pos, list[i].version, false);
}

/* False: not all are at their end. Then *busy says that a fence was recorded which will tell. */
static bool all_at_end(struct ss_core *core, struct asked *list, uint32_t count, bool *busy)
{
	unsigned looks = 0;

	/* The null stream comes last, and only when every other stream is at its end. Then a
	 * fence on it joins nothing that is still in flight. */
	for (int null = 0; null <= 1; null++) {
		for (uint32_t i = 0; i < count; i++) {
			if (list[i].null != null)
				continue;
			list[i].idle = ss_stream_at_end(core, list[i].tl);
			if (!list[i].idle && !ss_fence_request(core, list[i].tl, list[i].pos,
							       SS_FENCE_JOINING))
				return false;
		}
		for (uint32_t i = 0; i < count; i++) {
			if (list[i].null != null || list[i].idle)
				continue;
			*busy = !ss_fence_reached(core, list[i].tl, list[i].pos, &looks);
			if (*busy)
				return false;
		}
	}
	complete(core, list, count);
	return true;
}

static bool idle(struct ss_core *core, int dev, enum who who, bool *busy)
{
	/* The threads of an application may have little stack. */
	struct asked few[16], *list = few;
	uint32_t count, max = sizeof(few) / sizeof(few[0]);
	bool idle = false;

	*busy = false;
	/* After a bypass there may be streams that we do not know. And a device is not idle while
	 * a destroyed stream still runs. Streams are listed before destroyed ones are looked for, or one
	 * could be in neither. */
	while (list_streams(core, dev, who, list, max, &count)) {
		if (ss_distrusted(core) || ss_zombies(core, dev))
			break;
		if (count <= max) {
			idle = all_at_end(core, list, count, busy);
			break;
		}
		max = count + 16;
		if (list != few)
			free(list);
		list = malloc(max * sizeof(*list));
		if (!list)
			return false;
	}
	if (list != few)
		free(list);
	return idle;
}

bool ss_device_idle(struct ss_core *core, int dev, bool join_null)
{
	bool busy;

	return idle(core, dev, join_null ? ALL : ALL_BUT_JOIN, &busy);
}

bool ss_null_idle(struct ss_core *core, int dev, bool *busy)
{
	return idle(core, dev, JOINED, busy);
}

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

/* The next live stream of dev in a slot from *at on. The null stream is left out. */
static struct ss_timeline *next_alive(struct ss_core *core, int dev, uint32_t *at)
{
	struct ss_order *o = core->order;
	struct ss_timeline *found = NULL;

	pthread_mutex_lock(&o->lock);
	while (!found && *at < o->slot_count) {
		struct ss_timeline *tl = o->slots[(*at)++];

		if (tl->dev == dev && tl->alive && tl->kind != SS_TL_NULL)
			found = tl;
	}
	pthread_mutex_unlock(&o->lock);
	return found;
}

/* Asks all streams of dev, the null stream last. The first that is not at its end; NULL: there is none. */
static struct ss_timeline *first_busy(struct ss_core *core, int dev, struct ss_timeline *null)
{
	struct ss_timeline *tl;
	uint32_t at = 0;

	while ((tl = next_alive(core, dev, &at)))
		if (!at_end(core, tl))
			return tl;
	return at_end(core, null) ? NULL : null;
}

/* The same for few streams. If all are at their end, everything that was enqueued before the call has
 * completed: just the streams that were listed are asked, and one that is destroyed meanwhile answers
 * nothing. */
static struct ss_timeline *complete_few(struct ss_core *core, const struct asked *list, uint32_t count)
{
	for (int null = 0; null <= 1; null++)
		for (uint32_t i = 0; i < count; i++)
			if (list[i].null == null && !at_end(core, list[i].tl) && !SS_MUTANT_IS(50))
				return list[i].tl;
	complete(core, list, count);
	return NULL;
}

bool ss_device_at_end(struct ss_core *core, int dev, struct ss_timeline **busy)
{
	struct ss_timeline *last = *busy, *null = ss_timeline_null(core, dev);
	struct asked few[16];
	uint32_t count, most = sizeof(few) / sizeof(few[0]);

	*busy = NULL;
	if (!core->drv.stream_idle || !null || ss_distrusted(core))
		return false;
	/* Listed before destroyed streams are looked for, or one could be in neither. */
	list_streams(core, dev, ALL, few, most, &count);
	if (ss_zombies(core, dev))
		return false;
	/* The one that was busy lately probably still is. */
	if (last && atomic_load(&last->alive) && last->dev == dev && !at_end(core, last))
		*busy = last;
	else
		*busy = count <= most ? complete_few(core, few, count) : first_busy(core, dev, null);
	return !*busy;
}

bool ss_device_busy(struct ss_core *core, int dev)
{
	struct ss_timeline *tl, *null = ss_timeline_null(core, dev);
	bool others = false, busy = false;
	uint32_t at = 0;

	if (!core->drv.stream_idle || !null || ss_distrusted(core))
		return false;
	while ((tl = next_alive(core, dev, &at)))
		if (!at_end(core, tl)) {
			others = true;
			busy |= can_ask(core, tl);
		}
	return busy || (!others && !at_end(core, null) && can_ask(core, null));
}
