/* SPDX-License-Identifier: MIT */
/*
 * The watched calls of events: begin and end of hipEventRecord and hipStreamWaitEvent, and the
 * begin of hipEventSynchronize and hipEventQuery, which ss_sync_end() ends. event.h describes what
 * these calls grant, core.h how a pair is called. The handlers of the preload run them with every
 * call, so the usual case is inlined; event.c has all others.
 *
 * Locks: the bit SS_EVENT_LOCKED of an event, then timeline->lock.
 */
#ifndef SS_ORDER_WATCHED_H
#define SS_ORDER_WATCHED_H

#include "core/order/event.h"

/* ---- records --------------------------------------------------------------- */

/* Copies the clock of tl into the event's. Event locked. */
void ss_event_copy_clock(struct ss_event *e, struct ss_timeline *tl);
/* See ss_cover_begin(). */
unsigned ss_record_cover(struct ss_timeline *tl);
/* The other cases of begin and end. tl NULL: a record without a clock. */
__attribute__((cold)) struct ss_token ss_record_begin_beside(struct ss_core *core, void *event,
							     struct ss_timeline *tl);
__attribute__((cold)) void ss_record_end_beside(struct ss_event *e, bool ok);

/* Writes the clock: tl's position, and the positions that tl has seen. Event locked. */
SS_INLINE void ss_event_read_clock(struct ss_event *e, struct ss_timeline *tl)
{
	ss_event_next_gen(e);
	e->pos = ss_position(tl);
	if (unlikely(e->version != ss_version(tl)))
		ss_event_copy_clock(e, tl);
}

/* The usual case: the clock is valid, and no other thread is at the event. False: another case,
 * and nothing was done. */
SS_INLINE bool ss_record_begin_alone(struct ss_event *e, const void *event, struct ss_timeline *tl)
{
	if (unlikely(!ss_event_change(e, 0, SS_EVENT_INFLIGHT | SS_EVENT_LOCKED)))
		return false;
	if (unlikely(!ss_event_is_still(e, event))) {
		ss_event_unlock(e, 0);
		return false;
	}
	ss_event_read_clock(e, tl);
	ss_event_unlock(e, SS_EVENT_INFLIGHT);
	return true;
}

/* hipEventRecord(event, tl) */
SS_INLINE struct ss_token ss_record_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_event *e = ss_event_listed(core, event);
	struct ss_token t;

	if (unlikely(!tl || !tl->alive || tl->capturing))
		return ss_record_begin_beside(core, event, NULL);
	if (unlikely(!e || !ss_record_begin_alone(e, event, tl)))
		return ss_record_begin_beside(core, event, tl);
	t.kind = SS_TOKEN_RECORD;
	t.a = e;
	t.b = tl;
	t.cover = unlikely(ss_needs_cover(tl)) ? ss_record_cover(tl) : 0;
	return t;
}

SS_INLINE void ss_record_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	struct ss_timeline *tl = t->b;

	if (unlikely(t->kind != SS_TOKEN_RECORD))
		return;
	t->kind = SS_TOKEN_NONE;
	if (unlikely(!ok || !ss_event_change(t->a, SS_EVENT_INFLIGHT, 0)))
		ss_record_end_beside(t->a, ok);
	if (unlikely(!tl))
		return;
	if (unlikely(t->cover) && ok)
		ss_cover_end(tl, t->cover);
	/* The application's command has just joined all that a fence would join. */
	if (ok && unlikely(atomic_load_explicit(&tl->wanted, memory_order_relaxed)))
		ss_fence_serve(core, tl, SS_FENCE_JOINING);
}

/* ---- waits and queries ------------------------------------------------------ */

/* The slow half of ss_event_clock_now(): another thread may hold the event. */
__attribute__((cold)) uint64_t ss_event_clock_then(struct ss_event *e);
/* The slow half of ss_event_lock_unchanged(): another thread is or was at the event. */
__attribute__((cold)) bool ss_event_lock_beside(struct ss_core *core, struct ss_event *e,
						uint64_t gen);

/* The generation of the clock, if the clock is valid now; 0: it is not. The generation is read
 * first, since a record that begins in between changes it. */
SS_INLINE uint64_t ss_event_clock_now(struct ss_event *e)
{
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_acquire);

	if (unlikely(atomic_load_explicit(&e->state, memory_order_acquire)))
		return ss_event_clock_then(e);
	return gen;
}

/* Is the clock still the one that `begin` saw, and is it trusted? True: the event is locked. */
SS_INLINE bool ss_event_lock_unchanged(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	if (unlikely(!ss_event_change(e, 0, SS_EVENT_LOCKED)))
		return ss_event_lock_beside(core, e, gen);
	if (likely(atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) &&
	    likely(!atomic_load_explicit(&core->order->distrust, memory_order_relaxed)))
		return true;
	ss_event_unlock(e, 0);
	return false;
}

SS_INLINE struct ss_token ss_event_begin(struct ss_core *core, void *event, int kind)
{
	struct ss_event *e = ss_event_find(core, event, false);
	struct ss_token t;

	t.a = e;
	t.gen = likely(e != NULL) ? ss_event_clock_now(e) : 0;
	t.kind = t.gen ? kind : SS_TOKEN_NONE;
	t.waiting = (struct ss_waiting){0};
	return t;
}

/* Stream x waits for all work that the event covered when the call began. */
SS_INLINE void ss_wait_grant(struct ss_core *core, struct ss_event *e, uint64_t gen,
			     struct ss_timeline *x)
{
	if (!ss_event_lock_unchanged(core, e, gen))
		return;
	ss_clock_merge(x, e->clock, e->slot, e->pos);
	ss_event_unlock(e, 0);
}

/* hipStreamWaitEvent(tl, event) */
SS_INLINE struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = ss_event_begin(core, event, SS_TOKEN_WAIT);

	if (unlikely(!tl || tl->capturing))
		t.kind = SS_TOKEN_NONE;
	t.b = tl;
	return t;
}

/* Will a record end the wait that this process does not see, for one another process's? Such a
 * record may need the next call of a thread of this process. */
SS_INLINE bool ss_wait_unseen(const struct ss_token *t)
{
	const struct ss_event *e = t->a;

	return unlikely(!t->gen) && e &&
	       atomic_load_explicit(&e->state, memory_order_relaxed) & SS_EVENT_STICKY;
}

SS_INLINE void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	int kind = t->kind;

	t->kind = SS_TOKEN_NONE;
	if (likely(kind == SS_TOKEN_WAIT && ok))
		ss_wait_grant(core, t->a, t->gen, t->b);
}

/* Proves the completion of all work before `event` (hipEventQuery). */
SS_INLINE struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return ss_event_begin(core, event, SS_TOKEN_EVENT);
}

/* The same for a call that waits (hipEventSynchronize). */
struct ss_token ss_event_wait_begin(struct ss_core *core, void *event);

#endif
