/* SPDX-License-Identifier: MIT */
/* Graph nodes: adding, asking, changing; in a graph and in an executable. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

hipError_t node_create(hipGraphNode_t *out, hipGraph_t h, const hipGraphNode_t *deps, size_t n, struct cmd *c,
		       struct node **made)
{
	struct graph *g = graph_of(h);

	if (!out || !g || (n && !deps)) {
		cmd_free(c);
		return hipErrorInvalidValue;
	}
	for (size_t i = 0; i < n; i++)
		if (!node_of(deps[i])) {
			cmd_free(c);
			return hipErrorInvalidValue;
		}
	struct node *x = node_add(g, c, (struct node *const *)deps, n);

	*out = (hipGraphNode_t)x;
	if (made)
		*made = x;
	return hipSuccess;
}

/* The executable's copy of a node. */
static struct node *in_exec(hipGraphExec_t h, hipGraphNode_t node)
{
	struct exec *x = exec_of(h);

	for (size_t i = 0; x && i < x->graph->n; i++)
		if (x->graph->nodes[i]->origin == (struct node *)node)
			return x->graph->nodes[i];
	return NULL;
}

static hipError_t replace(struct node *n, struct cmd *c)
{
	if (!n) {
		cmd_free(c);
		return hipErrorInvalidValue;
	}
	cmd_free(n->cmd);
	n->cmd = c;
	return hipSuccess;
}

/* ---- kernels ---- */

static struct cmd *kernel_of(const hipKernelNodeParams *p, hipError_t *e)
{
	*e = hipErrorInvalidValue;
	return p && p->func ? kernel_cmd(p->func, p->gridDim, p->blockDim, p->kernelParams, p->extra, e) : NULL;
}

hipError_t i_hipGraphAddKernelNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const hipKernelNodeParams *p)
{
	struct node *x;
	hipError_t e;
	struct cmd *c = kernel_of(p, &e);

	if (!c)
		return e;
	e = node_create(out, g, deps, n, c, &x);
	if (!e)
		x->kernel = *p;
	return e;
}

hipError_t i_hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->cmd->kind != C_KERNEL)
		return hipErrorInvalidValue;
	*p = n->kernel;
	if (!p->func) {
		const uint32_t *d = n->cmd->kernel.dims;

		p->func = (void *)(uintptr_t)n->cmd->kernel.func;
		p->gridDim = (dim3){ d[0], d[1], d[2] };
		p->blockDim = (dim3){ d[3], d[4], d[5] };
		p->kernelParams = n->cmd->kernel.args;
	}
	return hipSuccess;
}

hipError_t i_hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams *p)
{
	hipError_t e;
	struct cmd *c = kernel_of(p, &e);

	return c ? replace(node_of(node), c) : e;
}

hipError_t i_hipGraphExecKernelNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, const hipKernelNodeParams *p)
{
	hipError_t e;
	struct cmd *c = kernel_of(p, &e);

	return c ? replace(in_exec(x, node), c) : e;
}

/* ---- copies ---- */

hipError_t i_hipGraphAddMemcpyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const hipMemcpy3DParms *p)
{
	struct node *x;
	hipError_t e;
	struct cmd *c = copy3d_cmd(p, &e);

	if (!c)
		return e;
	e = node_create(out, g, deps, n, c, &x);
	if (!e)
		x->copy = *p;
	return e;
}

hipError_t i_hipGraphMemcpyNodeGetParams(hipGraphNode_t node, hipMemcpy3DParms *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->cmd->kind != C_COPY)
		return hipErrorInvalidValue;
	*p = n->copy;
	return hipSuccess;
}

hipError_t i_hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms *p)
{
	hipError_t e;
	struct cmd *c = copy3d_cmd(p, &e);

	return c ? replace(node_of(node), c) : e;
}

hipError_t i_hipGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, hipMemcpy3DParms *p)
{
	hipError_t e;
	struct cmd *c = copy3d_cmd(p, &e);

	return c ? replace(in_exec(x, node), c) : e;
}

/* (No structure of the program is kept of these.) */
hipError_t i_hipDrvGraphAddMemcpyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	struct cmd *c = drv3d_cmd(p);

	(void)ctx;
	return c ? node_create(out, g, deps, n, c, NULL) : hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D *p)
{
	struct cmd *c = drv3d_cmd(p);

	return c ? replace(node_of(node), c) : hipErrorInvalidValue;
}

