/* SPDX-License-Identifier: MIT */
/*
 * Allocations that are no hit: the heaps, then what other streams freed and has
 * become usable, then growth, then the out-of-memory ladder - in the order of
 * what they cost.
 *
 * Locks: pool->lock, dropped for every driver call.
 */
#include "core/internal.h"
#include "core/lease.h"
#include "core/vmm.h"

#define MANY_STREAMS 64 /* a fence each, only to ask whether a device is idle */

/* What is asked for, and what it became. */
struct want {
	uint64_t size, align, id;
	bool tight;   /* rather grow than cut up an idle segment that is larger */
	enum ss_demand_state demand;
	bool apart;    /* from the memory of what stays, or rather from new (stays.c) */
	bool together; /* it can't be had */
	struct ss_past past; /* what was asked for before (recur.c) */
	struct ss_fit fit; /* why not to cut up the idle segment */
};

static bool whole(const struct ss_block *b)
{
	return b->size == b->seg->size;
}

/* A range of a segment that is in use anyway comes before an idle segment, which
 * could go back; then the smaller one. */
static bool better(const struct ss_block *a, const struct ss_block *b)
{
	if (!a || !b)
		return a != NULL;
	return whole(a) != whole(b) ? whole(b) : a->size < b->size;
}

/* Is there memory apart for what stays, and is this such a block? */
static bool stays(struct ss_pool *pool, const struct want *w)
{
	return pool->vmm && pool->vmm->apart && !w->together && w->demand == SS_GROWING &&
	       ss_stays_apart(pool, w->size);
}

/* The best range of h: for what stays only from the memory apart, for the rest only from there if
 * there is no other room. */
static struct ss_block *best_of(const struct ss_pool *pool, const struct ss_heap *h,
				const struct want *w)
{
	struct ss_block *b = NULL;

	if (pool->vmm && pool->vmm->apart && w->apart)
		b = ss_heap_best_within(h, w->size, w->align, ss_stays_from(pool->vmm), UINT64_MAX);
	else if (pool->vmm && pool->vmm->apart)
		b = ss_heap_best_within(h, w->size, w->align, 0, ss_stays_from(pool->vmm));
	return b || w->apart ? b : ss_heap_best_part(h, w->size, w->align);
}

/* The better of what q owns and what is clean, cut to size. Pool lock held. */
static struct ss_block *from_heaps(struct ss_pool *pool, struct ss_queue *q, struct want *w,
				   uint64_t *rule)
{
	struct ss_block *own, *clean, *b;
	uint64_t fresh = 0, start;
	bool used_before = true;

	w->apart = stays(pool, w);
	b = w->apart ? NULL : ss_recur_spot(pool, q, &w->past, w->size, w->align, &start);
	if (!b) {
		own = q ? best_of(pool, &q->own, w) : NULL;
		clean = best_of(pool, &pool->clean, w);
		b = better(clean, own) ? clean : own;
		if (b && pool->vmm) {
			if (!w->apart)
				b = ss_turns_next(pool, q, w->size, w->align, b);
		} else if (b && ss_turns(pool)) {
			b = ss_turns_best(pool, q, w->size, w->align, b, w->tight ? &w->fit : NULL);
			if (!b)
				return NULL;
		}
		start = b ? ss_start_in(b, w->align, 0) : 0;
	}
	if (!b && w->apart) {
		return NULL;
	} else if (!b) {
		b = ss_join(pool, q, w->size, w->align);
	} else if (w->tight && ss_fit_wasteful(pool, b, w->size, w->demand != SS_STEADY,
					       &w->fit)) {
		return NULL;
	} else {
		used_before = b->n != 0;
		b = ss_carve(pool, b, w->size, start);
	}
	if (b && rule)
		++*rule;
	else if (b)
		++*(b->slot != SS_SLOT_CLEAN ? &pool->st.reuse_same_stream :
		    used_before ? &pool->st.reuse_completed : &fresh);
	if (b)
		w->id = pool->id_base | ++pool->ids;
	return b;
}

/* Where streams divide by themselves what is theirs it is enough that one other has it: the
 * rest stays theirs. Pool lock held, dropped to ask. */
