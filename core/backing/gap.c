/* SPDX-License-Identifier: MIT */
/*
 * Gaps: addresses of a pool's reservation that have no memory, and the choice of the gaps to fill
 * so that a run is long enough for a block.
 *
 * A run begins with the free memory right before a gap. It ends in the gap, or, if the gap is
 * filled whole, with the free memory right after it.
 *
 * All functions are called with the memory's lock held. Free ranges of a stream are under that
 * stream's lock and may change during the search. A run may then be shorter than it seemed, and the
 * caller grows again.
 */
#include "core/backing/vmm.h"
#include "core/range/divide.h"

static bool is_gap(const struct ss_block *b)
{
	return ss_is_state(b, SS_BLOCK_GAP) && !b->exported;
}

/* Will b merge with new memory beside it? */
static bool is_usable(const struct ss_block *b, uint32_t slot)
{
	return ss_is_free_on(b, SS_SLOT_COMPLETED) || ss_is_free_on(b, slot);
}

/* Another thread that uses the stream may cut its range while it is looked at. */
__attribute__((no_sanitize("thread"))) static uint64_t peek(const uint64_t *p)
{
	return *(const volatile uint64_t *)p;
}

/* The start of the free memory right before the gap, as far as a run needs it. */
static uint64_t run_start(const struct ss_block *gap, const struct ss_run *run)
{
	uint64_t at = gap->addr, begin;
	const struct ss_block *b = gap;

	while (gap->addr - at < run->size + run->align && (b = ss_block_prev(b)) &&
	       is_usable(b, run->slot)) {
		begin = peek(&b->addr);
		if (begin + peek(&b->size) != at)
			break;
		at = begin;
	}
	return at;
}

/* The end of the free memory right after the gap, as far as a run needs it. */
static uint64_t run_end(const struct ss_block *gap, const struct ss_run *run, uint64_t need)
{
	uint64_t at = gap->addr + gap->size;
	const struct ss_block *b = gap;

	while (at < need && (b = ss_block_next(b)) && is_usable(b, run->slot) &&
	       peek(&b->addr) == at)
		at += peek(&b->size);
	return at;
}

/* Bytes of the gap, from its start, that a run up to `end` lacks. The result is at least one
 * step, so that a caller makes progress even if it does not find a run that seems to exist
 * already. */
static uint64_t missing(const struct ss_block *gap, uint64_t end, uint64_t step)
{
	uint64_t bytes = ss_round(ss_minus(end, gap->addr), step);

	return ss_min(ss_max(bytes, step), gap->size);
}

static void consider(struct ss_block *gap, struct ss_run *run)
{
	uint64_t from = run_start(gap, run), end = ss_round(from, run->align) + run->size;
	uint64_t bytes = missing(gap, end, run->step), to = gap->addr + gap->size;

	if (run->gap && (bytes > run->bytes || (bytes == run->bytes && gap->addr > run->gap->addr)))
		return;
	if (bytes == gap->size) {
		to = run_end(gap, run, end);
		if (to < end)
			return;
	}
	run->gap = gap;
	run->bytes = bytes;
	run->from = from;
	run->to = to;
}

/* If access is given from the start of the reservation only, the lowest gap is filled first. */
static void consider_lowest(struct ss_block *gap, struct ss_run *run)
{
	uint64_t end;

	if (run->gap && gap->addr > run->gap->addr)
		return;
	run->gap = gap;
	run->from = run_start(gap, run);
	end = ss_round(run->from, run->align) + run->size;
	run->bytes = missing(gap, end, run->step);
	run->to = gap->addr + gap->size;
	run->more = run->bytes == gap->size && run_end(gap, run, end) < end;
}

void ss_gap_find(struct ss_memory *m, struct ss_run *run, bool lowest)
{
	run->gap = NULL;
	SS_INDEX_EACH(gap, &m->vmm->gaps)
		if (lowest)
			consider_lowest(gap, run);
		else
			consider(gap, run);
}

struct ss_block *ss_gap_below(struct ss_memory *m)
{
	struct ss_block *lowest = NULL;

	SS_INDEX_EACH(gap, &m->vmm->gaps)
		if (ss_block_next(gap) && !(lowest && gap->addr > lowest->addr))
			lowest = gap;
	return lowest;
}

void ss_gap_insert(struct ss_memory *m, struct ss_block *b)
{
	struct ss_free_index *gaps = &m->vmm->gaps;
	struct ss_block *side;

	ss_set_state(b, SS_BLOCK_GAP);
	ss_set_slot(b, SS_SLOT_COMPLETED);
	ss_rehome(b, 0);
	b->n = 0;
	side = ss_block_next(b);
	if (is_gap(side)) {
		ss_index_remove(gaps, side);
		ss_block_merge(m->core, &m->spares, b, side);
	}
	side = ss_block_prev(b);
	if (is_gap(side)) {
		ss_index_remove(gaps, side);
		ss_block_merge(m->core, &m->spares, side, b);
		b = side;
	}
	ss_index_insert(gaps, b);
}

void ss_gap_take(struct ss_memory *m, struct ss_block *b)
{
	ss_index_remove(&m->vmm->gaps, b);
	ss_set_state(b, SS_BLOCK_QUEUED);
}

void ss_gap_shorten(struct ss_memory *m, struct ss_block *b, uint64_t size)
{
	struct ss_block *rest;

	if (b->size <= size)
		return;
	rest = ss_block_split(m->core, &m->spares, b, size);
	if (rest)
		ss_gap_insert(m, rest);
}
