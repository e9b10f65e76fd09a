/* SPDX-License-Identifier: MIT */
/*
 * Graph nodes that record events or allocate. Every launch of the graph records such an event, so
 * the event has no clock for the rest of its life. bounds/graph_node.c handles nodes that
 * hipGraphNodeParams describe. No lock.
 */
#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/limit.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

#define RETURN_NODE(event, name, ...) do { \
	if (event) \
		ss_event_taint(ss_core, event, true); \
	if (event && unlikely(ss_checking)) \
		ss_check_event_tainted(event, true); \
	return ss_result(REAL(name, __VA_ARGS__)); \
} while (0)

hipError_t do_hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph,
					 const hipGraphNode_t *deps, size_t count, hipEvent_t event)
{
	RETURN_NODE(event, hipGraphAddEventRecordNode, node, graph, deps, count, event);
}

hipError_t do_hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event)
{
	RETURN_NODE(event, hipGraphEventRecordNodeSetEvent, node, event);
}

hipError_t do_hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
						  hipEvent_t event)
{
	RETURN_NODE(event, hipGraphExecEventRecordNodeSetEvent, exec, node, event);
}

hipError_t do_hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph,
				      const hipGraphNode_t *deps, size_t count,
				      SS_ALLOC_PARAMS *params)
{
	struct ss_graph_node n = ss_graph_memory_node(params);
	hipError_t err;

	ss_graph_memory_add_node(params);
	err = SS_LIMITED(n.dev, n.bytes, ss_graph_memory_node(params).ptr,
			 ss_real.hipGraphAddMemAllocNode ?
				 ss_real.hipGraphAddMemAllocNode(node, graph, deps, count, params) :
				 ss_real_missing());
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_device_memory(ss_graph_memory_node(params).ptr, n.bytes);
	return ss_result(err);
}