hipError_t i_hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, const HIP_MEMCPY3D *p, hipCtx_t ctx)
{
	struct cmd *c = drv3d_cmd(p);

	(void)ctx;
	return c ? replace(in_exec(x, node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphAddMemcpyNode1D(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, void *dst, const void *src, size_t size, hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : node_create(out, g, deps, n, copy_cmd(dst, src, size), NULL);
}

hipError_t i_hipGraphMemcpyNodeSetParams1D(hipGraphNode_t node, void *dst, const void *src, size_t size, hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : replace(node_of(node), copy_cmd(dst, src, size));
}

hipError_t i_hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t x, hipGraphNode_t node, void *dst, const void *src, size_t size, hipMemcpyKind kind)
{
	hipError_t e = check_copy(dst, src, size, kind);

	return e ? e : replace(in_exec(x, node), copy_cmd(dst, src, size));
}

static struct cmd *symbol_copy(void *dst, const void *src, const void *sym, bool to, size_t size, size_t off, hipError_t *e)
{
	void *p;

	*e = i_hipGetSymbolAddress(&p, sym);
	if (*e)
		return NULL;
	return to ? copy_cmd((char *)p + off, src, size) : copy_cmd(dst, (char *)p + off, size);
}

hipError_t i_hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, void *dst, const void *sym, size_t size, size_t off, hipMemcpyKind kind)
{
	hipError_t e;
	struct cmd *c = symbol_copy(dst, NULL, sym, false, size, off, &e);

	return c ? node_create(out, g, deps, n, c, NULL) : e;
}

hipError_t i_hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const void *sym, const void *src, size_t size, size_t off, hipMemcpyKind kind)
{
	hipError_t e;
	struct cmd *c = symbol_copy(NULL, src, sym, true, size, off, &e);

	return c ? node_create(out, g, deps, n, c, NULL) : e;
}

/* ---- memsets ---- */

static struct cmd *set_of(const hipMemsetParams *p)
{
	struct sim_alloc a;
	struct cmd *c;

	if (!p || !p->dst || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) || !p->height)
		return NULL;
	/* All rows with their pitch, wherever they begin (ihipGraphMemsetParams_validate). */
	if (hip_find(p->dst, &a) && a.hip && p->pitch * p->height > a.size)
		return NULL;
	c = cmd_new(C_SET);
	c->set.dst = p->dst;
	c->set.value = p->value;
	c->set.elem = (int)p->elementSize;
	c->set.width = p->width;
	c->set.height = p->height;
	c->set.depth = 1;
	c->set.pitch = p->pitch;
	return c;
}

hipError_t i_hipGraphAddMemsetNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const hipMemsetParams *p)
{
	struct cmd *c = set_of(p);
	struct node *x;
	hipError_t e;

	if (!c)
		return hipErrorInvalidValue;
	e = node_create(out, g, deps, n, c, &x);
	if (!e)
		x->set = *p;
	return e;
}

hipError_t i_hipGraphMemsetNodeGetParams(hipGraphNode_t node, hipMemsetParams *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->cmd->kind != C_SET)
		return hipErrorInvalidValue;
	*p = n->set;
	return hipSuccess;
}

hipError_t i_hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams *p)
{
	struct cmd *c = set_of(p);

	return c ? replace(node_of(node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, const hipMemsetParams *p)
{
	struct cmd *c = set_of(p);

	return c ? replace(in_exec(x, node), c) : hipErrorInvalidValue;
}

/* HIP_MEMSET_NODE_PARAMS, which 6.x takes here. */
static hipMemsetParams drv_set(const void *p)
{
	const struct { void *dst; size_t pitch; unsigned value, elem; size_t width, height; } *f = p;

	if (V7)
		return *(const hipMemsetParams *)p;
	return (hipMemsetParams){ .dst = f->dst, .elementSize = f->elem, .height = f->height,
				  .pitch = f->pitch, .value = f->value, .width = f->width };
}

hipError_t i_hipDrvGraphAddMemsetNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams m;

	(void)ctx;
	if (!p)
		return hipErrorInvalidValue;
	m = drv_set(p);
	return i_hipGraphAddMemsetNode(out, g, deps, n, &m);
}

hipError_t i_hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, const hipMemsetParams *p, hipCtx_t ctx)
{
	hipMemsetParams m;

	(void)ctx;
	if (!p)
		return hipErrorInvalidValue;
	m = drv_set(p);
	return i_hipGraphExecMemsetNodeSetParams(x, node, &m);
}

/* ---- host functions, events, empty, children ---- */

static struct cmd *host_of(const hipHostNodeParams *p)
{
	struct cmd *c;

