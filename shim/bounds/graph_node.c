/* SPDX-License-Identifier: MIT */
/*
 * Graph nodes that are described by hipGraphNodeParams. Copies and memsets are checked
 * against blocks, recorded events lose their clock, and allocations are counted. The
 * structure is read by offset, because older headers lack it: the type first, and after
 * 16 bytes a union of the parameters (the same 256 bytes from 6.2 to 7.2). No lock.
 */
#include <string.h>

#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/observers.h"
#include "shim/alloc/limit.h"
#include "shim/bounds/check.h"
#include "shim/handlers.h"
#include "shim/process/real.h"

/* hipGraphNodeType; 5.2 has other numbers, but no such calls. */
enum node_type {
	NODE_MEMCPY = 1,
	NODE_MEMSET = 2,
	NODE_HOST = 3,
	NODE_EVENT_RECORD = 7,
	NODE_ALLOC = 10,
};

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
	switch (params ? type_of(params) : 0) {
	case NODE_MEMCPY: return ss_box_exceeds(copy_of(params), NULL);
	case NODE_MEMSET: return ss_memset_exceeds(union_of(params));
	default: return false;
	}
}

/* Takes note of what launches of the graph will do. */
static void note(const void *params)
{
	hipEvent_t event = NULL;

	if (params && type_of(params) == NODE_HOST)
		ss_observer_add(-1, SS_OBSERVER_HOSTFUNC);
	if (params && type_of(params) == NODE_EVENT_RECORD)
		memcpy(&event, union_of(params), sizeof(event));
	if (event)
		ss_event_taint(ss_core, event, true);
	if (event && unlikely(ss_checking))
		ss_check_event_tainted(event, true);
}

hipError_t do_hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps,
			      size_t count, SS_NODE_PARAMS *params)
{
	struct ss_graph_node n;
	bool allocates;

	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	note(params);
	allocates = params && type_of(params) == NODE_ALLOC;
	n = ss_graph_memory_node(allocates ? union_of(params) : NULL);
	if (allocates)
		ss_graph_memory_add_node(union_of(params));
	return ss_result(
		SS_LIMITED(n.dev, n.bytes, ss_graph_memory_node(union_of(params)).ptr,
			   ss_real.hipGraphAddNode ?
				   ss_real.hipGraphAddNode(node, graph, deps, count, params) :
				   ss_real_missing()));
}

hipError_t do_hipGraphNodeSetParams(hipGraphNode_t node, SS_NODE_PARAMS *params)
{
	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	note(params);
	return ss_result(REAL(hipGraphNodeSetParams, node, params));
}

hipError_t do_hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
					SS_NODE_PARAMS *params)
{
	if (exceeds(params))
		return ss_fail(hipErrorInvalidValue);
	if (params && type_of(params) == NODE_MEMCPY && ss_update_is_lost(copy_of(params)))
		return ss_fail(hipErrorGraphExecUpdateFailure);
	note(params);
	return ss_result(REAL(hipGraphExecNodeSetParams, exec, node, params));
}
