/* SPDX-License-Identifier: MIT */
/* Graphs. */
#include "libcuda/call.h"
#include "libcuda/copy.h"

#define G(g) ((hipGraph_t)(g))
#define N(n) ((hipGraphNode_t)(n))
#define X(x) ((hipGraphExec_t)(x))
#define NEW (hipGraphNode_t *)node, G(g), (const hipGraphNode_t *)deps, n

CUresult cuGraphCreate(CUgraph *g, unsigned flags)
{
	RUN(cuGraphCreate, NEEDS_INIT, i_hipGraphCreate((hipGraph_t *)g, flags));
}

CUresult cuGraphDestroy(CUgraph g)
{
	RUN(cuGraphDestroy, NEEDS_INIT, i_hipGraphDestroy(G(g)));
}

CUresult cuGraphClone(CUgraph *out, CUgraph g)
{
	RUN(cuGraphClone, NEEDS_INIT, i_hipGraphClone((hipGraph_t *)out, G(g)));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags)
{
	RUN(cuGraphInstantiateWithFlags, NEEDS_CONTEXT,
	    i_hipGraphInstantiateWithFlags((hipGraphExec_t *)x, G(g), flags));
}

CUresult cuGraphExecDestroy(CUgraphExec x)
{
	RUN(cuGraphExecDestroy, NEEDS_INIT, i_hipGraphExecDestroy(X(x)));
}

CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	RUN(cuGraphLaunch, NEEDS_CONTEXT, i_hipGraphLaunch(X(x), stream_arg(s)));
}

CUresult cuGraphExecUpdate(CUgraphExec x, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *why)
{
	RUN(cuGraphExecUpdate, NEEDS_INIT,
	    i_hipGraphExecUpdate(X(x), G(g), (hipGraphNode_t *)bad,
				 (hipGraphExecUpdateResult *)why));
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n)
{
	RUN(cuGraphGetNodes, NEEDS_INIT, i_hipGraphGetNodes(G(g), (hipGraphNode_t *)nodes, n));
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	RUN(cuGraphNodeGetType, NEEDS_INIT,
	    i_hipGraphNodeGetType(N(node), (hipGraphNodeType *)type));
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	RUN(cuGraphAddDependencies, NEEDS_INIT,
	    i_hipGraphAddDependencies(G(g), (const hipGraphNode_t *)from,
				      (const hipGraphNode_t *)to, n));
}

/* ---- copies ---- */

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
			      const CUDA_MEMCPY3D *c, CUcontext ctx)
{
	RUN(cuGraphAddMemcpyNode, NEEDS_INIT,
	    i_hipGraphAddMemcpyNode(NEW, (hipMemcpy3DParms[]){box_of(c)}));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *c)
{
	RUN(cuGraphMemcpyNodeSetParams, NEEDS_INIT,
	    i_hipGraphMemcpyNodeSetParams(N(node), (hipMemcpy3DParms[]){box_of(c)}));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec x, CUgraphNode node, const CUDA_MEMCPY3D *c,
					CUcontext ctx)
{
	RUN(cuGraphExecMemcpyNodeSetParams, NEEDS_INIT,
	    i_hipGraphExecMemcpyNodeSetParams(X(x), N(node), (hipMemcpy3DParms[]){box_of(c)}));
}

static hipError_t copy_params(hipGraphNode_t node, CUDA_MEMCPY3D *c)
{
	hipMemcpy3DParms p;
	hipError_t e = i_hipGraphMemcpyNodeGetParams(node, &p);

	if (!e)
		*c = (CUDA_MEMCPY3D){
			.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			.srcDevice = (CUdeviceptr)(uintptr_t)p.srcPtr.ptr,
			.srcPitch = p.srcPtr.pitch,
			.srcHeight = p.srcPtr.ysize,
			.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			.dstDevice = (CUdeviceptr)(uintptr_t)p.dstPtr.ptr,
			.dstPitch = p.dstPtr.pitch,
			.dstHeight = p.dstPtr.ysize,
			.WidthInBytes = p.extent.width,
			.Height = p.extent.height,
			.Depth = p.extent.depth,
		};
	return e;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *c)
{
	RUN(cuGraphMemcpyNodeGetParams, NEEDS_INIT, copy_params(N(node), c));
}

