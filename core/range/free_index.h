/* SPDX-License-Identifier: MIT */
/*
 * Free ranges by size: best fit, lowest address first.
 *
 * Takes no lock; an index is used under the lock of whoever it belongs to. `count` and `bytes`
 * may be read without it, as a hint.
 */
#ifndef SS_RANGE_FREE_INDEX_H
#define SS_RANGE_FREE_INDEX_H

#include "core/range/block.h"

#define SS_INDEX_FL 32
#define SS_INDEX_SL 16

/* Bins of a quarter to a sixteenth of a power of two, in each a treap by (size, address). */
struct ss_free_index {
	struct ss_block *bin[SS_INDEX_FL * SS_INDEX_SL];
	uint32_t fl;                 /* powers of two that have a bin in use */
	uint16_t sl[SS_INDEX_FL];    /* bins in use of each power */
	uint64_t bytes;
	uint32_t count;
};

void ss_index_insert(struct ss_free_index *x, struct ss_block *b);
void ss_index_remove(struct ss_free_index *x, struct ss_block *b);
/* The smallest range that holds `size` bytes at `align`, lowest address first; NULL: none. */
struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align);
/* The same, but a range that is a whole segment only if it fits exactly or none of the next few
 * will do: whole segments can go back to the device. */
struct ss_block *ss_index_best_part(const struct ss_free_index *x, uint64_t size, uint64_t align);
struct ss_block *ss_index_largest(const struct ss_free_index *x);
/* Calls `each` for every range in order of size; `each` must not change the index. */
void ss_index_each(const struct ss_free_index *x, void (*each)(struct ss_block *, void *), void *arg);

#endif
