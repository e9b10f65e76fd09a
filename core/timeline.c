/* SPDX-License-Identifier: MIT */
/*
 * Streams as timelines: who they are, from their creation to their end. How far they have
 * come, and what each has seen of the others, is in progress.c.
 *
 * A timeline lives in a slot. Positions of a slot only grow, also from one
 * stream in it to the next, and a slot is given to a new stream only when every
 * mark of the old one has completed; so a mark (slot, n) never needs to say
 * which stream it meant, and a new stream inherits nothing.
 *
 * The null stream. HIP joins it with the blocking streams only when a command is
 * really enqueued, and neither a free nor a hit enqueues one. So a mark of the
 * null timeline is satisfied only by commands that were seen to be enqueued on
 * the null stream after the free (a record, a synchronization): such a command
 * joins every blocking stream, also those of threads that we know nothing of.
 * The other way round the null stream may take what a blocking stream freed,
 * since whatever it enqueues next joins that stream first - provided the stream
 * still exists then: ss_timeline_retire() says when it must be drained.
 *
 * Locks: core->order, below pool locks, for which streams there are; timeline->lock for
 * what one of them saw. Never held across a driver call.
 */
#include <stdlib.h>

#include "core/internal.h"

struct ss_timeline *ss_slot(struct ss_core *core, uint32_t slot)
{
	return core->slots[slot];
}

/* ---- the table of streams ----------------------------------------------- */

static bool slot_idle(const struct ss_timeline *tl)
{
	return !tl->alive && !tl->fences && !tl->polling && !atomic_load(&tl->recording) &&
	       (SS_MUTANT_IS(8) || atomic_load(&tl->completed) >= tl->last);
}

/* A slot for a new stream: an idle one, or a new one. Order lock held. */
static struct ss_timeline *slot_take(struct ss_core *core)
{
	uint32_t count = atomic_load_explicit(&core->slot_count, memory_order_relaxed);
	struct ss_timeline *tl;

	/* Nobody looks while nothing has ended: a program that makes thousands of streams
	 * would pay for all of them with each. */
	for (uint32_t i = 0; core->slots_ended && i < count; i++)
		if (slot_idle(core->slots[i])) {
			core->slots_ended--;
			return core->slots[i];
		}
	if (count == core->slot_cap)
		return NULL;
	tl = ss_host_alloc(core, sizeof(*tl));
	if (!tl)
		return NULL;
	tl->core = core;
	tl->slot = count;
	tl->now = 1;
	tl->version = (uint64_t)count << 40; /* no two slots have one in common */
	core->slots[count] = tl;
	atomic_store_explicit(&core->slot_count, count + 1, memory_order_release);
	return tl;
}

static struct ss_timeline *timeline_new(struct ss_core *core, int dev, void *native,
					enum ss_timeline_kind kind, bool seen)
{
	struct ss_timeline *tl = slot_take(core);

	if (!tl)
		return NULL;
	/* (Read without a lock in fence.c and others.c.) */
	__atomic_store_n(&tl->dev, dev, __ATOMIC_RELAXED);
	__atomic_store_n(&tl->kind, kind, __ATOMIC_RELAXED);
	tl->native = native;
	tl->thread = pthread_self();
	tl->alive = true;
	tl->life = ++core->lives;
	tl->seen = seen;
	tl->capturing = tl->joined = tl->drop = false;
	atomic_store(&tl->marked, false);
	atomic_store(&tl->visits, 0);
	atomic_store(&tl->wanted, false);
	atomic_store(&tl->uncovered, 0);
	atomic_store(&tl->commanded, atomic_load(&tl->completed));
	ss_spin_lock(&tl->lock);
	if (tl->saw)
		tl->saw->count = 0;
	atomic_store(&tl->version, ss_version(tl) + 1);
	atomic_store(&tl->proved, ss_version(tl));
	ss_spin_unlock(&tl->lock);
	if (kind == SS_TL_BLOCKING || kind == SS_TL_THREAD)
		atomic_fetch_add(&core->dev[dev].joiners, 1);
	tl->fences_tail = &tl->fences;
	tl->fenced = atomic_load(&tl->completed);
	tl->sealed = 0;
	return tl;
}

