/* SPDX-License-Identifier: MIT */
/* Room for the memory that graphs allocate when they run. */
#ifndef SS_SHIM_GRAPH_MEMORY_H
#define SS_SHIM_GRAPH_MEMORY_H

#include <stdint.h>

/* Notes that a node which takes `bytes` on dev (-1: the current device) was added to a graph. */
void ss_graph_memory_add(int dev, uint64_t bytes);
/* The contents of the hipMemAllocNodeParams at `params` (NULL: nothing). `ptr` is set once the node
 * exists. */
struct ss_graph_node {
	int dev; /* -1: the current device */
	uint64_t bytes;
	void *ptr;
};
struct ss_graph_node ss_graph_memory_node(const void *params);
/* As ss_graph_memory_add(), for the node that `params` describes. */
void ss_graph_memory_add_node(const void *params);
/* Before a graph is instantiated, uploaded or launched on dev: releases idle memory until there is
 * room for the largest graph that was built there. */
void ss_graph_memory_reserve(int dev);

#endif
