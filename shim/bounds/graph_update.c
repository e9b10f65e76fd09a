/* SPDX-License-Identifier: MIT */
/*
 * Updates of executable graphs that the runtime would lose. The runtime accepts new parameters for
 * a copy node (hipMemcpy3DParms, device to device) in raw HSA memory, and keeps copying as before
 * (7.2.4, known problem O6). So the shim refuses such updates, and the program instantiates the
 * graph anew. No lock.
 */
#include <stdlib.h>

#include "driver/rocm/resolve.h"
#include "shim/alloc/graph_memory.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/retry.h"
#include "shim/bounds/check.h"
#include "shim/handlers.h"
#include "shim/process/graph_nodes.h"
#include "shim/process/real.h"

static bool is_raw(const void *ptr)
{
	struct ss_block_info info;

	return ss_lookup(ss_core, ptr, &info) && info.backing == SS_BACKING_HSA;
}

bool ss_update_is_lost(const hipMemcpy3DParms *p)
{
	return p && p->kind == hipMemcpyDeviceToDevice &&
	       (is_raw(p->srcPtr.ptr) || is_raw(p->dstPtr.ptr));
}

hipError_t do_hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
					      hipMemcpy3DParms *p)
{
	hipError_t err;

	if (ss_box_exceeds(p, NULL))
		return ss_fail(hipErrorInvalidValue);
	if (ss_update_is_lost(p))
		return ss_fail(hipErrorGraphExecUpdateFailure);
	err = REAL(hipGraphExecMemcpyNodeSetParams, exec, node, p);
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_exec_node(exec, node);
	return ss_result(err);
}

/* Such a node looks like a node of hipMemcpyAsync, whose updates are not lost. */
static bool may_lose(hipGraphNode_t node)
{
	hipMemcpy3DParms p = {0};

	return ss_graph_node_type(node) == SS_NODE_COPY &&
	       REAL(hipGraphMemcpyNodeGetParams, node, &p) == hipSuccess && ss_update_is_lost(&p);
}

/* The first node of the graph whose update might be lost; NULL: none. */
static hipGraphNode_t find_lost(hipGraph_t graph)
{
	hipGraphNode_t *nodes, found = NULL;
	size_t count;
	bool good;

	nodes = ss_graph_nodes(graph, &count, &good);
	for (size_t i = 0; nodes && i < count && !found; i++)
		if (may_lose(nodes[i]))
			found = nodes[i];
	free(nodes);
	return found;
}

hipError_t do_hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *node,
				 hipGraphExecUpdateResult *result)
{
	hipGraphNode_t lost = NULL;
	hipError_t err;

	if (ss_options.backing == SS_BACKING_HSA && ss_runtime()->major >= 6 && exec && graph &&
	    node && result)
		lost = find_lost(graph);
	if (!lost) {
		/* Some releases crash in this call if device memory is exhausted
		 * (rocm-systems#10021). */
		ss_graph_memory_reserve(-1);
		err = REAL_RETRY(-1, hipGraphExecUpdate, exec, graph, node, result);
		if (unlikely(ss_checking) && err == hipSuccess)
			ss_check_exec_made(exec, graph);
		return ss_result(err);
	}
	*node = lost;
	*result = hipGraphExecUpdateErrorNotSupported;
	return ss_fail(hipErrorGraphExecUpdateFailure);
}