/* The timeline takes no more commands, and its handle is forgotten. Order lock held. */
void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl)
{
	if (tl->kind == SS_TL_BLOCKING || tl->kind == SS_TL_NONBLOCKING)
		ss_table_remove(&core->by_handle, &tl->link);
	ss_spin_lock(&tl->lock);
	tl->life = 0;
	core->slots_ended += tl->alive;
	tl->alive = false;
	core->capturing -= tl->capturing;
	tl->capturing = false; /* or its marks would never complete */
	tl->last = ss_position(tl);
	ss_spin_unlock(&tl->lock);
	if (tl->kind == SS_TL_BLOCKING || tl->kind == SS_TL_THREAD)
		atomic_fetch_sub(&core->dev[tl->dev].joiners, 1);
	ss_recent_end(core);
}

/* Does the null stream of tl's device count on joining tl with its next command? */
static bool null_counts_on(struct ss_core *core, const struct ss_timeline *tl)
{
	struct ss_timeline *null = core->dev[tl->dev].null;

	if (tl->kind != SS_TL_BLOCKING && tl->kind != SS_TL_THREAD)
		return false;
	return tl->joined || (null && atomic_load(&null->uncovered));
}

struct ss_timeline *ss_timeline_null(struct ss_core *core, int dev)
{
	struct ss_timeline *tl;

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	tl = __atomic_load_n(&core->dev[dev].null, __ATOMIC_ACQUIRE);
	if (tl)
		return tl;
	pthread_mutex_lock(&core->order);
	tl = core->dev[dev].null;
	if (!tl) {
		tl = timeline_new(core, dev, NULL, SS_TL_NULL, true);
		__atomic_store_n(&core->dev[dev].null, tl, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&core->order);
	return tl;
}

/* The calling thread's per-thread timelines, one per device. Slots instead of pointers: the
 * thread-local variables of the library have 1 KiB in all. */
static _Thread_local struct {
	uint64_t serial;
	uint64_t life[SS_MAX_DEVICES]; /* 0: none on this device */
	uint32_t slot[SS_MAX_DEVICES];
} mine __attribute__((tls_model("initial-exec")));

/* NULL: there is none. (A slot that was retired may be somebody else's by now.) */
static struct ss_timeline *my_timeline(struct ss_core *core, int dev)
{
	struct ss_timeline *tl = mine.life[dev] ? core->slots[mine.slot[dev]] : NULL;