	if (!p || !p->fn)
		return NULL;
	c = cmd_new(C_HOST);
	c->host.fn = p->fn;
	c->host.arg = p->userData;
	return c;
}

hipError_t i_hipGraphAddHostNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, const hipHostNodeParams *p)
{
	struct cmd *c = host_of(p);

	return c ? node_create(out, g, deps, n, c, NULL) : hipErrorInvalidValue;
}

hipError_t i_hipGraphHostNodeGetParams(hipGraphNode_t node, hipHostNodeParams *p)
{
	struct node *n = node_of(node);

	if (!n || !p || n->cmd->kind != C_HOST)
		return hipErrorInvalidValue;
	p->fn = n->cmd->host.fn;
	p->userData = n->cmd->host.arg;
	return hipSuccess;
}

hipError_t i_hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams *p)
{
	struct cmd *c = host_of(p);

	return c ? replace(node_of(node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphExecHostNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, const hipHostNodeParams *p)
{
	struct cmd *c = host_of(p);

	return c ? replace(in_exec(x, node), c) : hipErrorInvalidValue;
}

hipError_t i_hipGraphAddEmptyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n)
{
	return node_create(out, g, deps, n, cmd_new(C_MARKER), NULL);
}

static struct cmd *event_cmd(enum cmd_kind kind, hipEvent_t event)
{
	struct cmd *c = cmd_new(kind);

	c->event = event;
	return c;
}

hipError_t i_hipGraphAddEventRecordNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, hipEvent_t event)
{
	return event_of(event) ? node_create(out, g, deps, n, event_cmd(C_EVENT_RECORD, event), NULL) : hipErrorInvalidValue;
}

hipError_t i_hipGraphAddEventWaitNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, hipEvent_t event)
{
	return event_of(event) ? node_create(out, g, deps, n, event_cmd(C_EVENT_WAIT, event), NULL) : hipErrorInvalidValue;
}

static hipError_t get_event(struct node *n, enum cmd_kind kind, hipEvent_t *out)
{
	if (!n || !out || n->cmd->kind != kind)
		return hipErrorInvalidValue;
	*out = n->cmd->event;
	return hipSuccess;
}

static hipError_t set_event(struct node *n, enum cmd_kind kind, hipEvent_t event)
{
	if (!n || n->cmd->kind != kind || !event_of(event))
		return hipErrorInvalidValue;
	n->cmd->event = event;
	return hipSuccess;
}

hipError_t i_hipGraphEventRecordNodeGetEvent(hipGraphNode_t n, hipEvent_t *e) { return get_event(node_of(n), C_EVENT_RECORD, e); }
hipError_t i_hipGraphEventWaitNodeGetEvent(hipGraphNode_t n, hipEvent_t *e) { return get_event(node_of(n), C_EVENT_WAIT, e); }
hipError_t i_hipGraphEventRecordNodeSetEvent(hipGraphNode_t n, hipEvent_t e) { return set_event(node_of(n), C_EVENT_RECORD, e); }
hipError_t i_hipGraphEventWaitNodeSetEvent(hipGraphNode_t n, hipEvent_t e) { return set_event(node_of(n), C_EVENT_WAIT, e); }
hipError_t i_hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t x, hipGraphNode_t n, hipEvent_t e) { return set_event(in_exec(x, n), C_EVENT_RECORD, e); }
hipError_t i_hipGraphExecEventWaitNodeSetEvent(hipGraphExec_t x, hipGraphNode_t n, hipEvent_t e) { return set_event(in_exec(x, n), C_EVENT_WAIT, e); }

hipError_t i_hipGraphAddChildGraphNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps, size_t n, hipGraph_t child)
{
	struct node *x;
	hipError_t e;

	if (!graph_of(child))
		return hipErrorInvalidValue;
	e = node_create(out, g, deps, n, cmd_new(C_GRAPH), &x);
	if (!e)
		x->child = graph_copy((struct graph *)child);
	return e;
}

hipError_t i_hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *out)
{
	struct node *n = node_of(node);

	if (!n || !out || !n->child)
		return hipErrorInvalidValue;
	*out = (hipGraph_t)n->child;
	return hipSuccess;
}

hipError_t i_hipGraphExecChildGraphNodeSetParams(hipGraphExec_t x, hipGraphNode_t node, hipGraph_t child)
{
	struct node *n = in_exec(x, node);
	struct graph *old;

	if (!n || !n->child || !graph_of(child))
		return hipErrorInvalidValue;
	old = n->child;
	n->child = graph_copy((struct graph *)child);
	graph_free(old);
	return hipSuccess;
}
