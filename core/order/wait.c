/* SPDX-License-Identifier: MIT */
/*
 * hipStreamWaitEvent, hipEventSynchronize and hipEventQuery: begin and end of the watched calls,
 * and what they grant (event.h).
 *
 * Locks: the bit LOCKED of an event, then timeline->lock.
 */
#include "core/order/event.h"

/* The slow half of clock_now(): another thread may hold the event. */
SS_COLD uint64_t clock_then(struct ss_event *e)
{
	uint32_t state = ss_event_lock(e);
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_relaxed);

	ss_event_unlock(e, state);
	return state ? 0 : gen;
}

/* The generation of the clock, if that is valid now; 0: it is not. The generation is read first,
 * since a record that begins in between changes it. */
SS_INLINE uint64_t clock_now(struct ss_event *e)
{
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_acquire);

	if (unlikely(atomic_load_explicit(&e->state, memory_order_acquire)))
		return clock_then(e);
	return gen;
}

/* The slow half of lock_unchanged(): another thread is or was at the event. */
SS_COLD bool lock_beside(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	uint32_t state = ss_event_lock(e);

	if (!state && atomic_load_explicit(&e->gen, memory_order_relaxed) == gen &&
	    !ss_distrusted(core))
		return true;
	ss_event_unlock(e, state);
	return false;
}

/* Is the clock still the one that `begin` saw, and is it trusted? True: the event is locked. */
SS_INLINE bool lock_unchanged(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	if (unlikely(!change(e, 0, LOCKED)))
		return lock_beside(core, e, gen);
	if (likely(atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) &&
	    likely(!atomic_load_explicit(&core->order->distrust, memory_order_relaxed)))
		return true;
	ss_event_unlock(e, 0);
	return false;
}

SS_INLINE struct ss_token event_begin(struct ss_core *core, void *event, int kind)
{
	struct ss_event *e = ss_event_find(core, event, false);
	struct ss_token t;

	t.a = e;
	t.gen = likely(e != NULL) ? clock_now(e) : 0;
	t.kind = t.gen ? kind : SS_TOKEN_NONE;
	return t;
}

/* Stream x waits for what the event stood for when the call began. */
static void wait_end(struct ss_core *core, struct ss_event *e, uint64_t gen, struct ss_timeline *x)
{
	if (!lock_unchanged(core, e, gen))
		return;
	ss_clock_merge(x, e->clock, e->slot, e->pos);
	ss_event_unlock(e, 0);
}

struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = event_begin(core, event, SS_TOKEN_WAIT);

	if (unlikely(!tl || tl->capturing))
		t.kind = SS_TOKEN_NONE;
	t.b = tl;
	return t;
}

void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	int kind = t->kind;

	t->kind = SS_TOKEN_NONE;
	if (likely(kind == SS_TOKEN_WAIT && ok))
		wait_end(core, t->a, t->gen, t->b);
}

struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return event_begin(core, event, SS_TOKEN_EVENT);
}

struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen,
				  uint64_t *pos)
{
	struct ss_timeline *tl;

	if (!lock_unchanged(core, e, gen))
		return NULL;
	tl = core->order->slots[e->slot];
	ss_complete(core, tl, e->pos, e->clock, true);
	atomic_store_explicit(&e->proved, gen, memory_order_relaxed);
	*pos = e->pos;
	ss_event_unlock(e, 0);
	return tl;
}