static struct ss_block *from_one(struct ss_pool *pool, struct ss_queue *q, struct want *w)
{
	struct ss_queue_table *t = atomic_load_explicit(&pool->queues, memory_order_acquire);
	uint32_t cap = t ? t->cap : 0, first = pool->next_other;
	struct ss_block *b = NULL;
	bool asked = false;

	for (uint32_t i = 0; i < cap && !b; i++) {
		uint32_t at = (first + i) % cap;
		struct ss_queue *other = atomic_load_explicit(&t->q[at], memory_order_acquire);
		enum ss_offer offer;

		if (!other || other == q)
			continue;
		offer = ss_lease_give(pool, other, w->size, w->align, &b);
		if (offer == SS_OFFER_LATER && !asked) {
			asked = true;
			if (ss_others_done(pool, other))
				offer = ss_lease_give(pool, other, w->size, w->align, &b);
		}
		if (offer != SS_OFFER_NOW)
			continue;
		pool->next_other = at + 1;
		if (b) {
			pool->st.reuse_completed++;
			w->id = pool->id_base | ++pool->ids;
			break;
		}
		ss_flush(pool, other);
		ss_settle(pool);
		b = from_heaps(pool, q, w, NULL);
	}
	return b;
}

/* Memory that other streams freed. Called and returns with the pool lock held,
 * drops it for the driver. */
static struct ss_block *from_others(struct ss_pool *pool, struct ss_queue *q,
				    struct ss_timeline *x, struct want *w)
{
	struct ss_core *core = pool->core;
	struct ss_row *row = NULL;
	struct ss_block *b;
	unsigned rules;

	pthread_mutex_unlock(&pool->lock);
	ss_fence_poll(core, NULL, -1);
	if (x)
		row = ss_row_of(core, x);
	pthread_mutex_lock(&pool->lock);
	b = w->demand == SS_GROWING ? NULL : from_one(pool, q, w);
	if (!b) {
		ss_flush_all(pool);
		ss_settle(pool);
		b = from_heaps(pool, q, w, NULL);
	}
	if (!b && x) {
		rules = ss_absorb(pool, x, row);
		b = from_heaps(pool, q, w,
			       rules & SS_RULE_EVENT ? &pool->st.reuse_event :
			       rules ? &pool->st.reuse_implicit : NULL);
	} else if (!b && pool->classic && SS_MUTANT_IS(17)) {
		ss_absorb(pool, ss_timeline_null(core, pool->dev), row);
	}
	if (!b && ss_others_ask(pool, q)) {
		ss_settle(pool);
		b = from_heaps(pool, q, w, NULL);
	}
	ss_row_put(row);
	return b;
}

bool ss_idle_at_last(struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	bool skip, idle;

	if (!pool->classic || atomic_load(&core->hasty) || atomic_load(&core->capturing))
		return false;
	pthread_mutex_lock(&pool->lock);
	skip = pool->patience.skip;
	pool->patience.skip -= skip;
	pthread_mutex_unlock(&pool->lock);
	if (skip)
		return false;
	idle = ss_idle_soon(pool, core->drv.now_ms(core->drv.ctx) + core->opt.oom_wait_ms);
	if (!idle) {
		pthread_mutex_lock(&pool->lock);
		ss_patience_failed(pool);
		pthread_mutex_unlock(&pool->lock);
	}
	return idle;
}

/* Before asking the device for more: what this very stream freed may be idle by
 * now, and idle memory can move (remapping) or make room (whole segments). Where
 * giving back would wait for the device, it must be known to be idle. True: it
 * costs no wait. No lock held. */
