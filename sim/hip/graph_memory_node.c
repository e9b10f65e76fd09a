/* SPDX-License-Identifier: MIT */
/* Nodes of graphs that allocate and free memory. */
#include <string.h>

#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/graph_memory.h"
#include "hip/graph_node.h"
#include "hip/thread_state.h"

struct alloc_params { /* hipMemAllocNodeParams of later headers */
	hipMemPoolProps props;
	const hipMemAccessDesc *access;
	size_t naccess, size;
	void *dptr;
};

hipError_t i_hipGraphAddMemAllocNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				     size_t n, void *params)
{
	struct alloc_params *p = params;
	struct graph_alloc *ga;
	struct node *x;
	hipError_t e;

	if (!p || !p->size || check_device(p->props.location.id))
		return hipErrorInvalidValue;
	e = graph_alloc_new(p->size, p->props.location.id, &ga);
	if (e)
		return e;
	p->dptr = ga->ptr;
	e = node_create(out, g, deps, n, NODE_ALLOC, graph_alloc_command(ga), &x);
	if (!e)
		x->alloc = ga;
	return e;
}

hipError_t i_hipGraphAddMemFreeNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				    size_t n, void *ptr)
{
	struct sim_alloc a;
	struct node *x;
	hipError_t e;

	if (!ptr || !hip_find(ptr, &a) || a.ownertype != OWNER_GRAPH)
		return hipErrorInvalidValue;
	e = node_create(out, g, deps, n, NODE_FREE, graph_free_command(a.owner), &x);
	if (!e)
		x->alloc = a.owner;
	return e;
}

hipError_t i_hipDrvGraphAddMemFreeNode(hipGraphNode_t *out, hipGraph_t g,
				       const hipGraphNode_t *deps, size_t n, hipDeviceptr_t ptr)
{
	return i_hipGraphAddMemFreeNode(out, g, deps, n, ptr);
}
