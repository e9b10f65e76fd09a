/* SPDX-License-Identifier: MIT */
/*
 * Streams as timelines: who they are, how far they are known to have come, and
 * what each has seen of the others.
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
 * Locks: core->order, below pool locks; never held across a driver call.
 */
#include <stdlib.h>

#include "core/internal.h"

struct ss_timeline *ss_slot(struct ss_core *core, uint32_t slot)
{
	return core->slots[slot];
}

/* ---- rows --------------------------------------------------------------- */

/* The core has one order lock, but rows outlive it in tokens: references are
 * counted atomically. */
void ss_row_put(struct ss_row *row)
{
	if (row && __atomic_sub_fetch(&row->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(row);
}

struct ss_row *ss_row_get_ref(struct ss_timeline *tl)
{
	if (tl->saw)
		__atomic_add_fetch(&tl->saw->refs, 1, __ATOMIC_RELAXED);
	return tl->saw;
}

struct ss_row *ss_row_of(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_row *row;

	pthread_mutex_lock(&core->order);
	row = ss_row_get_ref(tl);
	pthread_mutex_unlock(&core->order);
	return row;
}

/* Everything enqueued on x from now on is ordered after position n of `slot` and
 * after `from`. Rows are closed under this, so a known position brings nothing.
 * Out of host memory: nothing is granted, which only costs reuse. */
void ss_row_merge_into(struct ss_timeline *x, const struct ss_row *from, uint32_t slot,
		       uint64_t n)
{
	uint32_t count = x->saw ? x->saw->count : 0, need = slot + 1;
	struct ss_row *row = x->saw;

	if (slot == x->slot || ss_row_get(x->saw, slot) >= n)
		return;
	if (from && from->count > need)
		need = from->count;
	if (need < count)
		need = count;
	if (!row || need > count || __atomic_load_n(&row->refs, __ATOMIC_ACQUIRE) > 1) {
		row = calloc(1, sizeof(*row) + need * sizeof(row->n[0]));
		if (!row)
			return;
		row->refs = 1;
		row->count = need;
		if (count)
			memcpy(row->n, x->saw->n, count * sizeof(row->n[0]));
		ss_row_put(x->saw);
		x->saw = row;
	}
	for (uint32_t i = 0; from && i < from->count; i++)
		if (row->n[i] < from->n[i])
			row->n[i] = from->n[i];
	if (row->n[slot] < n)
		row->n[slot] = n;
}

/* ---- completion --------------------------------------------------------- */

static bool raise_to(_Atomic uint64_t *v, uint64_t n)
{
	uint64_t old = atomic_load_explicit(v, memory_order_relaxed);

	while (old < n)
		if (atomic_compare_exchange_weak_explicit(v, &old, n, memory_order_release,
							  memory_order_relaxed))
			return true;
	return false;
}

void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_row *row, bool synced)
{
	bool any = raise_to(&tl->completed, pos);

	if (synced)
		any |= raise_to(&tl->synced, pos);
	for (uint32_t i = 0; row && i < row->count; i++) {
		if (!row->n[i])
			continue;
		any |= raise_to(&core->slots[i]->completed, row->n[i]);
		if (synced)
			any |= raise_to(&core->slots[i]->synced, row->n[i]);
	}
	if (any)
		atomic_fetch_add_explicit(&core->complete_seq, 1, memory_order_release);
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

	for (uint32_t i = 0; i < count; i++)
		if (slot_idle(core->slots[i]))
			return core->slots[i];
	if (count == core->slot_cap)
		return NULL;
	tl = ss_host_alloc(core, sizeof(*tl));
	if (!tl)
		return NULL;
	tl->core = core;
	tl->slot = count;
	tl->now = 1;
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
	tl->dev = dev;
	tl->kind = kind;
	tl->native = native;
	tl->thread = pthread_self();
	tl->alive = true;
	tl->seen = seen;
	tl->capturing = tl->joined = tl->drop = false;
	atomic_store(&tl->marked, false);
	atomic_store(&tl->wanted, false);
	atomic_store(&tl->uncovered, 0);
	atomic_store(&tl->commanded, atomic_load(&tl->completed));
	ss_row_put(tl->saw);
	tl->saw = NULL;
	if (kind == SS_TL_BLOCKING || kind == SS_TL_THREAD)
		atomic_fetch_add(&core->dev[dev].joiners, 1);
	tl->fences_tail = &tl->fences;
	tl->fenced = atomic_load(&tl->completed);
	return tl;
}

/* The timeline takes no more commands. Order lock held. */
void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl)
{
	tl->alive = false;
	tl->capturing = false; /* or its marks would never complete */
	tl->last = ss_position(tl);
	if (tl->kind == SS_TL_BLOCKING || tl->kind == SS_TL_THREAD)
		atomic_fetch_sub(&core->dev[tl->dev].joiners, 1);
	atomic_fetch_add(&core->stream_gen, 1);
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

/* The calling thread's per-thread timelines, one per device. */
static _Thread_local struct {
	uint64_t serial;
	struct ss_timeline *tl[SS_MAX_DEVICES];
} mine;

/* A slot that was retired may be somebody else's by now. */
static bool is_mine(const struct ss_timeline *tl, int dev)
{
	return tl && tl->alive && tl->kind == SS_TL_THREAD && tl->dev == dev &&
	       (pthread_equal(tl->thread, pthread_self()) || SS_MUTANT_IS(14));
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
	pthread_mutex_lock(&core->order);
	tl = mine.tl[dev];
	for (uint32_t i = 0; SS_MUTANT_IS(14) && i < core->slot_count; i++)
		if (is_mine(core->slots[i], dev))
			tl = core->slots[i];
	if (!is_mine(tl, dev))
		tl = timeline_new(core, dev, SS_NATIVE_PER_THREAD, SS_TL_THREAD, true);
	mine.tl[dev] = tl;
	pthread_mutex_unlock(&core->order);
	return tl;
}

void ss_thread_exit(struct ss_core *core)
{
	if (mine.serial != core->serial)
		return;
	/* The runtime may already have taken the stream down with the thread, so
	 * no fence: what was freed on it completes with the device. */
	pthread_mutex_lock(&core->order);
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		struct ss_timeline *tl = mine.tl[dev];

		mine.tl[dev] = NULL;
		if (!is_mine(tl, dev))
			continue;
		if (null_counts_on(core, tl)) {
			/* It cannot be waited for: the null stream starts afresh, and
			 * what was freed on the old one completes with the device. */
			ss_timeline_end(core, core->dev[dev].null);
			atomic_fetch_add(&core->zombies, 1);
			__atomic_store_n(&core->dev[dev].null, NULL, __ATOMIC_RELEASE);
		}
		ss_timeline_end(core, tl);
		if ((!atomic_load(&tl->marked) && !atomic_load(&core->dev[dev].classic)) ||
		    SS_MUTANT_IS(41))
			ss_complete(core, tl, tl->last, NULL, true);
		else
			atomic_fetch_add(&core->zombies, 1);
	}
	pthread_mutex_unlock(&core->order);
}

