/* SPDX-License-Identifier: MIT */
/* The amount that a ring keeps, in bytes and in time. */
#ifndef SS_RING_SIZE_H
#define SS_RING_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct ss_ring_size {
	uint64_t bytes;   /* of events */
	uint64_t keep_ns; /* older events go; 0: only if there are too many bytes */
};

/* Reads "10m", "512M" or both, divided by a comma: a time has s, m, h or d, a size K, M, G or T. A
 * ring without a size has 1 GiB. False: it is malformed, or out of bounds. */
bool ss_ring_size_parse(const char *text, struct ss_ring_size *out);

#endif
