/* SPDX-License-Identifier: MIT */
/* Nodes of graphs that do not copy: memsets, host functions, events, child graphs, memory. */
#include <string.h>

#include "cuda/context.h"

#define DEPS (const CUgraphNode *)deps, count

static CUcontext context(void)
{
	return context_of(current_device());
}

/* ---- memsets ---- */

static CUDA_MEMSET_NODE_PARAMS fill(const hipMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS c;

	memset(&c, 0, sizeof(c));
	c.dst = address(p->dst);
	c.pitch = p->pitch;
	c.value = p->value;
	c.elementSize = p->elementSize;
	c.width = p->width;
	c.height = p->height;
	return c;
}

hipError_t i_hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t count, const hipMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS c;

	ENTER();
	if (!node || !g || !p || !p->dst)
		return hipErrorInvalidValue;
	c = fill(p);
	return to_hip(
		CU(cuGraphAddMemsetNode, (CUgraphNode *)node, (CUgraph)g, DEPS, &c, context()));
}

hipError_t i_hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS c;
	CUresult r;

	ENTER();
	if (!node || !p)
		return hipErrorInvalidValue;
	r = CU(cuGraphMemsetNodeGetParams, (CUgraphNode)node, &c);
	if (!r)
		*p = (hipMemsetParams){pointer(c.dst), c.elementSize, c.height,
				       c.pitch,        c.value,       c.width};
	return to_hip(r);
}

hipError_t i_hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS c;

	ENTER();
	if (!node || !p || !p->dst)
		return hipErrorInvalidValue;
	c = fill(p);
	return to_hip(CU(cuGraphMemsetNodeSetParams, (CUgraphNode)node, &c));
}

hipError_t i_hipGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     const hipMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS c;

	ENTER();
	if (!x || !node || !p || !p->dst)
		return hipErrorInvalidValue;
	c = fill(p);
	return to_hip(CU(cuGraphExecMemsetNodeSetParams, (CUgraphExec)x, (CUgraphNode)node, &c,
			 context()));
}

/* Until 6.x the driver's calls take the fields in the order of CUDA. */
static hipMemsetParams driver_set(const hipMemsetParams *p)
{
	const CUDA_MEMSET_NODE_PARAMS *c = (const void *)p;

	return V7 ? *p : (hipMemsetParams){pointer(c->dst), c->elementSize, c->height,
					   c->pitch,        c->value,       c->width};
}

hipError_t i_hipDrvGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t g,
				      const hipGraphNode_t *deps, size_t count,
				      const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams set;

	if (!p)
		return hipErrorInvalidValue;
	set = driver_set(p);
	return i_hipGraphAddMemsetNode(node, g, deps, count, &set);
}

hipError_t i_hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
						const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams set;

	if (!p)
		return hipErrorInvalidValue;
	set = driver_set(p);
	return i_hipGraphExecMemsetNodeSetParams(x, node, &set);
}

/* ---- other nodes ---- */

hipError_t i_hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				 size_t count, const hipHostNodeParams *p)
{
	CUDA_HOST_NODE_PARAMS c;

	ENTER();
	if (!node || !g || !p || !p->fn)
		return hipErrorInvalidValue;
	memset(&c, 0, sizeof(c));
	c.fn = (CUhostFn)p->fn;
	c.userData = p->userData;
	return to_hip(CU(cuGraphAddHostNode, (CUgraphNode *)node, (CUgraph)g, DEPS, &c));
}

hipError_t i_hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				  size_t count)
{
	ENTER();
	if (!node || !g)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphAddEmptyNode, (CUgraphNode *)node, (CUgraph)g, DEPS));
}

hipError_t i_hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t g,
				       const hipGraphNode_t *deps, size_t count, hipGraph_t child)
{
	ENTER();
	if (!node || !g || !child)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphAddChildGraphNode, (CUgraphNode *)node, (CUgraph)g, DEPS,
			 (CUgraph)child));
}

hipError_t i_hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *out)
{
	ENTER();
	if (!node || !out)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphChildGraphNodeGetGraph, (CUgraphNode)node, (CUgraph *)out));
}

hipError_t i_hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t g,
					const hipGraphNode_t *deps, size_t count, hipEvent_t e)
{
	ENTER();
	if (!node || !g || !handle_known(HANDLE_EVENT, e))
		return hipErrorInvalidValue;
	return to_hip(
		CU(cuGraphAddEventRecordNode, (CUgraphNode *)node, (CUgraph)g, DEPS, (CUevent)e));
}

hipError_t i_hipGraphAddEventWaitNode(hipGraphNode_t *node, hipGraph_t g,
				      const hipGraphNode_t *deps, size_t count, hipEvent_t e)
{
	ENTER();
	if (!node || !g || !handle_known(HANDLE_EVENT, e))
		return hipErrorInvalidValue;
	return to_hip(
		CU(cuGraphAddEventWaitNode, (CUgraphNode *)node, (CUgraph)g, DEPS, (CUevent)e));
}

/* hipMemAllocNodeParams */
struct alloc_params {
	hipMemPoolProps pool;
	const hipMemAccessDesc *access;
	size_t access_count, size;
	void *ptr;
};

hipError_t i_hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				     size_t count, void *params)
{
	struct alloc_params *p = params;
	CUDA_MEM_ALLOC_NODE_PARAMS c;
	CUresult r;

	ENTER();
	if (!node || !g || !p)
		return hipErrorInvalidValue;
	memset(&c, 0, sizeof(c));
	c.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	c.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	c.poolProps.location.id = p->pool.location.id;
	c.bytesize = p->size;
	r = CU(cuGraphAddMemAllocNode, (CUgraphNode *)node, (CUgraph)g, DEPS, &c);
	if (!r)
		p->ptr = (void *)(uintptr_t)c.dptr;
	return to_hip(r);
}

hipError_t i_hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				    size_t count, void *p)
{
	ENTER();
	if (!node || !g || !p)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphAddMemFreeNode, (CUgraphNode *)node, (CUgraph)g, DEPS, address(p)));
}

hipError_t i_hipDrvGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t g,
				       const hipGraphNode_t *deps, size_t count, hipDeviceptr_t p)
{
	return i_hipGraphAddMemFreeNode(node, g, deps, count, p);
}
