/* SPDX-License-Identifier: MIT */
/*
 * Is a stream, or all of a device, at its end? Asking the runtime costs the device nothing, and
 * proves what the program's own query would; where that proves too little, a fence does.
 *
 * Locks: core->order. The driver is called without it; `recording` keeps the stream from being
 * destroyed, or captured, meanwhile.
 */
#include <stdlib.h>

#include "core/internal.h"

/* Asks the runtime; that tl is at its end completes it to pos, if it `proves` anything. */
static enum ss_status ask(struct ss_core *core, struct ss_timeline *tl, bool proves, uint64_t pos,
			  uint64_t version)
{
	enum ss_status s;
	bool may;

	pthread_mutex_lock(&core->order);
	may = ss_fence_may(tl, SS_FENCE_JOINING);
	atomic_fetch_add(&tl->recording, may);
	pthread_mutex_unlock(&core->order);
	if (!may)
		return SS_ERR_NOT_READY;
	s = SS_DRIVE(core, core->drv.stream_idle(core->drv.ctx, tl->dev, tl->native));
	atomic_fetch_sub(&tl->recording, 1);
	if (s == SS_OK && proves && !tl->capturing)
		ss_complete_seen(core, tl, pos, version, false);
	return s;
}

bool ss_stream_at_end(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_token t;

	/* After a bypass a query proves nothing. */
	if (!core->drv.stream_idle || ss_distrusted(core))
		return false;
	t = ss_stream_query_begin(core, tl);
	return ask(core, tl, t.a != NULL, t.n, t.gen) == SS_OK;
}

enum ss_status ss_stream_ask(struct ss_core *core, struct ss_timeline *tl)
{
	bool joins = tl->kind != SS_TL_NONBLOCKING &&
		     (tl->kind != SS_TL_NULL || atomic_load(&core->dev[tl->dev].joiners));
	uint64_t pos = joins ? atomic_load(&tl->commanded) : ss_position(tl);

	return ask(core, tl, true, pos, ss_version(tl));
}

struct asked {
	struct ss_timeline *tl;
	uint64_t pos, version;
	bool null, idle;
};

/* Who is asked, and whether the null stream may be joined with the others for it. */
enum who { ALL_BUT_JOIN, ALL, JOINED };

/* The streams of dev, and how far each has come now; *count may be more than there is room
 * for. False: one of them may not be asked. */
static bool list_streams(struct ss_core *core, int dev, enum who who, struct asked *list,
			 uint32_t max, uint32_t *count)
{
	bool may = true;

	*count = 0;
	pthread_mutex_lock(&core->order);
	for (uint32_t i = 0; i < core->slot_count && may; i++) {
		struct ss_timeline *tl = core->slots[i];

		if (tl->dev != dev || !tl->alive ||
		    (who == JOINED && tl->kind == SS_TL_NONBLOCKING))
			continue;
		may = tl->kind != SS_TL_NULL || who != ALL_BUT_JOIN ||
		      !atomic_load(&core->dev[dev].joiners);
		if (*count < max)
			list[*count] = (struct asked){tl, ss_position(tl), ss_version(tl),
							  tl->kind == SS_TL_NULL, false};
		++*count;
	}
	pthread_mutex_unlock(&core->order);
	return may;
}

/* *busy: or a fence will tell. */
static bool all_at_end(struct ss_core *core, struct asked *list, uint32_t count, bool *busy)
{
	unsigned looks = 0;

	/* The null stream last, and only when every other has come to its end: then
	 * the record on it joins nothing that is still pending. */
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
	/* What each had before it, joined or not, is over: a query alone proves of a stream
	 * that joins others only what a command stands behind. */
	for (uint32_t i = 0; i < count; i++)
		if (!list[i].tl->capturing)
			ss_complete_seen(core, list[i].tl, list[i].pos, list[i].version, false);
	return true;
}

static bool idle(struct ss_core *core, int dev, enum who who, bool *busy)
{
	/* The threads of an application may have little stack. */
	struct asked few[16], *list = few;
	uint32_t count, max = sizeof(few) / sizeof(few[0]);
	bool idle = false;

	*busy = false;
	/* Nor is a device idle on which a destroyed stream still runs. */
	if (ss_distrusted(core) || ss_zombies(core, dev))
		return false;
	while (list_streams(core, dev, who, list, max, &count)) {
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

/* Can a query tell? Not of another thread's stream, nor of one that is captured. */
static bool can_ask(struct ss_core *core, struct ss_timeline *tl)
{
	bool can;

	pthread_mutex_lock(&core->order);
	can = ss_fence_may(tl, SS_FENCE_JOINING);
	pthread_mutex_unlock(&core->order);
	return can;
}

/* The next stream of dev but the null stream, in a slot from *at on. */
static struct ss_timeline *next_alive(struct ss_core *core, int dev, uint32_t *at)
{
	struct ss_timeline *found = NULL;

	pthread_mutex_lock(&core->order);
	while (!found && *at < core->slot_count) {
		struct ss_timeline *tl = core->slots[(*at)++];

		if (tl->dev == dev && tl->alive && tl->kind != SS_TL_NULL)
			found = tl;
	}
	pthread_mutex_unlock(&core->order);
	return found;
}

bool ss_device_at_end(struct ss_core *core, int dev, struct ss_timeline **busy)
{
	struct ss_timeline *tl = *busy, *null = ss_timeline_null(core, dev);
	uint32_t at = 0;

	*busy = NULL;
	if (!core->drv.stream_idle || !null || ss_distrusted(core) || ss_zombies(core, dev))
		return false;
	if (!tl || !atomic_load(&tl->alive) || tl->dev != dev || tl->kind == SS_TL_NULL)
		tl = next_alive(core, dev, &at);
	for (; tl; tl = next_alive(core, dev, &at))
		if (!at_end(core, tl)) {
			*busy = tl;
			return false;
		}
	if (!at_end(core, null))
		*busy = null;
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