	return tl && atomic_load(&tl->life) == mine.life[dev] ? tl : NULL;
}

struct ss_timeline *ss_timeline_thread(struct ss_core *core, int dev)
{
	struct ss_timeline *tl;

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	if (mine.serial != core->serial) {
		memset(&mine, 0, sizeof(mine));
		mine.serial = core->serial;
	}
	tl = my_timeline(core, dev);
	if (tl)
		return tl;
	pthread_mutex_lock(&core->order);
	for (uint32_t i = 0; SS_MUTANT_IS(14) && i < core->slot_count; i++)
		if (core->slots[i]->alive && core->slots[i]->kind == SS_TL_THREAD &&
		    core->slots[i]->dev == dev)
			tl = core->slots[i];
	if (!tl)
		tl = timeline_new(core, dev, SS_NATIVE_PER_THREAD, SS_TL_THREAD, true);
	if (tl) {
		mine.slot[dev] = tl->slot;
		mine.life[dev] = atomic_load(&tl->life);
	}
	pthread_mutex_unlock(&core->order);
	return tl;
}

/* Is tl, which ends, at its end already? A query tells, which enqueues nothing, if a command
 * stands behind all that was hit and freed on it. */
static bool ended_before(struct ss_core *core, struct ss_timeline *tl, enum ss_status *asked)
{
	*asked = SS_ERR_NOT_READY;
	if (core->drv.stream_idle && !ss_distrusted(core) && !ss_stream_uncovered(tl))
		*asked = ss_stream_ask(core, tl);
	return *asked == SS_OK;
}

/* What hipMalloc gave may be in use on any stream, marked or not, of any device. */
static bool may_be_marked(struct ss_core *core, const struct ss_timeline *tl)
{
	bool any = atomic_load(&tl->marked);

	for (int dev = 0; dev < core->devices && !any; dev++)
		any = atomic_load(&core->dev[dev].classic) != NULL;
	return any;
}

/* The runtime takes the stream down with the thread, so there is no fence. Order lock held. */
static void thread_end(struct ss_core *core, struct ss_timeline *tl, bool ended)
{
	struct ss_device_state *d = &core->dev[tl->dev];

	if (null_counts_on(core, tl) && !ended) {
		/* It cannot be waited for: the null stream starts afresh, and
		 * what was freed on the old one completes with the device. */
		ss_timeline_end(core, d->null);
		atomic_fetch_add(&core->zombies, 1);
		__atomic_store_n(&d->null, NULL, __ATOMIC_RELEASE);
	}
	ss_timeline_end(core, tl);
	if (!may_be_marked(core, tl) || SS_MUTANT_IS(41))
		ss_complete(core, tl, tl->last, NULL, true);
	else if (ended)
		ss_complete(core, tl, tl->last, NULL, false);
	else
		atomic_fetch_add(&core->zombies, 1);
}

void ss_thread_exit(struct ss_core *core, bool late, uint64_t drained)
{
	if (mine.serial != core->serial)
		return;
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		struct ss_timeline *tl = my_timeline(core, dev);
		enum ss_status asked;
		bool ended;

		if (!tl)
			continue;
		ended = !late && (ended_before(core, tl, &asked) ||
				  ((drained >> dev & 1) && !ss_stream_uncovered(tl)));
		pthread_mutex_lock(&core->order);
		if (my_timeline(core, dev)) /* not if a reset has taken it */
			thread_end(core, tl, ended);
		mine.life[dev] = 0;
		pthread_mutex_unlock(&core->order);
	}
}

struct ss_timeline *ss_timeline_add(struct ss_core *core, int dev, void *native,
				    enum ss_timeline_kind kind, bool seen)
{
	struct ss_timeline *tl, *old;

	pthread_mutex_lock(&core->order);
	old = ss_timeline_listed(core, native);
	if (old && (!seen || SS_MUTANT_IS(7))) {
		/* Two threads asked about the same unknown handle. */
		pthread_mutex_unlock(&core->order);
		return old;
	}
	if (old) {
		/* Destroyed by a route that we did not see. No fence is possible:
		 * its marks complete with the device. */
		ss_timeline_end(core, old);
		atomic_fetch_add(&core->zombies, 1);
	}
	tl = timeline_new(core, dev, native, kind, seen);
	if (tl)
		ss_table_add(&core->by_handle, &tl->link, native);
	pthread_mutex_unlock(&core->order);
	return tl;
}

struct ss_timeline *ss_timeline_find(struct ss_core *core, void *native)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);

	if (__builtin_expect(tl != NULL, 1))
		return tl;
	pthread_mutex_lock(&core->order);
	tl = ss_timeline_listed(core, native);
	pthread_mutex_unlock(&core->order);
	return tl;
}

/* Neither a hit nor a free enqueues anything, so a blocking stream that was only
 * used for those has not joined the null stream yet, although the block may be
 * in use there (the runtime's own hipFreeAsync enqueues a marker that joins).
 * A command of ours makes up for it where the program is about to rely on it. */
void ss_timeline_cover(struct ss_core *core, struct ss_timeline *tl, enum ss_fence_how how)
{
	if (atomic_load_explicit(&tl->uncovered, memory_order_relaxed) && !SS_MUTANT_IS(31))
		ss_fence_request(core, tl, UINT64_MAX, how);
}

