/* SPDX-License-Identifier: MIT */
/* A graph with one memset, by which the self-test finds out whether a map spoils it (O9). */
#ifndef SS_SHIM_RECORDED_MEMSET_H
#define SS_SHIM_RECORDED_MEMSET_H

#include <stddef.h>

#include <hip/hip_runtime_api.h>

struct ss_recorded_memset {
	unsigned char *memory; /* of the runtime, `size` bytes */
	hipGraph_t graph;
	hipGraphExec_t exec;
	hipStream_t stream;
	size_t size;
};

/* `r` is all zeros. Captures the memset on `stream`. If that fails, ..end() is called all the same.
 * One thread. */
hipError_t ss_recorded_memset_make(struct ss_recorded_memset *r, hipStream_t stream, int value,
				   size_t size);
/* Fills the memory with zeros, then launches the graph. Does not wait. */
hipError_t ss_recorded_memset_launch(struct ss_recorded_memset *r);
void ss_recorded_memset_end(struct ss_recorded_memset *r);

#endif
