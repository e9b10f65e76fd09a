/* SPDX-License-Identifier: MIT */
/* Graph nodes that allocate and free memory. */
#include <string.h>

#include "graph.h"

struct alloc_params {                 /* hipMemAllocNodeParams */
	hipMemPoolProps props;
	const hipMemAccessDesc *access;
	size_t naccess, size;
	void *dptr;
};

hipError_t i_hipGraphAddMemAllocNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, void *params)
{
	struct alloc_params *p = params;
	struct graph_alloc *ga;
	struct cmd *c;
	hipError_t e;

	if (!p || !p->size || check_device(p->props.location.id))
		return hipErrorInvalidValue;
	e = graph_alloc_new(p->size, p->props.location.id, &ga);
	if (e)
		return e;
	c = cmd_new(C_ALLOC);
	c->mem.ga = ga;
	c->mem.ptr = ga->ptr;
	c->mem.size = p->size;
	c->mem.device = p->props.location.id;
	p->dptr = ga->ptr;
	return node_create(out, g, deps, n, c, NULL);
}

hipError_t i_hipGraphAddMemFreeNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, void *ptr)
{
	struct sim_alloc a;
	struct cmd *c;

	if (!ptr || !hip_find(ptr, &a) || a.ownertype != O_GRAPH)
		return hipErrorInvalidValue;
	c = cmd_new(C_FREE);
	c->mem.ga = a.owner;
	c->mem.ptr = ptr;
	atomic_fetch_add(&c->mem.ga->refs, 1);
	return node_create(out, g, deps, n, c, NULL);
}

hipError_t i_hipDrvGraphAddMemFreeNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, hipDeviceptr_t ptr)
{
	return i_hipGraphAddMemFreeNode(out, g, deps, n, ptr);
}

hipError_t i_hipGraphMemAllocNodeGetParams(hipGraphNode_t node, void *params)
{
	struct node *n = node_of(node);
	struct alloc_params *p = params;

	if (!n || !p || n->cmd->kind != C_ALLOC)
		return hipErrorInvalidValue;
	memset(p, 0, sizeof *p);
	p->props.allocType = hipMemAllocationTypePinned;
	p->props.location.type = hipMemLocationTypeDevice;
	p->props.location.id = n->cmd->mem.device;
	p->size = n->cmd->mem.size;
	p->dptr = n->cmd->mem.ptr;
	return hipSuccess;
}

hipError_t i_hipGraphMemFreeNodeGetParams(hipGraphNode_t node, void *ptr)
{
	struct node *n = node_of(node);

	if (!n || !ptr || n->cmd->kind != C_FREE)
		return hipErrorInvalidValue;
	*(void **)ptr = n->cmd->mem.ptr;
	return hipSuccess;
}
