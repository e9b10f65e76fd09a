/* SPDX-License-Identifier: MIT */
/* The shape of a graph: types, edges, lists; and user objects. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* ---- shape ---- */

hipError_t i_hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *out)
{
	static const int types[] = {
		[C_KERNEL] = 0, [C_COPY] = 1, [C_SET] = 2, [C_HOST] = 3, [C_CALLBACK] = 3, [C_GRAPH] = 4,
		[C_MARKER] = 5, [C_EVENT_WAIT] = 6, [C_EVENT_RECORD] = 7, [C_ALLOC] = 10, [C_FREE] = 11,
	};
	struct node *n = node_of(node);

	if (!n || !out)
		return hipErrorInvalidValue;
	/* 5.2 counted from 1. */
	*(int *)out = types[n->cmd->kind] + (V52 ? 1 : 0);
	return hipSuccess;
}

static hipError_t edges(hipGraph_t h, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t n, bool addit)
{
	if (!graph_of(h) || (n && (!from || !to)))
		return hipErrorInvalidValue;
	for (size_t i = 0; i < n; i++) {
		struct node *a = node_of(from[i]), *b = node_of(to[i]);

		if (!a || !b || a == b || (addit && node_depends(b, a)) || (!addit && !node_depends(b, a)))
			return hipErrorInvalidValue;
		if (addit) {
			node_depend(b, a);
			continue;
		}
		for (size_t d = 0; d < b->ndeps; d++)
			if (b->deps[d] == a) {
				b->deps[d] = b->deps[--b->ndeps];
				break;
			}
	}
	return hipSuccess;
}

hipError_t i_hipGraphAddDependencies(hipGraph_t g, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t n) { return edges(g, from, to, n, true); }
hipError_t i_hipGraphRemoveDependencies(hipGraph_t g, const hipGraphNode_t *from, const hipGraphNode_t *to, size_t n) { return edges(g, from, to, n, false); }

hipError_t i_hipGraphGetEdges(hipGraph_t h, hipGraphNode_t *from, hipGraphNode_t *to, size_t *n)
{
	struct graph *g = graph_of(h);
	size_t k = 0;

	if (!g || !n || (!from) != (!to))
		return hipErrorInvalidValue;
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->ndeps; d++, k++)
			if (from && k < *n) {
				from[k] = (hipGraphNode_t)g->nodes[i]->deps[d];
				to[k] = (hipGraphNode_t)g->nodes[i];
			}
	*n = k;
	return hipSuccess;
}

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
		if (!g->nodes[i]->ndeps)
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
	for (size_t i = 0; i < x->ndeps; i++)
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
		for (size_t d = 0; d < g->nodes[i]->ndeps; d++)
			if (g->nodes[i]->deps[d] == x)
				g->nodes[i]->deps[d--] = g->nodes[i]->deps[--g->nodes[i]->ndeps];
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

/* ---- user objects: reference counts with a destructor ---- */

struct object {
	atomic_long refs;
	hipHostFn_t destroy;
	void *ptr;
};

hipError_t i_hipUserObjectCreate(void **out, void *ptr, hipHostFn_t destroy, unsigned refs, unsigned flags)
{
	struct object *o;

	if (!out || !destroy || !refs || refs > 0x7fffffff || flags != 1)
		return hipErrorInvalidValue;
	o = calloc(1, sizeof *o);
	if (!o)
		return hipErrorOutOfMemory;
	atomic_init(&o->refs, refs);
	o->destroy = destroy;
	o->ptr = ptr;
	*out = o;
	return hipSuccess;
}

hipError_t i_hipUserObjectRetain(void *object, unsigned n)
{
	if (!object || !n)
		return hipErrorInvalidValue;
	atomic_fetch_add(&((struct object *)object)->refs, n);
	return hipSuccess;
}

hipError_t i_hipUserObjectRelease(void *object, unsigned n)
{
	struct object *o = object;

	if (!o || !n)
		return hipErrorInvalidValue;
	if (atomic_fetch_sub(&o->refs, n) == (long)n) {
		o->destroy(o->ptr);
		free(o);
	}
	return hipSuccess;
}
