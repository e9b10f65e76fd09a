/* SPDX-License-Identifier: MIT */
/* Nodes of graphs that copy, in each of the shapes in which HIP describes them. */
#include <string.h>

#include "cuda/context.h"
#include "cuda/copy.h"

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

static CUDA_MEMCPY3D driver_described(const HIP_MEMCPY3D *p)
{
	struct box b = box_of_driver(p);

	return box_for_driver(&b);
}

/* The three things that are done with a copy. A context is current. */
static hipError_t add(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps, size_t count,
		      CUDA_MEMCPY3D c)
{
	return to_hip(CU(cuGraphAddMemcpyNode, (CUgraphNode *)node, (CUgraph)g,
			 (const CUgraphNode *)deps, count, &c, context_of(current_device())));
}

static hipError_t set(hipGraphNode_t node, CUDA_MEMCPY3D c)
{
	return to_hip(CU(cuGraphMemcpyNodeSetParams, (CUgraphNode)node, &c));
}

static hipError_t set_in(hipGraphExec_t x, hipGraphNode_t node, CUDA_MEMCPY3D c)
{
	return to_hip(CU(cuGraphExecMemcpyNodeSetParams, (CUgraphExec)x, (CUgraphNode)node, &c,
			 context_of(current_device())));
}

hipError_t i_hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t count, const hipMemcpy3DParms *p)
{
	ENTER();
	if (!node || !g || !p)
		return hipErrorInvalidValue;
	return add(node, g, deps, count, described(p));
}

hipError_t i_hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
				     size_t count, void *dst, const void *src, size_t n,
				     hipMemcpyKind kind)
{
	ENTER();
	if (!node || !g || !dst || !src || !n)
		return hipErrorInvalidValue;
	return add(node, g, deps, count, line(dst, src, n));
}

hipError_t i_hipDrvGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t g,
				      const hipGraphNode_t *deps, size_t count,
				      const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	ENTER();
	if (!node || !g || !p)
		return hipErrorInvalidValue;
	return add(node, g, deps, count, driver_described(p));
}

hipError_t i_hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms *p)
{
	ENTER();
	return node && p ? set(node, described(p)) : hipErrorInvalidValue;
}

hipError_t i_hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *dst, const void *src,
					   size_t n, hipMemcpyKind kind)
{
	ENTER();
	return node && dst && src && n ? set(node, line(dst, src, n)) : hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D *p)
{
	ENTER();
	return node && p ? set(node, driver_described(p)) : hipErrorInvalidValue;
}

hipError_t i_hipGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     hipMemcpy3DParms *p)
{
	ENTER();
	return x && node && p ? set_in(x, node, described(p)) : hipErrorInvalidValue;
}

hipError_t i_hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t x, hipGraphNode_t node, void *dst,
					       const void *src, size_t n, hipMemcpyKind kind)
{
	ENTER();
	return x && node && dst && src && n ? set_in(x, node, line(dst, src, n)) :
					      hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
						const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	ENTER();
	return x && node && p ? set_in(x, node, driver_described(p)) : hipErrorInvalidValue;
}

/* The driver does not keep the kind, and returns addresses in place of positions. */
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
