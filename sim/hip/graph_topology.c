/* SPDX-License-Identifier: MIT */
/* The shape of a graph: types of nodes, edges, and lists of nodes. */
#include <string.h>

#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/version.h"

hipError_t i_hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *out)
{
	struct node *n = node_of(node);

	if (!n || !out)
		return hipErrorInvalidValue;
	/* 5.2 counts from 1. */
	*(int *)out = (int)n->type + (V52 ? 1 : 0);
	return hipSuccess;
}

static hipError_t edges(hipGraph_t h, const hipGraphNode_t *from, const hipGraphNode_t *to,
			size_t n, bool add)
{
	if (!graph_of(h) || (n && (!from || !to)))
		return hipErrorInvalidValue;
	for (size_t i = 0; i < n; i++) {
		struct node *a = node_of(from[i]), *b = node_of(to[i]);

		if (!a || !b || a == b || (add && node_depends(b, a)) ||
		    (!add && !node_depends(b, a)))
			return hipErrorInvalidValue;
		if (add) {
			node_depend(b, a);
			continue;
		}
		for (size_t d = 0; d < b->dep_count; d++)
			if (b->deps[d] == a) {
				b->deps[d] = b->deps[--b->dep_count];
				break;
			}
	}
	return hipSuccess;
}

hipError_t i_hipGraphAddDependencies(hipGraph_t g, const hipGraphNode_t *from,
				     const hipGraphNode_t *to, size_t n)
{
	return edges(g, from, to, n, true);
}

/* Writes the k-th node if there is room, and counts it. */
static void put(hipGraphNode_t *out, size_t *k, size_t cap, struct node *n)
{
	if (out && *k < cap)
		out[*k] = (hipGraphNode_t)n;
	++*k;
}

hipError_t i_hipGraphGetNodes(hipGraph_t h, hipGraphNode_t *out, size_t *n)
{
	struct graph *g = graph_of(h);
	size_t k = 0;

	if (!g || !n)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < g->n; i++)
		put(out, &k, *n, g->nodes[i]);
	*n = k;
	return hipSuccess;
}
