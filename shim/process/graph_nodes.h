/* SPDX-License-Identifier: MIT */
/* The nodes of a graph, as the runtime lists them. */
#ifndef SS_SHIM_GRAPH_NODES_H
#define SS_SHIM_GRAPH_NODES_H

#include <hip/hip_runtime_api.h>

/* The node types of hipGraphNodeGetType from ROCm 5.7 on. Older headers have other numbers. */
enum ss_graph_node_type {
	SS_NODE_KERNEL,
	SS_NODE_COPY,
	SS_NODE_FILL,
	SS_NODE_HOST,
	SS_NODE_GRAPH,
	SS_NODE_EMPTY,
	SS_NODE_EVENT_WAIT,
	SS_NODE_EVENT_RECORD,
	SS_NODE_SEMAPHORE_SIGNAL,
	SS_NODE_SEMAPHORE_WAIT,
	SS_NODE_ALLOC,
	SS_NODE_FREE,
	SS_NODE_COPY_FROM, /* a symbol */
	SS_NODE_COPY_TO,
};

/* A list that the caller frees. NULL: there are no nodes (*good true), or they cannot be listed
 * (*good false). */
hipGraphNode_t *ss_graph_nodes(hipGraph_t graph, size_t *count, bool *good);
/* An ss_graph_node_type, or another number; -1: unknown. */
int ss_graph_node_type(hipGraphNode_t node);

#endif
