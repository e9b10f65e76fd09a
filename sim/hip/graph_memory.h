/* SPDX-License-Identifier: MIT */
/* Memory of graphs: it has its address as soon as the node is made, and lives as long as a
 * graph, an executable or a launch refers to it. */
#ifndef SIM_HIP_GRAPH_MEMORY_H
#define SIM_HIP_GRAPH_MEMORY_H

#include <stddef.h>

#include <hip/hip_runtime_api.h>

struct sim_alloc;
struct sim_command;

/* A blob (device/command.h). */
struct graph_alloc {
	void *ptr;
	size_t size;
	int device;
	_Atomic bool live; /* a launch has allocated it and not freed it */
};

hipError_t graph_alloc_new(size_t size, int device, struct graph_alloc **out);

/* The commands of the two kinds of node. The first takes over the caller's reference. */
struct sim_command *graph_alloc_command(struct graph_alloc *ga);
struct sim_command *graph_free_command(struct graph_alloc *ga);

/* The program frees what a launch has allocated. The caller has waited for its use. */
hipError_t graph_memory_free(const struct sim_alloc *a);

#endif
