/* SPDX-License-Identifier: MIT */
/*
 * An index of free ranges by size, which finds a good fit in constant time.
 *
 * It takes no lock; the lock of its owner guards it. `bytes` may be read without the lock, as a hint.
 */
#ifndef SS_RANGE_FREE_INDEX_H
#define SS_RANGE_FREE_INDEX_H

#include "core/range/block.h"

#define SS_INDEX_FL 32
#define SS_INDEX_SL 32

/* Lists of ranges whose sizes differ by a 32nd at most: two levels, as in TLSF. */
struct ss_free_index {
	struct ss_block *list[SS_INDEX_FL * SS_INDEX_SL]; /* by ->right, with ->left back */
	uint32_t fl;                 /* powers of two that have a list in use */
	uint32_t sl[SS_INDEX_FL];    /* lists in use of each power */
	uint64_t bytes;
};

void ss_index_insert(struct ss_free_index *x, struct ss_block *b);
void ss_index_remove(struct ss_free_index *x, struct ss_block *b);
/* b, of `size` bytes, takes the place of a range of `old_size` bytes, or is that range. Cheaper than a
 * removal and an insertion. The sizes in the blocks are not looked at. */
void ss_index_replace(struct ss_free_index *x, struct ss_block *old, uint64_t old_size,
		      struct ss_block *b, uint64_t size);
/* A range that holds `size` bytes at `align`: the smallest, and of equal ones the lowest, of the
 * first few in the first list that has one. NULL: there is none at all. */
struct ss_block *ss_index_best(const struct ss_free_index *x, uint64_t size, uint64_t align);
/* Calls `each` for every range, smaller lists first; `each` must not change the index. */
void ss_index_each(const struct ss_free_index *x, void (*each)(struct ss_block *, void *), void *arg);

#endif
