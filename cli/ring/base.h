/* SPDX-License-Identifier: MIT */
/* Writes the base of a ring: blocks with the definitions from before the ring's beginning, and with
 * the memory that existed at the beginning. */
#ifndef SS_RING_BASE_H
#define SS_RING_BASE_H

#include "cli/analysis/trace_memory.h"
#include "cli/ring/file.h"

struct ss_ring_base {
	struct ss_ring_file *file;
	uint64_t begin_ns;
	bool failed; /* with errno set; no block of the base is valid */
	struct ss_ring_definition *definition;
	size_t definitions;
	uint8_t *data;    /* the block that is being filled; NULL: none yet */
	uint32_t used;    /* bytes of it */
	uint64_t base_ns; /* the times in it count from here */
	uint32_t *number; /* of the blocks that are written */
	size_t numbers;
};

/* Takes the definitions of a block. */
void ss_ring_base_collect(struct ss_ring_base *b, uint32_t number);
/* Writes the definitions that were collected, in the order of time. */
void ss_ring_base_definitions(struct ss_ring_base *b);
void ss_ring_base_mapped(struct ss_ring_base *b, const struct ss_range *range);
/* A live block, or one in flight. Its site is the number of its stack. */
void ss_ring_base_block(struct ss_ring_base *b, const struct ss_range *range);
/* Writes the memory of a device outside of the pools. */
void ss_ring_base_outside(struct ss_ring_base *b, int device, const struct ss_outside *o);
/* Writes the rest and frees what the base has. False with errno set: it failed, and no block of it
 * is left. */
bool ss_ring_base_end(struct ss_ring_base *b);

#endif
