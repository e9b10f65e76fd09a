/* SPDX-License-Identifier: MIT */
/* Nodes of graphs: copies, memsets, host functions, events, child graphs, memory. */
#include <string.h>

#include "cuda/context.h"
#include "cuda/copy.h"

#define DEPS (const CUgraphNode *)deps, count

static CUcontext context(void)
{
	return context_of(current_device());
}

/* ---- copies ---- */

static CUDA_MEMCPY3D line(void *dst, const void *src, size_t n)
{
	struct box b = {dst, src, n, 1, n, 1, n, 1, 1};

	return box_for_driver(&b);
}

static CUDA_MEMCPY3D described(const hipMemcpy3DParms *p)
{
	struct box b = box_of(p);

	return box_for_driver(&b);
}

hipError_t i_hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t count, const hipMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!node || !g || !p)
		return hipErrorInvalidValue;
	c = described(p);
	return to_hip(
		CU(cuGraphAddMemcpyNode, (CUgraphNode *)node, (CUgraph)g, DEPS, &c, context()));
}

hipError_t i_hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				     size_t count, void *dst, const void *src, size_t n,
				     hipMemcpyKind kind)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!node || !g || !dst || !src || !n)
		return hipErrorInvalidValue;
	c = line(dst, src, n);
	return to_hip(
		CU(cuGraphAddMemcpyNode, (CUgraphNode *)node, (CUgraph)g, DEPS, &c, context()));
}

hipError_t i_hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!node || !p)
		return hipErrorInvalidValue;
	c = described(p);
	return to_hip(CU(cuGraphMemcpyNodeSetParams, (CUgraphNode)node, &c));
}

hipError_t i_hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *dst, const void *src,
					   size_t n, hipMemcpyKind kind)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!node || !dst || !src || !n)
		return hipErrorInvalidValue;
	c = line(dst, src, n);
	return to_hip(CU(cuGraphMemcpyNodeSetParams, (CUgraphNode)node, &c));
}

hipError_t i_hipGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     hipMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!x || !node || !p)
		return hipErrorInvalidValue;
	c = described(p);
	return to_hip(CU(cuGraphExecMemcpyNodeSetParams, (CUgraphExec)x, (CUgraphNode)node, &c,
			 context()));
}

hipError_t i_hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t x, hipGraphNode_t node, void *dst,
					       const void *src, size_t n, hipMemcpyKind kind)
{
	CUDA_MEMCPY3D c;

	ENTER();
	if (!x || !node || !dst || !src || !n)
		return hipErrorInvalidValue;
	c = line(dst, src, n);
	return to_hip(CU(cuGraphExecMemcpyNodeSetParams, (CUgraphExec)x, (CUgraphNode)node, &c,
			 context()));
}

/* The driver keeps no kind, and says addresses for positions. */
hipError_t i_hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;
	CUresult r;

	ENTER();
	if (!node || !p)
		return hipErrorInvalidValue;
	r = CU(cuGraphMemcpyNodeGetParams, (CUgraphNode)node, &c);
	if (r)
		return to_hip(r);
	memset(p, 0, sizeof *p);
	p->srcPtr.ptr = c.srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)c.srcHost :
								pointer(c.srcDevice);
	p->srcPtr.pitch = p->srcPtr.xsize = c.srcPitch;
	p->srcPtr.ysize = c.srcHeight;
	p->dstPtr.ptr = c.dstMemoryType == CU_MEMORYTYPE_HOST ? c.dstHost : pointer(c.dstDevice);
	p->dstPtr.pitch = p->dstPtr.xsize = c.dstPitch;
	p->dstPtr.ysize = c.dstHeight;
	p->extent = (hipExtent){c.WidthInBytes, c.Height, c.Depth};
	p->kind = hipMemcpyDefault;
	return hipSuccess;
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