static bool may_give_back(struct ss_pool *pool, struct ss_queue *q, bool cramped)
{
	struct ss_core *core = pool->core;
	bool waits = ss_release_waits(pool), any;
	struct ss_timeline *tl = q ? q->tl : NULL;

	pthread_mutex_lock(&pool->lock);
	any = (q ? q->own.bytes : 0) + pool->clean.bytes >= SS_FRAME;
	pthread_mutex_unlock(&pool->lock);
	if (!any)
		return !waits;
	if (waits && !ss_device_idle(core, pool->dev, tl && tl->kind == SS_TL_NULL) &&
	    !(cramped && ss_idle_at_last(pool)))
		return false;
	if (tl) {
		/* hipMallocAsync on the null stream joins it natively. */
		ss_fence_request(core, tl, atomic_load(&tl->now), SS_FENCE_JOINING);
		ss_fence_poll(core, tl, -1);
	}
	pthread_mutex_lock(&pool->lock);
	ss_settle(pool);
	pthread_mutex_unlock(&pool->lock);
	return true;
}

/* Merging before a range is cut keeps long ranges long, while the pool is still
 * growing. Later it has what its program needs, cut as that needs it, and merges
 * only where nothing else helps, or sizes that alternate would never be hits. Pool
 * lock held. */
static enum ss_demand_state flush_first(struct ss_pool *pool, struct ss_queue *q, uint64_t size)
{
	enum ss_demand_state is = ss_steady(pool, q ? q : pool->done, size);

	if (ss_recur_serves(pool))
		is = SS_GROWING;
	if (q && is != SS_STEADY && !(is == SS_MERGING && ss_lease_whole(q)))
		ss_flush(pool, q);
	else if (q && ss_leases(q) && !ss_lease_whole(q))
		ss_lease_end(pool, q);
	return is;
}

/* Bins may hold a larger block, or the neighbour of a range that is almost long
 * enough. Small ones come last: they are many, and seldom help. Pool lock held. */
static struct ss_block *from_bins(struct ss_pool *pool, struct ss_queue *q, struct want *w)
{
	struct ss_block *b = NULL;

	if (q) {
		ss_flush_large(pool, q, w->size);
		b = from_heaps(pool, q, w, NULL);
		if (b)
			return b;
		ss_flush(pool, q);
	}
	ss_flush(pool, pool->done);
	return from_heaps(pool, q, w, NULL);
}

/* From now on q divides by itself what only its stream uses, b that it is about to get
 * included, unless other streams would miss what its merging puts off. After leases that
 * did not last the next comes later. Pool lock held. */
static void lease(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b, bool merges)
{
	if ((pool->lags && pool->queue_count > 1) || atomic_load(&pool->dying))
		return;
	if (ss_leases(q))
		ss_lease_add(pool, q, b);
	else if (q->lease_in)
		q->lease_in--;
	else
		ss_lease_make(pool, q, b, merges);
}

/* b with a descriptor that shares no cache line with what other streams write. Pool lock
 * held. */
static struct ss_block *at_home(struct ss_pool *pool, struct ss_queue *q, struct ss_block *b)
{
	ss_bias_lock(&q->lock);
	b = ss_block_rehome(pool->core, &q->spares, &pool->spares, b);
	ss_bias_unlock(&q->lock);
	return b;
}

/* True: others stood in line for it. */
static bool lock_pool(struct ss_pool *pool)
{
	if (!pthread_mutex_trylock(&pool->lock))
		return false;
	pthread_mutex_lock(&pool->lock);
	return true;
}

/* Has the pool less than all its streams need when each is at its peak? As long as it has,
 * threads that stand in line pass one block round: then memory is better than the line, which
 * leaves processors idle. Pool lock held. */
static bool below_peaks(struct ss_pool *pool)
{
	uint64_t peaks = 0;

	for (struct ss_queue *q = ss_queue_after(pool, NULL); q; q = ss_queue_after(pool, q))
		peaks += ss_peak_of(q);
	return atomic_load(&pool->reserved) < peaks;
}

static bool cheap_to_ask(const struct ss_pool *pool)
{
	const struct ss_core *core = pool->core;

	return !ss_release_waits(pool) ||
	       atomic_load(&core->slot_count) < MANY_STREAMS;
}

