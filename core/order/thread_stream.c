/* SPDX-License-Identifier: MIT */
/*
 * hipStreamPerThread: one stream per thread and device, which ends with its thread.
 *
 * Locks: order->lock.
 */
#include <stdlib.h>

#include "core/order/timeline.h"

/* The calling thread's streams in the core that it used last. They are found by slot, because
 * the core may have ended since. */
struct thread_streams {
	uint64_t serial;                 /* of that core */
	uint64_t number[SS_MAX_DEVICES]; /* 0: none on this device */
	uint32_t slot[SS_MAX_DEVICES];
};

/* A pointer, because static TLS is scarce: all libraries of a process share it. NULL: none yet. */
static _Thread_local struct thread_streams *mine __attribute__((tls_model("initial-exec")));

/* NULL: there is none, or it was reset. Its slot may be another stream's by now. */
static struct ss_timeline *my_timeline(const struct ss_order *o, int dev)
{
	struct ss_timeline *tl = mine->number[dev] ? o->slots[mine->slot[dev]] : NULL;

	return tl && atomic_load(&tl->number) == mine->number[dev] ? tl : NULL;
}

struct ss_timeline *ss_timeline_thread(struct ss_core *core, int dev)
{
	struct ss_order *o = core->order;
	struct ss_timeline *tl;

	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return NULL;
	if (!mine || mine->serial != core->serial) {
		free(mine);
		mine = calloc(1, sizeof(*mine));
		if (!mine)
			return NULL;
		mine->serial = core->serial;
	}
	tl = my_timeline(o, dev);
	if (tl)
		return tl;
	pthread_mutex_lock(&o->lock);
	tl = ss_timeline_begin(core, dev, SS_NATIVE_PER_THREAD, SS_TL_THREAD);
	if (tl) {
		mine->slot[dev] = tl->progress.slot;
		mine->number[dev] = atomic_load(&tl->number);
	}
	pthread_mutex_unlock(&o->lock);
	ss_null_quiesce(core, tl);
	return tl;
}

/* The runtime destroys the stream with the thread, so there is no last fence. `ended`: the
 * stream is known to be idle. Order lock held. */
static void thread_end(struct ss_core *core, struct ss_timeline *tl, bool ended)
{
	struct ss_order *o = core->order;
	struct ss_order_device *d = &o->dev[atomic_load(&tl->dev)];

	if (ss_null_relies_on(core, tl) && !ended) {
		/* The stream cannot be waited for. So the null timeline starts afresh, and the
		 * frees on the old one complete with the device. */
		ss_timeline_end(core, d->null);
		atomic_fetch_add(&o->zombies, 1);
		__atomic_store_n(&d->null, NULL, __ATOMIC_RELEASE);
	}
	ss_timeline_end(core, tl);
	if (!ss_stream_may_be_marked(core, tl))
		ss_complete(core, tl, tl->last, NULL, true);
	else if (ended)
		ss_complete(core, tl, tl->last, NULL, false);
	else
		atomic_fetch_add(&o->zombies, 1);
}

void ss_thread_exit(struct ss_core *core, bool late, uint64_t drained)
{
	if (!mine || mine->serial != core->serial)
		return;
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++) {
		struct ss_timeline *tl = my_timeline(core->order, dev);
		enum ss_status asked;
		bool ended;

		if (!tl)
			continue;
		ended = !late && (ss_stream_ask_last(core, tl, &asked) ||
				  ((drained >> dev & 1) && !ss_needs_cover(tl)));
		pthread_mutex_lock(&core->order->lock);
		if (my_timeline(core->order, dev)) /* not if a reset has ended it meanwhile */
			thread_end(core, tl, ended);
		pthread_mutex_unlock(&core->order->lock);
	}
	free(mine);
	mine = NULL;
}
