/* SPDX-License-Identifier: MIT */
/*
 * How far a stream is known to have come, when that was, and what it has seen of the others: a
 * position for each slot, in a row that is shared until somebody changes it.
 *
 * Locks: timeline->lock for what a stream saw. What has completed only grows, without one.
 */
#include <stdlib.h>

#include "core/internal.h"

/* ---- rows --------------------------------------------------------------- */

void ss_row_put(struct ss_row *row)
{
	free(row);
}

/* Makes room for `count` entries; what is new is zero. */
static bool row_fit(struct ss_row **row, uint32_t count)
{
	struct ss_row *bigger;
	uint32_t cap = 8;

	if (!*row || (*row)->cap < count) {
		while (cap < count)
			cap *= 2;
		bigger = calloc(1, sizeof(*bigger) + cap * sizeof(bigger->n[0]));
		if (!bigger)
			return false;
		if (*row)
			memcpy(bigger, *row, sizeof(**row) + (*row)->count * sizeof((*row)->n[0]));
		bigger->cap = cap;
		free(*row);
		*row = bigger;
	}
	while ((*row)->count < count)
		(*row)->n[(*row)->count++] = 0;
	return true;
}

bool ss_row_copy(struct ss_row **to, const struct ss_timeline *tl)
{
	uint32_t count = tl->saw ? tl->saw->count : 0;

	if (*to)
		(*to)->count = 0;
	if (!count)
		return true;
	if (!row_fit(to, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		(*to)->n[i] = tl->saw->n[i];
	return true;
}

struct ss_row *ss_row_of(struct ss_core *core, struct ss_timeline *tl)
{
	struct ss_row *row = NULL;

	ss_spin_lock(&tl->lock);
	ss_row_copy(&row, tl);
	ss_spin_unlock(&tl->lock);
	return row;
}

/* x->lock held. Out of host memory: nothing is granted, which only costs reuse. */
void ss_row_raise(struct ss_timeline *x, const struct ss_row *from, uint32_t slot, uint64_t n)
{
	uint32_t count = from && from->count > slot ? from->count : slot + 1;
	struct ss_row *row = x->saw;

	if (slot == x->slot)
		return;
	if (!row || row->count < count) {
		if (!row_fit(&x->saw, count))
			return;
		row = x->saw;
	}
	for (uint32_t i = 0; from && i < from->count; i++)
		row->n[i] = row->n[i] < from->n[i] ? from->n[i] : row->n[i];
	if (row->n[slot] < n)
		row->n[slot] = n;
	atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
}

/* ---- completion --------------------------------------------------------- */

static void raise_to(_Atomic uint64_t *v, uint64_t n)
{
	uint64_t old = atomic_load_explicit(v, memory_order_relaxed);

	while (old < n && !atomic_compare_exchange_weak_explicit(v, &old, n,
								 memory_order_release,
								 memory_order_relaxed))
		;
}

void ss_complete(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		 const struct ss_row *row, bool synced)
{
	raise_to(&tl->completed, pos);
	if (synced)
		raise_to(&tl->synced, pos);
	for (uint32_t i = 0; row && i < row->count; i++) {
		if (!row->n[i])
			continue;
		raise_to(&core->slots[i]->completed, row->n[i]);
		if (synced)
			raise_to(&core->slots[i]->synced, row->n[i]);
	}
}

/* `version` is the latest that the host is not known to know. */
static __attribute__((noinline)) void complete_row(struct ss_core *core, struct ss_timeline *tl,
						   uint64_t pos, uint64_t version, bool synced)
{
	ss_spin_lock(&tl->lock);
	if (ss_version(tl) == version) {
		ss_complete(core, tl, pos, tl->saw, synced);
		if (synced)
			atomic_store_explicit(&tl->proved, version, memory_order_relaxed);
	}
	ss_spin_unlock(&tl->lock);
}

void ss_complete_seen(struct ss_core *core, struct ss_timeline *tl, uint64_t pos,
		      uint64_t version, bool synced)
{
	if (__builtin_expect(atomic_load_explicit(&tl->proved, memory_order_relaxed) != version,
			     0))
		complete_row(core, tl, pos, version, synced);
	raise_to(&tl->completed, pos);
	if (synced)
		raise_to(&tl->synced, pos);
}

/* Marks are no time. But what is freed carries a mark below the next synchronization's
 * position, and that is one. Nothing but the age of idle memory depends on it. */
void ss_note(struct ss_core *core, struct ss_timeline *tl, uint64_t pos, uint64_t now)
{
	uint64_t hurry = atomic_load_explicit(&core->dev[tl->dev].hurry, memory_order_relaxed);
	uint64_t last = atomic_load_explicit(&tl->noted[0].ms, memory_order_relaxed);

	if (last != now) {
		atomic_store_explicit(&tl->noted[1].pos, atomic_load(&tl->noted[0].pos),
				      memory_order_relaxed);
		atomic_store_explicit(&tl->noted[1].ms, last, memory_order_relaxed);
		atomic_store_explicit(&tl->noted[0].ms, now, memory_order_relaxed);
	}
	atomic_store_explicit(&tl->noted[0].pos, pos, memory_order_relaxed);
	if (!(hurry & (SS_HURRY_BUSY - 1)) && hurry / SS_HURRY_BUSY != tl->slot + 1)
		atomic_store_explicit(&tl->noted_at, ss_ticks(), memory_order_relaxed);
}

uint64_t ss_freed_by(const struct ss_timeline *tl, uint64_t n, uint64_t now)
{
	uint64_t ms;

	for (int i = 1; i >= 0; i--) {
		ms = atomic_load_explicit(&tl->noted[i].ms, memory_order_relaxed);
		if (ms && ms < now && n <= atomic_load_explicit(&tl->noted[i].pos,
								memory_order_relaxed))
			return ms;
	}
	return now ? now : 1;
}
