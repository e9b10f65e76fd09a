/* SPDX-License-Identifier: MIT */
/* Asks the runtime for the nodes of a graph (hipGraphGetNodes) and their kinds. No lock. */
#include <stdlib.h>

#include "driver/rocm/resolve.h"
#include "shim/process/graph_nodes.h"
#include "shim/process/real.h"

hipGraphNode_t *ss_graph_nodes(hipGraph_t graph, size_t *count, bool *good)
{
	hipGraphNode_t *nodes;

	*count = 0;
	*good = REAL(hipGraphGetNodes, graph, NULL, count) == hipSuccess;
	if (!*good || !*count)
		return NULL;
	nodes = calloc(*count, sizeof(hipGraphNode_t));
	*good = nodes && REAL(hipGraphGetNodes, graph, nodes, count) == hipSuccess;
	if (*good)
		return nodes;
	free(nodes);
	return NULL;
}

int ss_graph_node_type(hipGraphNode_t node)
{
	hipGraphNodeType type;

	if (!ss_runtime_at_least(ss_runtime(), 5, 7) ||
	    REAL(hipGraphNodeGetType, node, &type) != hipSuccess)
		return -1;
	return (int)type;
}
