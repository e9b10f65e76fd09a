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

hipError_t i_hipGraphRemoveDependencies(hipGraph_t g, const hipGraphNode_t *from,
					const hipGraphNode_t *to, size_t n)
{
	return edges(g, from, to, n, false);
}

hipError_t i_hipGraphGetEdges(hipGraph_t h, hipGraphNode_t *from, hipGraphNode_t *to, size_t *n)
{
	struct graph *g = graph_of(h);
	size_t k = 0;

	if (!g || !n || (!from) != (!to))
		return hipErrorInvalidValue;
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->dep_count; d++, k++)
			if (from && k < *n) {
				from[k] = (hipGraphNode_t)g->nodes[i]->deps[d];
				to[k] = (hipGraphNode_t)g->nodes[i];
			}
	*n = k;
	return hipSuccess;
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

hipError_t i_hipGraphGetRootNodes(hipGraph_t h, hipGraphNode_t *out, size_t *n)
{
	struct graph *g = graph_of(h);
	size_t k = 0;

	if (!g || !n)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < g->n; i++)
		if (!g->nodes[i]->dep_count)
			put(out, &k, *n, g->nodes[i]);
	*n = k;
	return hipSuccess;
}

hipError_t i_hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *out, size_t *n)
{
	struct node *x = node_of(node);
	size_t k = 0;

	if (!x || !n)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < x->dep_count; i++)
		put(out, &k, *n, x->deps[i]);
	*n = k;
	return hipSuccess;
}

hipError_t i_hipGraphNodeGetDependentNodes(hipGraphNode_t node, hipGraphNode_t *out, size_t *n)
{
	struct node *x = node_of(node);
	size_t k = 0;

	if (!x || !n)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < x->graph->n; i++)
		if (node_depends(x->graph->nodes[i], x))
			put(out, &k, *n, x->graph->nodes[i]);
	*n = k;
	return hipSuccess;
}

hipError_t i_hipGraphDestroyNode(hipGraphNode_t node)
{
	struct node *x = node_of(node);
	struct graph *g;

	if (!x)
		return hipErrorInvalidValue;
	g = x->graph;
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->dep_count; d++)
			if (g->nodes[i]->deps[d] == x)
				g->nodes[i]->deps[d--] = g->nodes[i]->deps[--g->nodes[i]->dep_count];
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i] == x) {
			memmove(&g->nodes[i], &g->nodes[i + 1], (g->n - i - 1) * sizeof *g->nodes);
			g->n--;
			break;
		}
	node_free(x);
	return hipSuccess;
}

hipError_t i_hipGraphNodeFindInClone(hipGraphNode_t *out, hipGraphNode_t node, hipGraph_t h)
{
	struct graph *g = graph_of(h);

	if (!out || !g)
		return hipErrorInvalidValue;
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i]->origin == (struct node *)node) {
			*out = (hipGraphNode_t)g->nodes[i];
			return hipSuccess;
		}
	return hipErrorInvalidValue;
}
