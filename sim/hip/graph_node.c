/* SPDX-License-Identifier: MIT */
/* Nodes of graphs: kernels, host functions, events, child graphs, and empty ones. */
#include <stdbool.h>

#include "device/command.h"
#include "device/host_call.h"
#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/graph_exec.h"
#include "hip/graph_node.h"
#include "hip/handle.h"
#include "hip/launch.h"

hipError_t node_create(hipGraphNode_t *out, hipGraph_t h, const hipGraphNode_t *deps, size_t n,
		       enum node_type type, struct sim_command *c, struct node **made)
{
	struct graph *g = graph_of(h);
	bool ok = out && g && (!n || deps);
	struct node *x;

	for (size_t i = 0; ok && i < n; i++)
		ok = node_of(deps[i]) != NULL;
	if (!ok) {
		if (c)
			sim_command_free(c);
		return hipErrorInvalidValue;
	}
	x = node_add(g, type, c, (struct node *const *)deps, n);
	*out = (hipGraphNode_t)x;
	if (made)
		*made = x;
	return hipSuccess;
}

hipError_t node_replace(struct node *n, struct sim_command *c)
{
	if (!n || !n->cmd) {
		sim_command_free(c);
		return hipErrorInvalidValue;
	}
	sim_command_free(n->cmd);
	n->cmd = c;
	return hipSuccess;
}

/* ---- kernels ---- */

static struct sim_command *kernel_of(const hipKernelNodeParams *p, hipError_t *e)
{
	*e = hipErrorInvalidValue;
	return p && p->func ? launch_command(p->func, p->gridDim, p->blockDim, p->kernelParams,
					     p->extra, e) :
			      NULL;
}

hipError_t i_hipGraphAddKernelNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				   size_t n, const hipKernelNodeParams *p)
{
	hipError_t e;
	struct sim_command *c = kernel_of(p, &e);

	return c ? node_create(out, g, deps, n, NODE_KERNEL, c, NULL) : e;
}

hipError_t i_hipGraphKernelNodeGetParams(hipGraphNode_t node, hipKernelNodeParams *p)
{
	struct node *n = node_of(node);
	const uint32_t *d;

	if (!n || !p || n->type != NODE_KERNEL)
		return hipErrorInvalidValue;
	d = n->cmd->kernel.dims;
	*p = (hipKernelNodeParams){
		.func = (void *)(uintptr_t)n->cmd->kernel.func,
		.gridDim = {d[0], d[1], d[2]},
		.blockDim = {d[3], d[4], d[5]},
		.kernelParams = n->cmd->kernel.args,
	};
	return hipSuccess;
}

hipError_t i_hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams *p)
{
	hipError_t e;
	struct sim_command *c = kernel_of(p, &e);

	return c ? node_replace(node_of(node), c) : e;
}

hipError_t i_hipGraphExecKernelNodeSetParams(hipGraphExec_t x, hipGraphNode_t node,
					     const hipKernelNodeParams *p)
{
	hipError_t e;
	struct sim_command *c = kernel_of(p, &e);

	return c ? node_replace(node_in_exec(x, node), c) : e;
}

/* ---- host functions, events, empty nodes, child graphs ---- */

static struct sim_command *host_of(const hipHostNodeParams *p)
{
	return p && p->fn ? sim_host_command(p->fn, p->userData) : NULL;
}

hipError_t i_hipGraphAddHostNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				 size_t n, const hipHostNodeParams *p)
{
	struct sim_command *c = host_of(p);

	return c ? node_create(out, g, deps, n, NODE_HOST, c, NULL) : hipErrorInvalidValue;
}

hipError_t i_hipGraphAddEmptyNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				  size_t n)
{
	return node_create(out, g, deps, n, NODE_EMPTY, sim_marker(), NULL);
}

static hipError_t event_node(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
			     size_t n, enum node_type type, hipEvent_t event)
{
	struct node *x;
	hipError_t e;

	if (!event_of(event))
		return hipErrorInvalidValue;
	e = node_create(out, g, deps, n, type, NULL, &x);
	if (!e)
		x->event = event;
	return e;
}

hipError_t i_hipGraphAddEventRecordNode(hipGraphNode_t *out, hipGraph_t g,
					const hipGraphNode_t *deps, size_t n, hipEvent_t event)
{
	return event_node(out, g, deps, n, NODE_EVENT_RECORD, event);
}

hipError_t i_hipGraphAddEventWaitNode(hipGraphNode_t *out, hipGraph_t g, const hipGraphNode_t *deps,
				      size_t n, hipEvent_t event)
{
	return event_node(out, g, deps, n, NODE_EVENT_WAIT, event);
}

static hipError_t set_event(struct node *n, enum node_type type, hipEvent_t event)
{
	if (!n || n->type != type || !event_of(event))
		return hipErrorInvalidValue;
	n->event = event;
	return hipSuccess;
}

hipError_t i_hipGraphEventRecordNodeSetEvent(hipGraphNode_t n, hipEvent_t e)
{
	return set_event(node_of(n), NODE_EVENT_RECORD, e);
}

hipError_t i_hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t x, hipGraphNode_t n, hipEvent_t e)
{
	return set_event(node_in_exec(x, n), NODE_EVENT_RECORD, e);
}

hipError_t i_hipGraphAddChildGraphNode(hipGraphNode_t *out, hipGraph_t g,
				       const hipGraphNode_t *deps, size_t n, hipGraph_t child)
{
	struct node *x;
	hipError_t e;

	if (!graph_of(child))
		return hipErrorInvalidValue;
	e = node_create(out, g, deps, n, NODE_GRAPH, NULL, &x);
	if (!e)
		x->child = graph_copy((struct graph *)child);
	return e;
}

hipError_t i_hipGraphChildGraphNodeGetGraph(hipGraphNode_t node, hipGraph_t *out)
{
	struct node *n = node_of(node);

	if (!n || !out || n->type != NODE_GRAPH)
		return hipErrorInvalidValue;
	*out = (hipGraph_t)n->child;
	return hipSuccess;
}

/* ---- any node ---- */

hipError_t i_hipGraphNodeSetEnabled(hipGraphExec_t x, hipGraphNode_t node, unsigned int enabled)
{
	struct node *n = node_in_exec(x, node);

	if (!n || (n->type != NODE_KERNEL && n->type != NODE_COPY && n->type != NODE_FILL))
		return hipErrorInvalidValue;
	n->disabled = !enabled;
	return hipSuccess;
}
