/* SPDX-License-Identifier: MIT */
/*
 * The table of streams: the slots of timelines, the table of handles, the null streams.
 *
 * A timeline lives in a slot. The positions of a slot only grow, also from one stream in it to the
 * next, and a slot is given to a new stream only when every mark of the old one has completed. So a
 * mark (slot, n) never needs to name its stream, and a new stream inherits nothing.
 *
 * Locks: order->lock, below the locks of pools, for the table; timeline->lock for the clock of one
 * stream.
 */
#include "core/order/timeline.h"
#include "trace/writer.h"

uint32_t ss_order_slots(const struct ss_core *core)
{
	return atomic_load_explicit(&core->order->slot_count, memory_order_acquire);
}

/* ---- beginning and end of a stream ---------------------------------------- */

/* A null stream may end while a thread still allocates on it, for HIP never destroys it
 * (thread_stream.c). So its slot is kept for the null streams of its device. */
static bool slot_suits(const struct ss_timeline *tl, enum ss_timeline_kind kind, int dev)
{
	if (tl->kind == SS_TL_NULL || kind == SS_TL_NULL)
		return tl->kind == kind && tl->dev == dev;
	return true;
}

static bool slot_idle(const struct ss_timeline *tl)
{
	if (atomic_load(&tl->waiting)) /* a wait is counted with this stream until it ends */
		return false;
	return !tl->alive && !tl->fences && !tl->polling && !atomic_load(&tl->recording) &&
	       atomic_load(&tl->progress.completed) >= tl->last;
}

/* A slot for a new stream: an idle one, or a new one. Order lock held. */
static struct ss_timeline *slot_take(struct ss_core *core, enum ss_timeline_kind kind, int dev)
{
	struct ss_order *o = core->order;
	uint32_t count = atomic_load_explicit(&o->slot_count, memory_order_relaxed);
	struct ss_timeline *tl;

	/* The search is skipped while no stream has ended. Otherwise a program that creates
	 * thousands of streams would search all slots for each new stream. */
	for (uint32_t i = 0; (o->slots_ended || kind == SS_TL_NULL) && i < count; i++)
		if (slot_suits(o->slots[i], kind, dev) && slot_idle(o->slots[i])) {
			o->slots_ended -= kind != SS_TL_NULL;
			return o->slots[i];
		}
	if (count == SS_MAX_SLOTS)
		return NULL;
	tl = ss_host_alloc(core, sizeof(*tl));
	if (!tl)
		return NULL;
	tl->progress.slot = count;
	tl->progress.now = 1;
	tl->version = (uint64_t)count << 40; /* no two slots have a version in common */
	o->slots[count] = tl;
	atomic_store_explicit(&o->slot_count, count + 1, memory_order_release);
	return tl;
}

struct ss_timeline *ss_timeline_begin(struct ss_core *core, int dev, void *native,
				      enum ss_timeline_kind kind)
{
	static const enum ss_trace_stream_kind recorded[] = {
		[SS_TL_NULL] = SS_TRACE_STREAM_NULL,
		[SS_TL_BLOCKING] = SS_TRACE_STREAM_BLOCKING,
		[SS_TL_NONBLOCKING] = SS_TRACE_STREAM_NONBLOCKING,
		[SS_TL_THREAD] = SS_TRACE_STREAM_THREAD,
	};
	struct ss_timeline *tl = slot_take(core, kind, dev);
	struct ss_order *o = core->order;
	uint64_t completed;

	if (!tl)
		return NULL;
	completed = atomic_load(&tl->progress.completed);
	tl->dev = dev;
	tl->kind = kind;
	tl->native = native;
	ss_trace_stream(native, dev, recorded[kind]);
	tl->thread = pthread_self();
	tl->alive = true;
	tl->number = ++o->begun;
	tl->capturing = tl->joined = tl->drop = false;
	atomic_store(&tl->progress.marked, false);
	atomic_store(&tl->visits, 0);
	atomic_store(&tl->wanted, false);
	atomic_store(&tl->wanted_at, 0);
	atomic_store(&tl->progress.uncovered, 0);
	atomic_store(&tl->commanded, completed);
	ss_spin_lock(&tl->lock);
	if (tl->saw)
		tl->saw->count = 0;
	atomic_store(&tl->version, ss_version(tl) + 1);
	atomic_store(&tl->proved, ss_version(tl));
	ss_spin_unlock(&tl->lock);
	if (ss_kind_joins(kind))
		atomic_fetch_add(&o->dev[dev].joiners, 1);
	if (kind != SS_TL_NULL)
		atomic_fetch_add(&o->dev[dev].streams, 1);
	tl->fences_tail = &tl->fences;
	atomic_store(&tl->fenced, completed);
	tl->sealed = 0;
	return tl;
}

