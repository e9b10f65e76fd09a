/* SPDX-License-Identifier: MIT */
/* Graphs and their instances. Kernel nodes come from captures only. */
#include "cuda/context.h"

hipError_t i_hipGraphCreate(hipGraph_t *g, unsigned flags)
{
	ENTER();
	if (!g || flags)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphCreate, (CUgraph *)g, 0));
}

hipError_t i_hipGraphDestroy(hipGraph_t g)
{
	ENTER();
	if (!g)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphDestroy, (CUgraph)g));
}

hipError_t i_hipGraphClone(hipGraph_t *out, hipGraph_t g)
{
	ENTER();
	if (!out || !g)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphClone, (CUgraph *)out, (CUgraph)g));
}

hipError_t i_hipGraphInstantiate(hipGraphExec_t *x, hipGraph_t g, hipGraphNode_t *bad, char *log,
				 size_t n)
{
	if (bad)
		*bad = NULL;
	if (log && n)
		*log = 0;
	return i_hipGraphInstantiateWithFlags(x, g, 0);
}

hipError_t i_hipGraphInstantiateWithFlags(hipGraphExec_t *x, hipGraph_t g, unsigned long long flags)
{
	ENTER();
	if (!x || !g)
		return hipErrorInvalidValue;
	return to_hip(
		RELAXED(CU(cuGraphInstantiateWithFlags, (CUgraphExec *)x, (CUgraph)g, flags & 1)));
}

hipError_t i_hipGraphExecDestroy(hipGraphExec_t x)
{
	ENTER();
	if (!x)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphExecDestroy, (CUgraphExec)x));
}

hipError_t i_hipGraphLaunch(hipGraphExec_t x, hipStream_t s)
{
	ENTER_STREAM(s);
	if (!x)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphLaunch, (CUgraphExec)x, (CUstream)s));
}

hipError_t i_hipGraphGetNodes(hipGraph_t g, hipGraphNode_t *nodes, size_t *count)
{
	ENTER();
	if (!g || !count)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphGetNodes, (CUgraph)g, (CUgraphNode *)nodes, count));
}

hipError_t i_hipGraphAddDependencies(hipGraph_t g, const hipGraphNode_t *from,
				     const hipGraphNode_t *to, size_t n)
{
	ENTER();
	if (!g)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphAddDependencies, (CUgraph)g, (const CUgraphNode *)from,
			 (const CUgraphNode *)to, n));
}

/* The numbers of the types are the same in both APIs, up to 11. */
hipError_t i_hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType *type)
{
	ENTER();
	if (!node || !type)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphNodeGetType, (CUgraphNode)node, (CUgraphNodeType *)type));
}

hipError_t i_hipGraphExecUpdate(hipGraphExec_t x, hipGraph_t g, hipGraphNode_t *bad,
				hipGraphExecUpdateResult *result)
{
	CUgraphNode node = NULL;
	CUgraphExecUpdateResult why = 0;
	CUresult r;

	ENTER();
	if (!x || !g)
		return hipErrorInvalidValue;
	r = CU(cuGraphExecUpdate, (CUgraphExec)x, (CUgraph)g, &node, &why);
	if (bad)
		*bad = (hipGraphNode_t)node;
	if (result)
		*result = (hipGraphExecUpdateResult)why;
	return to_hip(r);
}

hipError_t i_hipGraphNodeSetEnabled(hipGraphExec_t x, hipGraphNode_t node, unsigned on)
{
	ENTER();
	if (!x || !node)
		return hipErrorInvalidValue;
	return to_hip(CU(cuGraphNodeSetEnabled, (CUgraphExec)x, (CUgraphNode)node, on));
}
