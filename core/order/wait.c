/* SPDX-License-Identifier: MIT */
/*
 * Waiting for events, asking for them, and what is known then (event.h).
 *
 * Locks: the bit LOCKED of an event, then timeline->lock.
 */
#include "core/event.h"

RARE uint64_t clock_then(struct ss_event *e)
{
	uint32_t state = ss_event_lock(e);
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_relaxed);

	ss_event_unlock(e, state);
	return state ? 0 : gen;
}

/* The generation of a clock that is valid now; 0: there is none. The generation is read
 * first: a record that begins in between changes it. */
INLINE uint64_t clock_now(struct ss_event *e)
{
	uint64_t gen = atomic_load_explicit(&e->gen, memory_order_acquire);

	if (unlikely(atomic_load_explicit(&e->state, memory_order_acquire)))
		return clock_then(e);
	return gen;
}

/* Somebody is at the event, or was. */
RARE bool lock_beside(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	uint32_t state = ss_event_lock(e);

	if ((!state && atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) ||
	    (SS_MUTANT_IS(16) && e->pos))
		if (!ss_distrusted(core) || SS_MUTANT_IS(36))
			return true;
	ss_event_unlock(e, state);
	return false;
}

/* Is the clock the one that `begin` saw? True: the event is locked. */
INLINE bool lock_unchanged(struct ss_core *core, struct ss_event *e, uint64_t gen)
{
	if (unlikely(!change(e, 0, LOCKED)))
		return lock_beside(core, e, gen);
	if (likely(atomic_load_explicit(&e->gen, memory_order_relaxed) == gen) &&
	    likely(!atomic_load_explicit(&core->distrust, memory_order_relaxed)))
		return true;
	ss_event_unlock(e, 0);
	return (SS_MUTANT_IS(16) || SS_MUTANT_IS(36)) && lock_beside(core, e, gen);
}

INLINE struct ss_token event_begin(struct ss_core *core, void *event, int kind)
{
	struct ss_event *e = ss_event_find(core, event, false);
	struct ss_token t = {0};

	if (e)
		t.gen = clock_now(e);
	t.a = e;
	t.kind = t.gen ? kind : SS_TOKEN_NONE;
	return t;
}

INLINE void wait_end(struct ss_core *core, struct ss_event *e, uint64_t gen,
		     struct ss_timeline *x)
{
	struct ss_timeline *s;

	if (!lock_unchanged(core, e, gen))
		return;
	s = SS_MUTANT_IS(2) || SS_MUTANT_IS(3) ? core->slots[e->slot] : NULL;
	ss_row_merge_into(x, SS_MUTANT_IS(3) ? s->saw : e->row, e->slot,
			  SS_MUTANT_IS(2) ? atomic_load(&s->now) : e->pos);
	if (SS_MUTANT_IS(43) && core->slots[e->slot]->kind == SS_TL_BLOCKING) {
		s = ss_timeline_null(core, x->dev);
		ss_row_merge_into(x, NULL, s->slot, atomic_load(&s->now));
	}
	ss_event_unlock(e, 0);
}

struct ss_token ss_wait_begin(struct ss_core *core, void *event, struct ss_timeline *tl)
{
	struct ss_token t = {0};

	if (!tl || tl->capturing)
		return t;
	t = event_begin(core, event, SS_TOKEN_WAIT);
	t.b = tl;
	return t;
}

void ss_wait_end(struct ss_core *core, struct ss_token *t, bool ok)
{
	if (t->kind == SS_TOKEN_WAIT && (ok || SS_MUTANT_IS(19)))
		wait_end(core, t->a, t->gen, t->b);
	t->kind = SS_TOKEN_NONE;
}

int ss_wait(struct ss_core *core, void *native, void *event, unsigned flags,
	    const struct ss_wait_call *call, int *depth)
{
	struct ss_timeline *tl = ss_timeline_listed(core, native);
	struct ss_event *e;
	uint64_t gen;
	int err;

	if (unlikely(!tl))
		return call->long_way(native, event, flags);
	e = ss_event_listed(core, event);
	if (unlikely(!e))
		return call->long_way(native, event, flags);
	gen = clock_now(e);
	++*depth;
	err = call->real(native, event, flags);
	--*depth;
	if (likely(!err))
		wait_end(core, e, gen, tl);
	return err;
}

struct ss_token ss_event_sync_begin(struct ss_core *core, void *event)
{
	return event_begin(core, event, SS_TOKEN_EVENT);
}

/* Grants what the event proves. */
struct ss_timeline *ss_event_done(struct ss_core *core, struct ss_event *e, uint64_t gen,
				  uint64_t *pos)
{
	struct ss_timeline *tl;

	if (!lock_unchanged(core, e, gen))
		return NULL;
	tl = core->slots[e->slot];
	ss_complete(core, tl, e->pos, e->row, true);
	atomic_store_explicit(&e->proved, gen, memory_order_relaxed);
	*pos = e->pos;
	ss_event_unlock(e, 0);
	return tl;
}

int ss_event_sync(struct ss_core *core, void *event, bool threshold,
		  const struct ss_sync_call *call, int *depth)
{
	struct ss_event *e = ss_event_listed(core, event);
	struct ss_timeline *tl;
	uint64_t gen, pos;
	int err;

	if (unlikely(!e))
		return call->long_way(event);
	gen = clock_now(e);
	++*depth;
	err = call->real(event);
	--*depth;
	if (unlikely(err))
		return call->failed(err);
	/* The host knows already? Then nothing is left but the housekeeping. */
	if (!gen || (likely(atomic_load_explicit(&e->proved, memory_order_relaxed) == gen) &&
			    !threshold))
		return err;
	tl = ss_event_done(core, e, gen, &pos);
	if (threshold && tl)
		ss_keep_house(core, tl->dev, tl, pos, false);
	return err;
}