struct ss_timeline *ss_timeline_add(struct ss_core *core, int dev, void *native,
				    enum ss_timeline_kind kind, bool seen)
{
	struct ss_timeline *tl, *old;

	pthread_mutex_lock(&core->order);
	HASH_FIND_PTR(core->by_handle, &native, old);
	if (old && (!seen || SS_MUTANT_IS(7))) {
		/* Two threads asked about the same unknown handle. */
		pthread_mutex_unlock(&core->order);
		return old;
	}
	if (old) {
		/* Destroyed by a route that we did not see. No fence is possible:
		 * its marks complete with the device. */
		HASH_DEL(core->by_handle, old);
		ss_timeline_end(core, old);
		atomic_fetch_add(&core->zombies, 1);
	}
	tl = timeline_new(core, dev, native, kind, seen);
	if (tl)
		HASH_ADD_PTR(core->by_handle, native, tl);
	pthread_mutex_unlock(&core->order);
	return tl;
}

static _Thread_local struct {
	uint64_t serial, gen;
	void *native;
	struct ss_timeline *tl;
} last_stream;

struct ss_timeline *ss_timeline_find(struct ss_core *core, void *native)
{
	uint64_t gen = atomic_load_explicit(&core->stream_gen, memory_order_acquire);
	struct ss_timeline *tl;

	if (last_stream.native == native && last_stream.gen == gen &&
	    last_stream.serial == core->serial)
		return last_stream.tl;
	pthread_mutex_lock(&core->order);
	HASH_FIND_PTR(core->by_handle, &native, tl);
	pthread_mutex_unlock(&core->order);
	if (tl) {
		last_stream.native = native;
		last_stream.gen = gen;
		last_stream.serial = core->serial;
		last_stream.tl = tl;
	}
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
	bool must_join = false, marked, fenced = false;

	if (SS_MUTANT_IS(7))
		return false;
	/* A fence first, while the handle still is the stream. Whatever hipMalloc
	 * gave may be in use on any stream, marked or not. */
	marked = atomic_load(&tl->marked) || atomic_load(&core->dev[tl->dev].classic);
	if (marked && !SS_MUTANT_IS(10))
		fenced = ss_fence_request(core, tl, UINT64_MAX, SS_FENCE_LATE);
	ss_fence_poll(core, tl, -1);

	pthread_mutex_lock(&core->order);
	if (tl->alive) {
		if (tl->kind != SS_TL_NULL && tl->kind != SS_TL_THREAD)
			HASH_DEL(core->by_handle, tl);
		must_join = null_counts_on(core, tl) && !SS_MUTANT_IS(28);
		ss_timeline_end(core, tl);
		/* Nothing was freed on it from the fence's position to here: a
		 * stream that is being destroyed may not be used. */
		if (!marked || SS_MUTANT_IS(10))
			ss_complete(core, tl, tl->last, NULL, true);
		else if (fenced)
			tl->last = tl->fenced;
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
	__atomic_store_n(&tl->capturing, on, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&core->order);
	if (on)
		ss_fence_quiesce(tl);
}

bool ss_timeline_capturing(const struct ss_timeline *tl)
{
	return __atomic_load_n(&tl->capturing, __ATOMIC_RELAXED);
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
