/* SPDX-License-Identifier: MIT */
/*
 * An index of free ranges by size: best fit, lowest address first.
 *
 * It takes no lock; the lock of its owner guards it. `count` and `bytes` may be read without the
 * lock, as a hint.
 */
#ifndef SS_RANGE_FREE_INDEX_H
#define SS_RANGE_FREE_INDEX_H

#include "core/range/block.h"

#define SS_INDEX_FL 32
#define SS_INDEX_SL 16

/* Each power of two has sixteen bins, and each bin is a treap by (size, address). */
struct ss_free_index {
	struct ss_block *bin[SS_INDEX_FL * SS_INDEX_SL];
	uint32_t fl;                 /* one bit for each power of two that has a bin in use */
	uint16_t sl[SS_INDEX_FL];    /* of each power: one bit for each bin in use */
	uint64_t bytes;
	uint32_t count;
};

void ss_index_insert(struct ss_free_index *x, struct ss_block *b);
void ss_index_remove(struct ss_free_index *x, struct ss_block *b);
/* The smallest range that holds `size` bytes at `align`, lowest address first; NULL: none. */
struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align);
/* The same, but prefers one of the next few ranges to a range that is a whole segment and does not
 * fit exactly, because whole segments can go back to the device. */
struct ss_block *ss_index_best_part(const struct ss_free_index *x, uint64_t size, uint64_t align);
struct ss_block *ss_index_largest(const struct ss_free_index *x);
/* Calls `each` for every range in order of size; `each` must not change the index. */
void ss_index_each(const struct ss_free_index *x, void (*each)(struct ss_block *, void *), void *arg);

#endif
