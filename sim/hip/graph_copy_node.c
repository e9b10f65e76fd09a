/* SPDX-License-Identifier: MIT */
/* Nodes of graphs that copy and fill memory. */
#include "device/command.h"
#include "device/transfer.h"
#include "hip/allocation.h"
#include "hip/copy.h"
#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/graph_exec.h"
#include "hip/graph_node.h"
#include "hip/version.h"

hipError_t i_hipGraphAddMemcpyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t n, const hipMemcpy3DParms *p)
{
	struct node *x;
	hipError_t e;
	struct sim_command *c = copy3d_command(p, &e);

	if (!c)
		return e;
	e = node_create(out, g, deps, n, NODE_COPY, c, &x);
	if (!e)
		x->copy = *p;
	return e;
}

hipError_t i_hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->type != NODE_COPY)
		return hipErrorInvalidValue;
	*p = n->copy;
	return hipSuccess;
}

hipError_t i_hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms *p)
{
	hipError_t e;
	struct sim_command *c = copy3d_command(p, &e);

	return c ? node_replace(node_of(node), c) : e;
}

hipError_t i_hipGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     hipMemcpy3DParms *p)
{
	hipError_t e;
	struct sim_command *c = copy3d_command(p, &e);

	return c ? node_replace(node_in_exec(x, node), c) : e;
}

hipError_t i_hipDrvGraphAddMemcpyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				      size_t n, const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	struct sim_command *c = driver_copy3d_command(p);

	return c ? node_create(out, g, deps, n, NODE_COPY, c, NULL) : hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D *p)
{
	struct sim_command *c = driver_copy3d_command(p);

	return c ? node_replace(node_of(node), c) : hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
						const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	struct sim_command *c = driver_copy3d_command(p);

	return c ? node_replace(node_in_exec(x, node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphAddMemcpyNode1D(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				     size_t n, void *dst, const void *src, size_t size,
				     hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : node_create(out, g, deps, n, NODE_COPY, copy_command(dst, src, size), NULL);
}

hipError_t i_hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *dst, const void *src,
					   size_t size, hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : node_replace(node_of(node), copy_command(dst, src, size));
}

hipError_t i_hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t x, hipGraphNode_t node, void *dst,
					       const void *src, size_t size, hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : node_replace(node_in_exec(x, node), copy_command(dst, src, size));
}

/* A copy to or from a device variable. NULL with *e set: there is no such variable. */
static struct sim_command *symbol_copy(void *dst, const void *src, const void *sym, bool to,
				       size_t size, size_t off, hipError_t *e)
{
	void *p;

	*e = i_hipGetSymbolAddress(&p, sym);
	if (*e)
		return NULL;
	return to ? copy_command((char *)p + off, src, size) :
		    copy_command(dst, (char *)p + off, size);
}

hipError_t i_hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t *out, hipGraph_t g,
					     const hipGraphNode_t *deps, size_t n, void *dst,
					     const void *sym, size_t size, size_t off,
					     hipMemcpyKind kind)
{
	hipError_t e;
	struct sim_command *c = symbol_copy(dst, NULL, sym, false, size, off, &e);

	return c ? node_create(out, g, deps, n, NODE_COPY, c, NULL) : e;
}

hipError_t i_hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t *out, hipGraph_t g,
					   const hipGraphNode_t *deps, size_t n, const void *sym,
					   const void *src, size_t size, size_t off,
					   hipMemcpyKind kind)
{
	hipError_t e;
	struct sim_command *c = symbol_copy(NULL, src, sym, true, size, off, &e);

	return c ? node_create(out, g, deps, n, NODE_COPY, c, NULL) : e;
}

/* ---- memsets ---- */

static struct sim_command *set_of(const hipMemsetParams *p)
{
	struct sim_alloc a;
	struct sim_command *c;

	if (!p || !p->dst || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) ||
	    !p->height)
		return NULL;
	/* The real check multiplies pitch and height, wherever in the allocation the rows begin
	 * (ihipGraphMemsetParams_validate). */
	if (hip_find(p->dst, &a) && a.hip && p->pitch * p->height > a.size)
		return NULL;
	c = sim_fill_command();
	c->fill.dst = p->dst;
	c->fill.value = p->value;
	c->fill.elem = (int)p->elementSize;
	c->fill.width = p->width;
	c->fill.height = p->height;
	c->fill.depth = 1;
	c->fill.pitch = p->pitch;
	return c;
}

hipError_t i_hipGraphAddMemsetNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t n, const hipMemsetParams *p)
{
	struct sim_command *c = set_of(p);

	return c ? node_create(out, g, deps, n, NODE_FILL, c, NULL) : hipErrorInvalidValue;
}

hipError_t i_hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->type != NODE_FILL)
		return hipErrorInvalidValue;
	*p = (hipMemsetParams){
		.dst = n->cmd->fill.dst,
		.elementSize = (unsigned)n->cmd->fill.elem,
		.height = n->cmd->fill.height,
		.pitch = n->cmd->fill.pitch,
		.value = n->cmd->fill.value,
		.width = n->cmd->fill.width,
	};
	return hipSuccess;
}

hipError_t i_hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams *p)
{
	struct sim_command *c = set_of(p);

	return c ? node_replace(node_of(node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     const hipMemsetParams *p)
{
	struct sim_command *c = set_of(p);

	return c ? node_replace(node_in_exec(x, node), c) : hipErrorInvalidValue;
}

/* 6.x takes a HIP_MEMSET_NODE_PARAMS here, and 7.x a hipMemsetParams. */
static hipMemsetParams drv_set(const void *p)
{
	const struct {
		void *dst;
		size_t pitch;
		unsigned value, elem;
		size_t width, height;
	} *f = p;

	if (V7)
		return *(const hipMemsetParams *)p;
	return (hipMemsetParams){.dst = f->dst,
				 .elementSize = f->elem,
				 .height = f->height,
				 .pitch = f->pitch,
				 .value = f->value,
				 .width = f->width};
}

hipError_t i_hipDrvGraphAddMemsetNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				      size_t n, const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams m;

	if (!p)
		return hipErrorInvalidValue;
	m = drv_set(p);
	return i_hipGraphAddMemsetNode(out, g, deps, n, &m);
}

hipError_t i_hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
						const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams m;

	if (!p)
		return hipErrorInvalidValue;
	m = drv_set(p);
	return i_hipGraphExecMemsetNodeSetParams(x, node, &m);
}
