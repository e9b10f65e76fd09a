/* SPDX-License-Identifier: MIT */
/*
 * Rows: for every timeline the positions of the others that its next command is ordered after.
 *
 * Locks: timeline->lock guards the timeline's own row. A copy belongs to whoever made it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/order/timeline.h"

void ss_row_put(struct ss_row *row)
{
	free(row);
}

uint64_t ss_row_get(const struct ss_row *row, uint32_t slot)
{
	return row && slot < row->count ? row->n[slot] : 0;
}

/* Makes the row at least `count` entries long. New entries are zero. */
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

/* If host memory is out nothing is granted. That costs reuse, but is correct. */
void ss_row_raise(struct ss_timeline *x, const struct ss_row *from, uint32_t slot, uint64_t n)
{
	uint32_t count = from && from->count > slot ? from->count : slot + 1;
	struct ss_row *row = x->saw;

	if (slot == x->progress.slot)
		return;
	if (!row || row->count < count) {
		if (!row_fit(&x->saw, count))
			return;
		row = x->saw;
	}
	for (uint32_t i = 0; from && i < from->count; i++)
		row->n[i] = ss_max(row->n[i], from->n[i]);
	row->n[slot] = ss_max(row->n[slot], n);
	atomic_store_explicit(&x->version, ss_version(x) + 1, memory_order_release);
}
