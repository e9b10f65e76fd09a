/* SPDX-License-Identifier: MIT */
/*
 * The runtime loses an update of a copy node in raw HSA memory, so it is refused there (known
 * problem O6). In other memory it works.
 */
#include "test.h"

#define PITCH 64
#define ROWS 4
#define SIZE (PITCH * ROWS)

static char *from, *to, *other;

static hipMemcpy3DParms copy(char *dst, size_t rows)
{
	return (hipMemcpy3DParms){.srcPtr = {from, PITCH, PITCH, rows},
				  .dstPtr = {dst, PITCH, PITCH, rows},
				  .extent = {PITCH, rows, 1},
				  .kind = hipMemcpyDeviceToDevice};
}

static hipGraph_t graph_of(char *dst, hipGraphNode_t *node)
{
	hipMemcpy3DParms p = copy(dst, ROWS);
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphAddMemcpyNode(node, graph, NULL, 0, &p));
	return graph;
}

static void launch(hipGraphExec_t exec)
{
	OK(hipGraphLaunch(exec, NULL));
	OK(hipDeviceSynchronize());
}

static bool is(char *p, int value)
{
	char host[SIZE];

	OK(hipMemcpy(host, p, SIZE, hipMemcpyDeviceToHost));
	for (int i = 0; i < SIZE; i++)
		if (host[i] != value)
			return false;
	return true;
}

int main(void)
{
	bool raw = getenv("SOMASHIM_BACKING");
	hipGraphExecUpdateResult result = hipGraphExecUpdateSuccess;
	hipGraphNode_t node, next, bad = NULL;
	hipMemcpy3DParms p;
	hipGraphExec_t exec;
	hipGraph_t graph, changed;

	CHECK(preloaded());
	OK(hipMalloc((void **)&from, SIZE));
	OK(hipMalloc((void **)&to, SIZE));
	OK(hipMalloc((void **)&other, SIZE));
	OK(hipMemset(from, 1, SIZE));
	OK(hipMemset(to, 0, SIZE));
	OK(hipMemset(other, 0, SIZE));
	graph = graph_of(to, &node);
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	p = copy(other, ROWS + 1);
	GIVES(hipErrorInvalidValue, hipGraphExecMemcpyNodeSetParams(exec, node, &p));
	p = copy(other, ROWS);
	GIVES(raw ? hipErrorGraphExecUpdateFailure : hipSuccess,
	      hipGraphExecMemcpyNodeSetParams(exec, node, &p));
	launch(exec);
	CHECK(is(raw ? to : other, 1) && is(raw ? other : to, 0));
	OK(hipMemset(to, 0, SIZE));
	OK(hipMemset(other, 0, SIZE));
	changed = graph_of(raw ? other : to, &next);
	GIVES(raw ? hipErrorGraphExecUpdateFailure : hipSuccess,
	      hipGraphExecUpdate(exec, changed, &bad, &result));
	CHECK(result == (raw ? hipGraphExecUpdateErrorNotSupported : hipGraphExecUpdateSuccess));
	CHECK(!raw || bad == next);
	launch(exec);
	CHECK(is(to, 1) && is(other, 0));
	OK(hipGraphExecDestroy(exec));
	/* A graph that is made anew does what it says. */
	OK(hipGraphInstantiate(&exec, changed, NULL, NULL, 0));
	launch(exec);
	CHECK(is(raw ? other : to, 1));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
	OK(hipGraphDestroy(changed));
	return 0;
}
