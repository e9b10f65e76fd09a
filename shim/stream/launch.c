/* SPDX-License-Identifier: MIT */
/*
 * Launches and graph nodes that record events. What they record, and when, is
 * not ours to know: such an event has no clock - during the call, since it may
 * be recorded at any point of it, and after it.
 */
#include <string.h>

#include "shim/shim.h"

static void taint(hipEvent_t event, bool sticky)
{
	if (event)
		ss_event_taint(ss_core, event, sticky);
}

#define LAUNCHES(start, stop, name, ...) do { \
	hipError_t e_; \
	ss_stream_used(stream); \
	taint(start, false); \
	taint(stop, false); \
	e_ = REAL(name, __VA_ARGS__); \
	taint(start, false); \
	taint(stop, false); \
	return ss_result(e_); \
} while (0)

hipError_t do_hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
				 size_t shared, hipStream_t stream, hipEvent_t start,
				 hipEvent_t stop, int flags)
{
	LAUNCHES(start, stop, hipExtLaunchKernel, function, grid, block, args, shared, stream,
		 start, stop, flags);
}

#define DO_(name) do_##name
#define DO(name) DO_(name)

/* The C name and the C++ name that 5.x has instead. */
#define EXT_MODULE_LAUNCH(name) \
	hipError_t DO(name)(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, \
			    uint32_t ly, uint32_t lz, size_t shared, hipStream_t stream, \
			    void **params, void **extra, hipEvent_t start, hipEvent_t stop, \
			    uint32_t flags) \
	{ \
		LAUNCHES(start, stop, name, f, gx, gy, gz, lx, ly, lz, shared, stream, params, \
			 extra, start, stop, flags); \
	}

#define HCC_MODULE_LAUNCH(name) \
	hipError_t DO(name)(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, \
			    uint32_t ly, uint32_t lz, size_t shared, hipStream_t stream, \
			    void **params, void **extra, hipEvent_t start, hipEvent_t stop) \
	{ \
		LAUNCHES(start, stop, name, f, gx, gy, gz, lx, ly, lz, shared, stream, params, \
			 extra, start, stop); \
	}

EXT_MODULE_LAUNCH(hipExtModuleLaunchKernel)
EXT_MODULE_LAUNCH(SS_EXT_MODULE_LAUNCH)
HCC_MODULE_LAUNCH(hipHccModuleLaunchKernel)
HCC_MODULE_LAUNCH(SS_HCC_MODULE_LAUNCH)

/* ---- graph nodes: recorded by every launch, for good -------------------- */

#define NODE(event, name, ...) do { \
	taint(event, true); \
	return ss_result(REAL(name, __VA_ARGS__)); \
} while (0)

hipError_t do_hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph,
					 const hipGraphNode_t *deps, size_t count,
					 hipEvent_t event)
{
	NODE(event, hipGraphAddEventRecordNode, node, graph, deps, count, event);
}

hipError_t do_hipGraphEventRecordNodeSetEvent(hipGraphNode_t node, hipEvent_t event)
{
	NODE(event, hipGraphEventRecordNodeSetEvent, node, event);
}

hipError_t do_hipGraphExecEventRecordNodeSetEvent(hipGraphExec_t exec, hipGraphNode_t node,
						  hipEvent_t event)
{
	NODE(event, hipGraphExecEventRecordNodeSetEvent, exec, node, event);
}

/* hipGraphNodeParams: the type first, after 16 bytes the union; for an event
 * record node (type 7) that is the event (6.2 to 7.2, 256 bytes). */
static hipEvent_t event_of(const void *params)
{
	hipEvent_t event = NULL;
	int type;

	if (!params)
		return NULL;
	memcpy(&type, params, sizeof(type));
	if (type == 3) /* a host node; 4 in 5.2, which has no such call */
		ss_observer_add(-1, SS_OBSERVER_HOSTFUNC);
	if (type == 7)
		memcpy(&event, (const char *)params + 16, sizeof(event));
	return event;
}

/* A copy's parameters stand behind 16 bytes more. */
static bool beyond(const void *params)
{
	int type;

	if (!params)
		return false;
	memcpy(&type, params, sizeof(type));
	return type == 1 ? ss_box_exceeds((const void *)((const char *)params + 32), NULL) :
	       type == 2 && ss_memset_exceeds((const void *)((const char *)params + 16));
}

#define ANY_NODE(name, ...) do { \
	if (beyond(params)) \
		return ss_fail(hipErrorInvalidValue); \
	NODE(event_of(params), name, __VA_ARGS__); \
} while (0)

hipError_t do_hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph,
				      const hipGraphNode_t *deps, size_t count,
				      SS_ALLOC_PARAMS *params)
{
	ss_graph_memory_add_node(params);
	return ss_result(REAL_RETRY(-1, hipGraphAddMemAllocNode, node, graph, deps, count, params));
}

#define NODE_ALLOCATES 10 /* hipGraphNodeTypeMemAlloc */

hipError_t do_hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps,
			      size_t count, SS_NODE_PARAMS *params)
{
	if (beyond(params))
		return ss_fail(hipErrorInvalidValue);
	taint(event_of(params), true);
	/* One that allocates may find none. */
	if (params && *(const int *)(const void *)params == NODE_ALLOCATES)
		ss_graph_memory_add_node((const char *)params + 16);
	return ss_result(REAL_RETRY(-1, hipGraphAddNode, node, graph, deps, count, params));
}

hipError_t do_hipGraphNodeSetParams(hipGraphNode_t node, SS_NODE_PARAMS *params)
{
	ANY_NODE(hipGraphNodeSetParams, node, params);
}

hipError_t do_hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
					SS_NODE_PARAMS *params)
{
	ANY_NODE(hipGraphExecNodeSetParams, exec, node, params);
}