void ss_timeline_end(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_order *o = core->order;

	if (tl->kind == SS_TL_BLOCKING || tl->kind == SS_TL_NONBLOCKING)
		ss_table_remove(&o->by_handle, &tl->link);
	ss_spin_lock(&tl->lock);
	tl->number = 0;
	o->slots_ended += tl->alive && tl->kind != SS_TL_NULL;
	tl->alive = false;
	o->capturing -= tl->capturing;
	tl->capturing = false; /* else its marks would never complete */
	tl->last = ss_position(tl);
	ss_spin_unlock(&tl->lock);
	if (ss_kind_joins(tl->kind))
		atomic_fetch_sub(&o->dev[atomic_load(&tl->dev)].joiners, 1);
	if (tl->kind != SS_TL_NULL)
		atomic_fetch_sub(&o->dev[atomic_load(&tl->dev)].streams, 1);
	ss_hits_end(core);
}

/* ---- null streams and streams with handles --------------------------------- */

struct ss_timeline *ss_timeline_null(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	struct ss_timeline *tl;

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	tl = __atomic_load_n(&o->dev[dev].null, __ATOMIC_ACQUIRE);
	if (tl)
		return tl;
	pthread_mutex_lock(&o->lock);
	tl = o->dev[dev].null;
	if (!tl) {
		tl = ss_timeline_begin(core, dev, NULL, SS_TL_NULL);
		__atomic_store_n(&o->dev[dev].null, tl, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&o->lock);
	return tl;
}

struct ss_timeline *ss_timeline_add(struct ss_core *core, int dev, void *native,
				    enum ss_timeline_kind kind, bool seen)
{
	struct ss_order *o = core->order;
	struct ss_timeline *tl, *old;

	pthread_mutex_lock(&o->lock);
	old = ss_timeline_listed(core, native);
	if (old && !seen) {
		/* Two threads asked for the flags of the same unknown handle. */
		pthread_mutex_unlock(&o->lock);
		return old;
	}
	if (old) {
		/* The old stream was destroyed by a call that the shim did not see. A fence is
		 * no longer possible, so its marks complete with the device. */
		ss_timeline_end(core, old);
		atomic_fetch_add(&o->zombies, 1);
	}
	tl = ss_timeline_begin(core, dev, native, kind);
	if (tl)
		ss_table_add(&o->by_handle, &tl->link, native);
	pthread_mutex_unlock(&o->lock);
	ss_null_quiesce(core, tl);
	return tl;
}

SS_COLD struct ss_timeline *search(struct ss_core *core, void *native)
{
	struct ss_timeline *tl;

	pthread_mutex_lock(&core->order->lock);
	tl = ss_timeline_listed(core, native);
	pthread_mutex_unlock(&core->order->lock);
	return tl;
}

struct ss_timeline *ss_timeline_find(struct ss_core *core, void *native)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);

	return likely(tl != NULL) ? tl : search(core, native);
}

size_t ss_streams_nonblocking(struct ss_core *core, int dev, void **out, size_t max)
{
	struct ss_order *o = core->order;
	size_t n = 0;

	pthread_mutex_lock(&o->lock);
	SS_TIMELINES_EACH(tl, o) {
		if (!tl->alive || tl->dev != dev || tl->kind != SS_TL_NONBLOCKING)
			continue;
		if (n < max)
			out[n] = tl->native;
		n++;
	}
	pthread_mutex_unlock(&o->lock);
	return n;
}

/* ---- figures of a stream, or of all ----------------------------------------- */

int ss_timeline_device(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->dev, memory_order_relaxed);
}

/* Read without the order lock: another thread may destroy the stream, and its slot may become
 * another stream's. Later reads of the slot are at least as new as this one. */
enum ss_timeline_kind ss_timeline_kind(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->kind, memory_order_acquire);
}

void *ss_timeline_native(const struct ss_timeline *tl)
{
	return atomic_load_explicit(&tl->native, memory_order_relaxed);
}

uint32_t ss_order_streams(struct ss_core *core, int dev)
{
	return atomic_load(&core->order->dev[dev].streams);
}

void ss_distrust(struct ss_core *core)
{
	atomic_store(&core->order->distrust, true);
}

bool ss_distrusted(const struct ss_core *core)
{
	return atomic_load_explicit(&core->order->distrust, memory_order_relaxed);
}
