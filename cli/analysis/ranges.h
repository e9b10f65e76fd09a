/* SPDX-License-Identifier: MIT */
/*
 * An ordered set of address ranges that do not overlap: blocks of memory, or memory that is
 * mapped. Searches take logarithmic time, and so do changes in practice. Only adding or removing a
 * leaf (about 1 % of changes) moves the directory: 1 MB at 10 million ranges. Not thread safe.
 */
#ifndef SS_ANALYSIS_RANGES_H
#define SS_ANALYSIS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct ss_range {
	uint64_t base, size;        /* bytes; size > 0 and base + size does not overflow */
	uint64_t asked;             /* a block: bytes that the program asked for */
	uint64_t begin_ns;          /* a block: when it was allocated */
	uint64_t free_ns;           /* a freed block: when it was freed */
	uint32_t site;              /* a block: who allocated it */
	uint32_t stream;            /* a live block: of the allocation; a freed one: of the free */
	uint32_t first_stream, tid; /* a block: of the allocation */
	uint16_t pool;
	uint8_t device;
	bool freed; /* the block is in flight: freed, and not yet reusable */
	bool part;  /* what is left of a freed block that was reused in part */
	bool chunk; /* mapped memory: a chunk in a reserved range, not a segment */
};

struct ss_ranges {
	struct ss_range_leaf **leaf; /* none is empty */
	uint64_t *first;             /* base of the first range of each leaf */
	uint32_t leaves, room;
	uint32_t count; /* ranges */
};

/* All 0 is an empty set. */
void ss_ranges_finish(struct ss_ranges *r);
/* Adds a range that overlaps no other. False: out of memory. */
bool ss_ranges_add(struct ss_ranges *r, const struct ss_range *range);
/* The range that begins at `base`; NULL if there is none. Valid until the next change. */
struct ss_range *ss_ranges_at(struct ss_ranges *r, uint64_t base);
/* The first range that ends after `address`: the one that has it, or the next one. */
struct ss_range *ss_ranges_from(const struct ss_ranges *r, uint64_t address);
/* The range after *at in the order of addresses, for a walk that begins with ss_ranges_from() and
 * changes nothing. Mean time is constant. `walk` is all 0 at the start. NULL at the end. */
struct ss_ranges_walk {
	uint32_t leaf, at; /* the next range is number `at` of leaf `leaf` */
	bool begun;
};
struct ss_range *ss_ranges_next(const struct ss_ranges *r, struct ss_ranges_walk *walk,
				const struct ss_range *at);
/* Removes the range that begins at `base`, and copies it to *out. False: there is none. */
bool ss_ranges_remove(struct ss_ranges *r, uint64_t base, struct ss_range *out);

/* The end of base + size, cut at the end of the address space. */
static inline uint64_t ss_range_end(uint64_t base, uint64_t size)
{
	return size > UINT64_MAX - base ? UINT64_MAX : base + size;
}

#endif
