/* SPDX-License-Identifier: MIT */
/*
 * Graph nodes that hipGraphNodeParams describe. Copies and memsets are checked against blocks,
 * recorded events lose their clock, and allocations are counted. The structure is read by offset,
 * because older headers lack it: the type first, and after 16 bytes a union of the parameters (the
 * same 256 bytes from 6.2 to 7.2). No lock.
 */
#include <string.h>

#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/observers.h"
#include "shim/alloc/limit.h"
#include "shim/bounds/check.h"
#include "shim/handlers.h"
#include "shim/process/graph_nodes.h"
#include "shim/process/real.h"

static int type_of(const void *params)
{
	int type;

	memcpy(&type, params, sizeof(type));
	return type;
}

static const void *union_of(const void *params)
{
	return (const char *)params + 16;
}

/* 16 bytes of the union precede the hipMemcpy3DParms. */
static const hipMemcpy3DParms *copy_of(const void *params)
{
	return (const void *)((const char *)union_of(params) + 16);
}

static bool exceeds(const void *params)
{
	switch (params ? type_of(params) : -1) {
	case SS_NODE_COPY: return ss_box_exceeds(copy_of(params), NULL);
	case SS_NODE_FILL: return ss_memset_exceeds(union_of(params));
	default: return false;
	}
}

/* A node of unknown type may need the host. */
static bool needs_host(int type)
{
	switch (type) {
	case SS_NODE_HOST:
	case SS_NODE_SEMAPHORE_WAIT: return true;
	default: return type > SS_NODE_COPY_TO;
	}
}

/* Notes the effects of launches of the graph. */
static void note(const void *params)
{
	hipEvent_t event = NULL;

	if (params && needs_host(type_of(params)))
		ss_observer_add(-1, SS_OBSERVER_HOSTNODE);
	if (params && type_of(params) == SS_NODE_EVENT_RECORD)
		memcpy(&event, union_of(params), sizeof(event));
	if (event)
		ss_event_taint(ss_core, event, true);
	if (event && unlikely(ss_checking))
		ss_check_event_tainted(event, true);
}

/* Tells the checker the new parameters of a node of an executable graph. */
static void note_exec(hipGraphExec_t exec, hipGraphNode_t node, const void *params)
{
	switch (type_of(params)) {
	case SS_NODE_KERNEL: ss_check_exec_kernel(exec, node, union_of(params)); break;
	case SS_NODE_COPY:
	case SS_NODE_FILL: ss_check_exec_node(exec, node); break;
	case SS_NODE_HOST:
	case SS_NODE_EVENT_WAIT:
	case SS_NODE_EVENT_RECORD: break;
	default: ss_check_exec_unknown(exec);
	}
}

hipError_t do_hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps,
			      size_t count, SS_NODE_PARAMS *params)
{
	struct ss_graph_node n;
	bool allocates;
	hipError_t err;

	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	note(params);
	allocates = params && type_of(params) == SS_NODE_ALLOC;
	n = ss_graph_memory_node(allocates ? union_of(params) : NULL);
	if (allocates)
		ss_graph_memory_add_node(union_of(params));
	err = SS_LIMITED(n.dev, n.bytes, ss_graph_memory_node(union_of(params)).ptr,
			 ss_real.hipGraphAddNode ?
				 ss_real.hipGraphAddNode(node, graph, deps, count, params) :
				 ss_real_missing());
	if (unlikely(ss_checking) && err == hipSuccess && type_of(params) == SS_NODE_COPY)
		ss_check_node(graph, *node);
	if (unlikely(ss_checking) && err == hipSuccess && allocates)
		ss_check_device_memory(ss_graph_memory_node(union_of(params)).ptr, n.bytes);
	return ss_result(err);
}

hipError_t do_hipGraphNodeSetParams(hipGraphNode_t node, SS_NODE_PARAMS *params)
{
	hipError_t err;

	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	note(params);
	err = REAL(hipGraphNodeSetParams, node, params);
	if (unlikely(ss_checking) && err == hipSuccess && type_of(params) == SS_NODE_COPY)
		ss_check_node(NULL, node);
	return ss_result(err);
}

hipError_t do_hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
					SS_NODE_PARAMS *params)
{
	hipError_t err;

	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	if (params && type_of(params) == SS_NODE_COPY && ss_update_is_lost(copy_of(params)))
		return ss_fail(hipErrorGraphExecUpdateFailure);
	note(params);
	err = REAL(hipGraphExecNodeSetParams, exec, node, params);
	if (unlikely(ss_checking) && err == hipSuccess)
		note_exec(exec, node, params);
	return ss_result(err);
}
