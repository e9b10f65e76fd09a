/* SPDX-License-Identifier: MIT */
/*
 * Vector clocks. A timeline's clock holds the positions of the others that its next command is
 * ordered after. Beside the clocks stand two figures of progress: `completed`, the position that is
 * known to be completed, by whatever means, and `synced`, the position with which the application
 * has synchronized.
 *
 * Locks: timeline->lock guards the timeline's own clock. A copy belongs to its maker. Positions
 * need no lock, since they only grow.
 */
#include <stdlib.h>
#include <string.h>

#include "core/order/timeline.h"

void ss_clock_free(struct ss_clock *clock)
{
	free(clock);
}

uint64_t ss_clock_get(const struct ss_clock *clock, uint32_t slot)
{
	return clock && slot < clock->count ? clock->n[slot] : 0;
}

/* Makes the clock at least `count` entries long. New entries are zero. */
static bool clock_fit(struct ss_clock **clock, uint32_t count)
{
	struct ss_clock *bigger;
	uint32_t cap = 8;

	if (!*clock || (*clock)->cap < count) {
		while (cap < count)
			cap *= 2;
		bigger = calloc(1, sizeof(*bigger) + cap * sizeof(bigger->n[0]));
		if (!bigger)
			return false;
		if (*clock)
			memcpy(bigger, *clock,
			       sizeof(**clock) + (*clock)->count * sizeof((*clock)->n[0]));
		bigger->cap = cap;
		free(*clock);
		*clock = bigger;
	}
	while ((*clock)->count < count)
		(*clock)->n[(*clock)->count++] = 0;
	return true;
}

bool ss_clock_copy(struct ss_clock **to, const struct ss_timeline *tl)
{
	uint32_t count = tl->saw ? tl->saw->count : 0;

	if (*to)
		(*to)->count = 0;
	if (!count)
		return true;
	if (!clock_fit(to, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		(*to)->n[i] = tl->saw->n[i];
	return true;
}

struct ss_clock *ss_clock_of(struct ss_timeline *tl)
{
	struct ss_clock *clock = NULL;

	ss_spin_lock(&tl->lock);
	ss_clock_copy(&clock, tl);
	ss_spin_unlock(&tl->lock);
	return clock;
}

/* If host memory is out, the clock grants nothing. That costs reuse, but is correct. */
void ss_clock_raise(struct ss_timeline *x, const struct ss_clock *from, uint32_t slot, uint64_t n)
{
	uint32_t count = from && from->count > slot ? from->count : slot + 1;
	struct ss_clock *clock = x->saw;

	if (slot == x->progress.slot)
		return;
	if (!clock || clock->count < count) {
		if (!clock_fit(&x->saw, count))
			return;
		clock = x->saw;
	}
	for (uint32_t i = 0; from && i < from->count; i++)
		clock->n[i] = ss_max(clock->n[i], from->n[i]);
	clock->n[slot] = ss_max(clock->n[slot], n);
	atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
}

/* ---- marks, for the layers above ---------------------------------------------- */

struct ss_mark ss_timeline_mark(struct ss_timeline *tl)
{
	return (struct ss_mark){ss_timeline_slot(tl), ss_timeline_now(tl)};
}

bool ss_timeline_after(struct ss_core *core, struct ss_timeline *tl, const struct ss_mark *mark)
{
	bool saw;

	ss_spin_lock(&tl->lock);
	saw = mark->slot != ss_timeline_slot(tl) && ss_clock_get(tl->saw, mark->slot) >= mark->n;
	ss_spin_unlock(&tl->lock);
	return saw || ss_mark_reached(core, mark->slot, mark->n, true);
}

/* ---- completed positions ----------------------------------------------------- */

void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_clock *clock, bool synced)
{
	ss_progress_raise(&tl->progress, pos, synced);
	for (uint32_t i = 0; clock && i < clock->count; i++)
		if (clock->n[i])
			ss_progress_raise(&core->order->slots[i]->progress, clock->n[i], synced);
}

void ss_complete_clock(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t version,
		       bool synced)
{
	ss_spin_lock(&tl->lock);
	if (ss_version(tl) == version) {
		ss_complete(core, tl, pos, tl->saw, synced);
		if (synced)
			atomic_store_explicit(&tl->proved, version, memory_order_relaxed);
	}
	ss_spin_unlock(&tl->lock);
}

bool ss_mark_reached(struct ss_core *core, uint32_t slot, uint64_t n, bool any)
{
	const struct ss_progress *p = &core->order->slots[slot]->progress;

	return n <= atomic_load_explicit(any ? &p->completed : &p->synced, memory_order_acquire);
}

uint64_t ss_timeline_commanded(const struct ss_timeline *tl)
{
	return atomic_load(&tl->commanded);
}
