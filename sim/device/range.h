/* SPDX-License-Identifier: MIT */
/* Address-ordered trees of ranges that do not overlap. The caller does the locking. */
#ifndef SIM_RANGE_H
#define SIM_RANGE_H

#include <stddef.h>
#include <stdint.h>

/* A node, embedded in the object whose range it is. */
struct sim_range {
	uintptr_t base;
	size_t size;
	size_t max; /* largest size in this subtree */
	uint32_t prio;
	struct sim_range *l, *r;
};

void sim_range_insert(struct sim_range **root, struct sim_range *n);
void sim_range_remove(struct sim_range **root, struct sim_range *n);

/* The last range that starts at or below addr, or NULL. */
struct sim_range *sim_range_floor(struct sim_range *root, uintptr_t addr);

/* The first range that starts at or above addr, or NULL. */
struct sim_range *sim_range_next(struct sim_range *root, uintptr_t addr);

/* The lowest range that holds size bytes at a multiple of align, or NULL. */
struct sim_range *sim_range_fit(struct sim_range *root, size_t size, size_t align);

#endif
