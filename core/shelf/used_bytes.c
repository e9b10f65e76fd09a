/* SPDX-License-Identifier: MIT */
/*
 * Counts the bytes of a pool that are in use: which thread counts, new peaks, and the sum over
 * threads. The addition that each hit makes is in hit.h.
 *
 * While a recording runs there are no hits, and all threads count for the pool, one after another.
 *
 * Locks: shelf->lock; memory->moment.
 */
#include "core/shelf/hit.h"

#define SHARED ((uintptr_t)1) /* counter of a pool that several threads use */

struct ss_count *ss_count_of(struct ss_shelf *q)
{
	struct ss_shelves *set = q->set;
	uintptr_t who = atomic_load_explicit(&set->counter, memory_order_relaxed);
	uintptr_t me = (uintptr_t)ss_thread_record();

	if (!who && me != (uintptr_t)&ss_nobody &&
	    atomic_compare_exchange_strong(&set->counter, &who, me))
		return &set->alone;
	if (who == me)
		return &set->alone;
	/* A second thread uses the pool: from here on no thread counts alone. */
	if (who != SHARED) {
		atomic_store_explicit(&set->counter, SHARED, memory_order_relaxed);
		ss_hits_end(set->core);
	}
	return &q->count;
}

static void raise_peak(struct ss_shelves *set)
{
	ss_raise_to(&set->alone.peak, ss_used(set));
}

void ss_count_peak(struct ss_shelf *q, struct ss_count *c)
{
	struct ss_shelves *set = q->set;

	/* A second thread may just have raised the pool's peak to a higher sum. The count of one
	 * shelf may be negative, since other shelves' threads free blocks that it handed out. */
	if (c == &set->alone)
		ss_raise_to(&c->peak, ss_get(&c->used));
	else
		ss_put(&c->peak, ss_get(&c->used));
	ss_bias_unlock(&q->lock);
	if (c != &set->alone)
		raise_peak(set);
}

/* Changes are recorded in the order of their times, so a recording has the same peak. */
static uint64_t recorded_add(struct ss_shelves *set, uint64_t delta)
{
	uint64_t when = ss_moment_begin(&set->memory->moment);

	if (!ss_count_add(&set->alone, delta))
		ss_put(&set->alone.peak, ss_get(&set->alone.used));
	ss_moment_end(&set->memory->moment);
	return when;
}

uint64_t ss_used_add(struct ss_shelf *q, uint64_t delta)
{
	struct ss_shelves *set = q->set;
	struct ss_count *c;

	if (unlikely(set->core->recorded))
		return recorded_add(set, delta);
	ss_bias_lock(&q->lock);
	c = ss_count_of(q);
	if (ss_count_add(c, delta))
		ss_bias_unlock(&q->lock);
	else
		ss_count_peak(q, c);
	/* The sum is affordable off the hot path. It shows the peaks of threads that take turns. */
	if ((int64_t)delta > 0 &&
	    atomic_load_explicit(&set->counter, memory_order_relaxed) == SHARED)
		raise_peak(set);
	return 0;
}

uint64_t ss_used(struct ss_shelves *set)
{
	uint64_t sum = ss_get(&set->alone.used);

	/* One thread may have thousands of streams, each with a cache line of its own. */
	if (atomic_load(&set->counter) != SHARED)
		return sum;
	SS_SHELVES_ALL(q, set)
		sum += ss_get(&q->count.used);
	/* The allocation and the free of a block may be seen out of order. */
	return (int64_t)sum < 0 ? 0 : sum;
}

uint64_t ss_used_high(struct ss_shelves *set)
{
	if (atomic_load_explicit(&set->counter, memory_order_relaxed) == SHARED)
		raise_peak(set);
	return ss_get(&set->alone.peak);
}

void ss_used_reset(struct ss_shelves *set, bool to_zero)
{
	SS_SHELVES_ALL(q, set) {
		ss_bias_visit(&q->lock);
		if (to_zero)
			ss_put(&q->count.used, 0);
		ss_put(&q->count.peak, ss_get(&q->count.used));
		ss_bias_unlock(&q->lock);
	}
	if (to_zero) {
		ss_put(&set->alone.used, 0);
		atomic_store(&set->counter, 0);
	}
	ss_put(&set->alone.peak, ss_used(set));
}