/* ---- memsets ---- */

static hipMemsetParams fill_of(const CUDA_MEMSET_NODE_PARAMS *p)
{
	return (hipMemsetParams){memory(p->dst), p->elementSize, p->height,
				 p->pitch,       p->value,       p->width};
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
			      const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	RUN(cuGraphAddMemsetNode, NEEDS_INIT,
	    i_hipGraphAddMemsetNode(NEW, (hipMemsetParams[]){fill_of(p)}));
}

static hipError_t fill_params(hipGraphNode_t node, CUDA_MEMSET_NODE_PARAMS *c)
{
	hipMemsetParams p;
	hipError_t e = i_hipGraphMemsetNodeGetParams(node, &p);

	if (!e)
		*c = (CUDA_MEMSET_NODE_PARAMS){(CUdeviceptr)(uintptr_t)p.dst,
					       p.pitch,
					       p.value,
					       p.elementSize,
					       p.width,
					       p.height};
	return e;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *c)
{
	RUN(cuGraphMemsetNodeGetParams, NEEDS_INIT, fill_params(N(node), c));
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *p)
{
	RUN(cuGraphMemsetNodeSetParams, NEEDS_INIT,
	    i_hipGraphMemsetNodeSetParams(N(node), (hipMemsetParams[]){fill_of(p)}));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec x, CUgraphNode node,
					const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	RUN(cuGraphExecMemsetNodeSetParams, NEEDS_INIT,
	    i_hipGraphExecMemsetNodeSetParams(X(x), N(node), (hipMemsetParams[]){fill_of(p)}));
}

/* ---- other nodes ---- */

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
			    const CUDA_HOST_NODE_PARAMS *p)
{
	RUN(cuGraphAddHostNode, NEEDS_INIT,
	    i_hipGraphAddHostNode(NEW, (hipHostNodeParams[]){{p->fn, p->userData}}));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n)
{
	RUN(cuGraphAddEmptyNode, NEEDS_INIT, i_hipGraphAddEmptyNode(NEW));
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				  CUgraph child)
{
	RUN(cuGraphAddChildGraphNode, NEEDS_INIT, i_hipGraphAddChildGraphNode(NEW, G(child)));
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *g)
{
	RUN(cuGraphChildGraphNodeGetGraph, NEEDS_INIT,
	    i_hipGraphChildGraphNodeGetGraph(N(node), (hipGraph_t *)g));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec x, CUgraphNode node, unsigned on)
{
	RUN(cuGraphNodeSetEnabled, NEEDS_INIT, i_hipGraphNodeSetEnabled(X(x), N(node), on));
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				   CUevent e)
{
	RUN(cuGraphAddEventRecordNode, NEEDS_INIT, i_hipGraphAddEventRecordNode(NEW, event_arg(e)));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				 CUevent e)
{
	RUN(cuGraphAddEventWaitNode, NEEDS_INIT, i_hipGraphAddEventWaitNode(NEW, event_arg(e)));
}

/* The parameters have HIP's layout with CUDA's properties of pools, which are those of HIP
	 * 6.0. */
static hipError_t add_alloc(hipGraphNode_t *node, hipGraph_t g, const hipGraphNode_t *deps,
			    size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	struct {
		hipMemPoolProps props;
		const hipMemAccessDesc *access;
		size_t accesses, size;
		void *ptr;
	} q = {.size = p->bytesize};
	hipError_t e;

	q.props.location.id = p->poolProps.location.id;
	e = i_hipGraphAddMemAllocNode(node, g, deps, n, &q);
	if (!e)
		p->dptr = (CUdeviceptr)(uintptr_t)q.ptr;
	return e;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	RUN(cuGraphAddMemAllocNode, NEEDS_INIT, add_alloc(NEW, p));
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
			       CUdeviceptr p)
{
	RUN(cuGraphAddMemFreeNode, NEEDS_INIT, i_hipGraphAddMemFreeNode(NEW, memory(p)));
}