enum ss_status ss_slow(struct ss_pool *pool, struct ss_queue *q, struct ss_timeline *x,
		       uint64_t size, uint64_t align, struct ss_block **out, uint64_t *id)
{
	struct want w = {.size = size, .align = align, .tight = pool->backing != SS_BACKING_VMM};
	uint64_t before = atomic_load(&pool->reserved), remaps = 0;
	enum ss_status s = SS_OK;
	struct ss_block *b;
	struct ss_ladder ladder = {0};
	struct ss_wait wait = {0};
	bool first = true, grown = false, again = false, line, crowded, give_back;
	bool refused = false;

	for (;;) {
		if (!x)
			ss_patience(pool, size, align, &wait);
		line = lock_pool(pool);
		if (!grown && !again)
			ss_thrift_count(pool, q);
		w.demand = flush_first(pool, q, size);
		ss_peak_note(pool, size);
		if (first) {
			ss_turns_asked(pool, size);
			remaps = pool->st.remaps;
		}
		if (q && grown)
			ss_recur_begin(pool, q, size, pool->st.remaps != remaps);
		else if (w.demand != SS_GROWING)
			ss_recur_end(pool);
		if (w.demand != SS_GROWING) {
			ss_stays_forget(pool);
		} else if (first) {
			ss_stays_asked(pool, size);
			w.past = ss_recur_asked(pool, size);
		}
		if (q)
			ss_queue_unbin(q, ss_recur_places(pool));
		/* (Where bins hold nothing this would be a hit otherwise: it asks the device nothing.) */
		if (w.demand == SS_GROWING && !grown && !(q && q->unbinned) &&
		    (ss_turns(pool) || ss_others_freed_much(pool, q)))
			ss_others_collect(pool, q);
		b = from_heaps(pool, q, &w, NULL);
		if (!b && q && w.demand != SS_GROWING && ss_leases(q))
			b = from_one(pool, q, &w);
		if (!b)
			b = from_bins(pool, q, &w);
		crowded = first && line && q && w.demand == SS_STEADY && below_peaks(pool);
		first = false;
		w.tight &= !crowded;
		if (!b && !crowded && ss_others_hold(pool, q))
			b = from_others(pool, q, x, &w);
		if (b) {
			pool->st.misses += grown;
			b->past = w.past;
			if (q && pool->queue_count > 1)
				b = at_home(pool, q, b);
			ss_turns_got(pool, b);
			if (q && w.demand != SS_GROWING)
				lease(pool, q, b, w.demand == SS_MERGING);
			pthread_mutex_unlock(&pool->lock);
			*out = b;
			*id = w.id;
			return SS_OK;
		}
		pthread_mutex_unlock(&pool->lock);

		again = !x && ss_patience(pool, size, align, &wait);
		if (again) {
			w.tight = false;
			continue;
		}
		/* Asking whether the device is idle costs a fence per stream. */
		if (w.tight && !ss_slab_room(pool, size, &w.fit, cheap_to_ask(pool))) {
			w.tight = false;
			continue;
		}
		give_back = !ss_slab_room(pool, size, &w.fit, false) &&
			    may_give_back(pool, q, w.fit.instead != 0);
		if (w.tight && !ss_slab_room(pool, size, &w.fit, give_back)) {
			w.tight = false;
			continue;
		}
		w.tight = false;
		s = ss_grow(pool, x, size, align, w.fit.instead, give_back);
		grown |= s == SS_OK;
		if (s != SS_OK && w.apart && !w.together) {
			w.together = true;
			continue;
		}
		/* Whatever the driver refuses for: with less it may do it, and programs know what to
		 * do without memory, but not what to do about an unknown error. */
		refused = s == SS_ERR_FAILED;
		if (s == SS_ERR_NOMEM || refused)
			s = ss_oom(pool, x, size, &ladder);
		if (s != SS_OK)
			break;
	}
	/* A gap that was filled on the way to more goes again, where nobody has to wait. */
	if (grown && atomic_load(&pool->reserved) > before &&
	    !ss_release_waits(pool))
		ss_release(pool, before, UINT64_MAX);
	pthread_mutex_lock(&pool->lock);
	pool->st.out_of_memory += s == SS_ERR_NOMEM;
	pthread_mutex_unlock(&pool->lock);
	if (s == SS_ERR_NOMEM)
		ss_oom_report(pool, size, &ladder, refused);
	return s;
}
