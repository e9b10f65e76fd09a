/* SPDX-License-Identifier: MIT */
/*
 * Dividing what is leased (lease.c): a stream's misses, and what goes back, under its queue's lock
 * alone. A free range is cut at the best fit; where none is long enough, what the bins hold of the
 * run goes back into it, as far as that needs.
 *
 * Locks: queue->lock, held by the caller.
 */
#include "core/hit.h"

#define LEAST_TAKEN 1024 /* before it is known that it was made for another demand */
#define JUDGED_AGAIN 65536 /* allocations, where only the slow path knows how things stand */
#define WHOLE (4ull << 20) /* no idle segment that is larger is cut unasked */
#define NEAR 8 /* times the size: a larger bin is not cut up before smaller ones are tried */

static void join_next(struct ss_queue *q, struct ss_block *b)
{
	if (b->next->n > b->n && !SS_MUTANT_IS(48))
		b->n = b->next->n;
	ss_block_merge_with(q->pool->core, &q->spares, b);
}

void ss_lease_put(struct ss_queue *q, struct ss_block *b)
{
	struct ss_heap *h = &q->lease->heap;

	if (ss_is_state(b->next, SS_BLOCK_FREE)) {
		ss_heap_remove(h, b->next);
		join_next(q, b);
	}
	if (ss_is_state(b->prev, SS_BLOCK_FREE)) {
		b = b->prev;
		ss_heap_remove(h, b);
		join_next(q, b);
	}
	ss_set_state(b, SS_BLOCK_FREE);
	b->request = 0;
	ss_heap_insert(h, b);
}

/* Is b, in a bin, all of its segment? That lies far from the block, and large blocks that wait
 * in a bin are asked again and again: `right`, which only a heap uses, remembers. */
static bool is_whole(struct ss_block *b)
{
	static struct ss_block yes;

	if (b->right == &yes)
		return true;
	if (b->size != b->seg->size)
		return false;
	b->right = &yes;
	return true;
}

bool ss_lease_empty(struct ss_queue *q, unsigned i, bool all)
{
	struct ss_block **at = &q->bin[i].head, *b;
	uint32_t me = q->tl->slot + 1;
	bool any = false;

	while ((b = *at) && (all || !any)) {
		if ((!all && is_whole(b)) || (ss_lessee(b) != me && !SS_MUTANT_IS(49))) {
			at = &b->left;
			continue;
		}
		*at = b->left;
		q->blocks--;
		q->bytes -= b->size;
		ss_lease_put(q, b);
		any = true;
	}
	if (!q->bin[i].head)
		q->filled[i] = 0;
	return any;
}

/* What all bins hold of the run goes there. */
static void collect(struct ss_queue *q)
{
	for (unsigned i = ss_filled_from(q, 0); i < SS_BINS; i = ss_filled_from(q, i + 1))
		ss_lease_empty(q, i, true);
}

/* The bins by their sizes. */
static void sort_bins(struct ss_queue *q)
{
	struct ss_lease *l = q->lease;
	unsigned at;

	/* A bin that has a size keeps one. */
	for (unsigned i = 0; i < SS_BINS; i++)
		if (q->bin[i].size && !l->sorted[i]) {
			l->sorted[i] = true;
			l->order[l->count++] = (uint8_t)i;
		}
	/* Of most the order is what it was. */
	for (unsigned i = 1; i < l->count; i++) {
		uint8_t bin = l->order[i];

		for (at = i; at && q->bin[l->order[at - 1]].size > q->bin[bin].size; at--)
			l->order[at] = l->order[at - 1];
		l->order[at] = bin;
	}
	l->assigned = q->assigned;
}

/* Empties bins until `size` bytes are free in one piece: first one block that is not
 * much larger, then the neighbours that smaller ones may be, then what is left. */
static struct ss_block *from_bins(struct ss_queue *q, uint64_t size, uint64_t align)
{
	struct ss_heap *h = &q->lease->heap;
	const uint8_t *order = q->lease->order;
	unsigned larger = 0, count;
	struct ss_block *b;

	if (!q->blocks)
		return NULL;
	if (q->lease->assigned != q->assigned)
		sort_bins(q);
	count = q->lease->count;
	while (larger < count && q->bin[order[larger]].size < size)
		larger++;
	for (unsigned i = larger; i < count && q->bin[order[i]].size / NEAR <= size; i++)
		if (q->bin[order[i]].head && ss_lease_empty(q, order[i], false) &&
		    (b = ss_heap_best(h, size, align)))
			return b;
	for (unsigned i = larger; i-- > 0;)
		if (q->bin[order[i]].head && ss_lease_empty(q, order[i], true) &&
		    (b = ss_heap_best(h, size, align)))
			return b;
	for (unsigned i = larger; i < count; i++)
		if (q->bin[order[i]].head && ss_lease_empty(q, order[i], true) &&
		    (b = ss_heap_best(h, size, align)))
			return b;
	return NULL;
}

struct ss_block *ss_lease_cut(struct ss_queue *q, struct ss_block *b, uint64_t start, uint64_t size)
{
	struct ss_core *core = q->pool->core;
	struct ss_block *rest;

	ss_set_state(b, SS_BLOCK_QUEUED); /* so that its parts do not merge with it again */
	if (b->addr < start) {
		rest = ss_block_split_with(core, &q->spares, b, start - b->addr);
		ss_lease_put(q, b);
		if (!rest)
			return NULL;
		b = rest;
	}
	if (b->size > size) {
		rest = ss_block_split_with(core, &q->spares, b, size);
		if (!rest) {
			ss_lease_put(q, b);
			return NULL;
		}
		ss_lease_put(q, rest);
	}
	return b;
}

bool ss_lease_keeps(const struct ss_block *b, uint64_t size)
{
	return b->size == b->seg->size && b->size != size && b->size > WHOLE;
}

struct ss_block *ss_lease_take(struct ss_queue *q, uint64_t size, uint64_t align)
{
	struct ss_lease *l = q->lease;
	struct ss_block *b;
	bool merges;

	/* Sizes come again now, or do not any more: it will be another lease. */
	merges = ss_varied(q, size) || q->merging;
	if (merges != l->merges && l->taken >= LEAST_TAKEN)
		return NULL;
	if (q->merging && l->taken % JUDGED_AGAIN == JUDGED_AGAIN - 1) {
		l->taken++;
		return NULL;
	}
	if (l->merges && q->blocks)
		collect(q);
	b = ss_heap_best_part(&l->heap, size, align);
	if (!b && !l->merges)
		b = from_bins(q, size, align);
	if (!b || (l->merges && ss_lease_keeps(b, size)))
		return NULL;
	ss_heap_remove(&l->heap, b);
	b = ss_lease_cut(q, b, ss_round(b->addr, align), size);
	if (!b)
		return NULL;
	b->bin = (uint8_t)ss_bin(size);
	q->hits++;
	l->taken++;
	return b;
}

bool ss_lease_return(struct ss_queue *q, struct ss_block *b)
{
	struct ss_bin *bin = &q->bin[b->bin];

	if (ss_lessee(b) != q->tl->slot + 1)
		return false;
	/* Should it come again, it will be known. */
	bin = bin->head ? &q->bin[ss_bin_next(b->bin)] : bin;
	if (!bin->head && bin->size != b->size) {
		bin->size = b->size;
		q->assigned++;
	}
	ss_lease_put(q, b);
	q->frees++;
	return true;
}

bool ss_lease_collect(struct ss_queue *q)
{
	uint32_t before = q->blocks;

	if (!ss_leases(q))
		return false;
	collect(q);
	return q->blocks <= before / 2;
}