bool ss_timeline_retire(struct ss_core *core, struct ss_timeline *tl)
{
	bool must_join = false, ended, marked, fenced = false;
	enum ss_status asked;

	if (SS_MUTANT_IS(7))
		return false;
	/* A fence joins a blocking stream with the null stream, and its destruction then waits
	 * for that one's work, which may wait for whoever destroys. None is needed if the stream
	 * has ended before. Nor is there one where it can't be asked, after a capture that failed:
	 * a device-wide wait tells then. */
	ended = ended_before(core, tl, &asked);
	/* A fence first, while the handle still is the stream. */
	marked = may_be_marked(core, tl);
	if (marked && !ended && asked != SS_ERR_CAPTURE && !SS_MUTANT_IS(10))
		fenced = ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_LAST);
	ss_fence_poll(core, tl, -1);

	pthread_mutex_lock(&core->order);
	if (tl->alive) {
		must_join = null_counts_on(core, tl) && !ended && !SS_MUTANT_IS(28);
		ss_timeline_end(core, tl);
		/* Nothing was enqueued on it from the fence's position to here, since a
		 * stream that is being destroyed may not be used; but a hipFree may have
		 * marked it in between, and the last position is that fence's, too. */
		if (!marked || SS_MUTANT_IS(10))
			ss_complete(core, tl, tl->last, NULL, true);
		else if (ended)
			ss_complete(core, tl, tl->last, NULL, false);
		else if (fenced && atomic_load(&tl->completed) >= tl->sealed)
			ss_complete(core, tl, tl->last, NULL, false);
		if (fenced)
			tl->fenced = tl->last;
		if (atomic_load(&tl->completed) < tl->last)
			atomic_fetch_add(&core->zombies, 1);
		if (fenced && atomic_load(&tl->completed) >= tl->last)
			must_join = false;
	}
	pthread_mutex_unlock(&core->order);
	ss_fence_quiesce(tl);
	return must_join;
}

bool ss_zombies(struct ss_core *core, int dev)
{
	bool found = false, any = false;

	if (!atomic_load_explicit(&core->zombies, memory_order_relaxed) || SS_MUTANT_IS(35))
		return false;
	ss_fence_poll(core, NULL, -1);
	pthread_mutex_lock(&core->order);
	for (uint32_t i = 0; i < core->slot_count; i++) {
		struct ss_timeline *tl = core->slots[i];

		if (tl->alive || atomic_load(&tl->completed) >= tl->last)
			continue;
		any = true;
		found |= tl->dev == dev;
	}
	if (!any)
		atomic_store(&core->zombies, 0);
	pthread_mutex_unlock(&core->order);
	return found;
}

size_t ss_streams_nonblocking(struct ss_core *core, int dev, void **out, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&core->order);
	for (uint32_t i = 0; i < core->slot_count; i++) {
		struct ss_timeline *tl = core->slots[i];

		if (!tl->alive || tl->dev != dev || tl->kind != SS_TL_NONBLOCKING)
			continue;
		if (n < max)
			out[n] = tl->native;
		n++;
	}
	pthread_mutex_unlock(&core->order);
	return n;
}

int ss_timeline_device(const struct ss_timeline *tl)
{
	return tl->dev;
}

enum ss_timeline_kind ss_timeline_kind(const struct ss_timeline *tl)
{
	return tl->kind;
}

void *ss_timeline_native(const struct ss_timeline *tl)
{
	return tl->native;
}

void ss_timeline_set_capturing(struct ss_core *core, struct ss_timeline *tl, bool on)
{
	pthread_mutex_lock(&core->order);
	ss_spin_lock(&tl->lock); /* no record has half begun */
	core->capturing += (uint32_t)on - tl->capturing;
	tl->capturing = on;
	ss_spin_unlock(&tl->lock);
	pthread_mutex_unlock(&core->order);
	if (!on)
		return;
	ss_fence_quiesce(tl);
	ss_fence_unasked(core, tl);
}

bool ss_timeline_capturing(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->capturing, memory_order_relaxed);
}

void ss_distrust(struct ss_core *core, const char *why)
{
	if (!atomic_exchange(&core->distrust, true))
		core->distrust_why = why;
}

bool ss_distrusted(const struct ss_core *core)
{
	return atomic_load_explicit(&core->distrust, memory_order_relaxed);
}
