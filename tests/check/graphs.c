/* SPDX-License-Identifier: MIT */
/* Programs that launch graphs, whose nodes use blocks when the graph runs. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "corpus.h"

static hipGraph_t empty(void)
{
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	return graph;
}

static hipGraphExec_t made(hipGraph_t graph)
{
	hipGraphExec_t exec;

	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	return exec;
}

static hipGraph_t captured(void (*enqueue)(void *p, hipStream_t on), void *p)
{
	hipGraph_t graph;

	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	enqueue(p, c);
	OK(hipStreamEndCapture(c, &graph));
	return graph;
}

static void halves(void *p, hipStream_t on)
{
	OK(hipMemcpyAsync(p, (char *)p + BYTES / 2, BYTES / 2, hipMemcpyDeviceToDevice, on));
}

static void launch_fill(void *p, hipStream_t on)
{
	int n = 64;

	OK(hipModuleLaunchKernel(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, on, (void *[]){&p, &n},
				 NULL));
}

static hipKernelNodeParams fill_params(void **args)
{
	return (hipKernelNodeParams){.func = kernel("fill"),
				     .gridDim = {1, 1, 1},
				     .blockDim = {64, 1, 1},
				     .kernelParams = args};
}

static hipGraphNode_t add_fill(hipGraph_t graph, void *p)
{
	int n = 64;
	void *args[] = {&p, &n};
	hipKernelNodeParams params = fill_params(args);
	hipGraphNode_t node;

	OK(hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
	return node;
}

static hipGraphNode_t add_copy(hipGraph_t graph, void *to, void *from)
{
	hipGraphNode_t node;

	OK(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, to, from, 64, hipMemcpyDeviceToDevice));
	return node;
}

static void finish(hipGraph_t graph, hipGraphExec_t exec)
{
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

static void launch_after_free(hipGraph_t graph, void *p)
{
	hipGraphExec_t exec = made(graph);

	OK(hipFreeAsync(p, a));
	OK(hipGraphLaunch(exec, a));
	finish(graph, exec);
}

/* ---- wrong ones ------------------------------------------------------------- */

static void memset_after_free(void)
{
	void *p = block(a);

	launch_after_free(captured(fill, p), p);
}

static void copy_after_free(void)
{
	void *p = block(a);

	launch_after_free(captured(halves, p), p);
}

static void kernel_after_free(void)
{
	void *p = block(a);

	launch_after_free(captured(launch_fill, p), p);
}

static void added_kernel_after_free(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);

	add_fill(graph, p);
	launch_after_free(graph, p);
}

static void added_copy_after_free(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);

	add_copy(graph, p, (char *)p + 1024);
	launch_after_free(graph, p);
}

static void added_box_after_free(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);
	hipMemcpy3DParms box = {.srcPtr = {p, 64, 64, 8},
				.dstPtr = {(char *)p + 2048, 64, 64, 8},
				.extent = {64, 8, 1},
				.kind = hipMemcpyDeviceToDevice};
	hipGraphNode_t node;

	OK(hipGraphAddMemcpyNode(&node, graph, NULL, 0, &box));
	launch_after_free(graph, p);
}

static void added_memset_after_free(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);
	hipMemsetParams params = {
		.dst = p, .elementSize = 1, .width = 64, .height = 1, .pitch = 64};
	hipGraphNode_t node;

	OK(hipGraphAddMemsetNode(&node, graph, NULL, 0, &params));
	launch_after_free(graph, p);
}

static void child_after_free(void)
{
	hipGraph_t graph = empty(), child;
	void *p = block(a);
	hipGraphNode_t node;

	child = captured(halves, p);
	OK(hipGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(hipGraphDestroy(child));
	launch_after_free(graph, p);
}

static void clone_after_free(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(halves, p), clone;

	OK(hipGraphClone(&clone, graph));
	OK(hipGraphDestroy(graph));
	launch_after_free(clone, p);
}

static void launch_before_allocation(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(halves, p);
	hipGraphExec_t exec = made(graph);

	OK(hipGraphLaunch(exec, b));
	order(b, a);
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void free_under_launch(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(launch_fill, p);
	hipGraphExec_t exec = made(graph);

	order(a, b);
	OK(hipGraphLaunch(exec, b));
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void second_replay(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(halves, p);
	hipGraphExec_t exec = made(graph);

	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	OK(hipGraphLaunch(exec, a));
	finish(graph, exec);
}

static void updated_kernel(void)
{
	hipGraph_t graph = empty();
	void *p = block(a), *q = block(a);
	hipGraphNode_t node = add_fill(graph, p);
	hipGraphExec_t exec = made(graph);
	int n = 64;
	void *args[] = {&q, &n};
	hipKernelNodeParams params = fill_params(args);

	OK(hipFreeAsync(q, a));
	OK(hipGraphExecKernelNodeSetParams(exec, node, &params));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void updated_copy(void)
{
	hipGraph_t graph = empty();
	void *p = block(a), *q = block(a);
	hipGraphNode_t node = add_copy(graph, p, (char *)p + 64);
	hipGraphExec_t exec = made(graph);

	OK(hipGraphExecMemcpyNodeSetParams1D(exec, node, p, q, 64, hipMemcpyDeviceToDevice));
	OK(hipFreeAsync(q, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void updated_graph(void)
{
	void *p = block(a), *q = block(a);
	hipGraph_t graph = captured(halves, p), other = captured(halves, q);
	hipGraphExec_t exec = made(graph);
	hipGraphExecUpdateResult result;
	hipGraphNode_t bad;

	OK(hipGraphExecUpdate(exec, other, &bad, &result));
	OK(hipFreeAsync(q, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
	OK(hipGraphDestroy(other));
}

static void captured_past_end(void)
{
	void *p = block(a);
	hipGraph_t graph;

	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	if (hipMemsetAsync(p, 1, BYTES + 1, c) == hipSuccess)
		exit(2);
	OK(hipStreamEndCapture(c, &graph));
	OK(hipGraphDestroy(graph));
	OK(hipFreeAsync(p, a));
}

static void copy_node_past_end(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);
	hipGraphNode_t node;

	if (hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, (char *)p + BYTES - 1, p, 2,
				    hipMemcpyDeviceToDevice) == hipSuccess)
		exit(2);
	OK(hipGraphDestroy(graph));
	OK(hipFreeAsync(p, a));
}

static void memset_node_past_end(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);
	hipMemsetParams params = {.dst = (char *)p + BYTES - 4,
				  .elementSize = 4,
				  .width = 2,
				  .height = 1,
				  .pitch = 8};
	hipGraphNode_t node;

	if (hipGraphAddMemsetNode(&node, graph, NULL, 0, &params) == hipSuccess)
		exit(2);
	OK(hipGraphDestroy(graph));
	OK(hipFreeAsync(p, a));
}

#define AFTER_FREE "use-after-free hipGraphLaunch 1 1"
const struct program wrong_graphs[] = {
	{"graph-memset-after-free", memset_after_free, AFTER_FREE},
	{"graph-copy-after-free", copy_after_free, AFTER_FREE},
	{"graph-kernel-after-free", kernel_after_free, AFTER_FREE},
	{"graph-added-kernel-after-free", added_kernel_after_free, AFTER_FREE},
	{"graph-added-copy-after-free", added_copy_after_free, AFTER_FREE},
	{"graph-added-box-after-free", added_box_after_free, AFTER_FREE},
	{"graph-added-memset-after-free", added_memset_after_free, AFTER_FREE},
	{"graph-child-after-free", child_after_free, AFTER_FREE},
	{"graph-clone-after-free", clone_after_free, AFTER_FREE},
	{"graph-before-allocation", launch_before_allocation,
	 "use-before-alloc hipGraphLaunch 2 1"},
	{"graph-free-under-launch", free_under_launch, "free-before-use hipGraphLaunch 2 1"},
	{"graph-second-replay", second_replay, AFTER_FREE},
	{"graph-updated-kernel", updated_kernel, AFTER_FREE},
	{"graph-updated-copy", updated_copy, AFTER_FREE},
	{"graph-updated-graph", updated_graph, AFTER_FREE},
	{"graph-captured-past-end", captured_past_end, "out-of-bounds hipMemsetAsync 0 1"},
	{"graph-copy-node-past-end", copy_node_past_end,
	 "out-of-bounds hipGraphAddMemcpyNode1D 0 1"},
	{"graph-memset-node-past-end", memset_node_past_end,
	 "out-of-bounds hipGraphAddMemsetNode 0 1"},
	{NULL, NULL, NULL},
};

/* ---- right ones --------------------------------------------------------------- */

static void replays_in_order(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(halves, p);
	hipGraphExec_t exec = made(graph);

	order(a, b);
	OK(hipGraphLaunch(exec, b));
	order(b, a);
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void never_launched(void)
{
	void *p = block(a);
	hipGraph_t graph = captured(halves, p);
	hipGraphExec_t exec = made(graph);

	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

static void updated_away(void)
{
	hipGraph_t graph = empty();
	void *p = block(a), *q = block(a);
	hipGraphNode_t node = add_fill(graph, p), copy = add_copy(graph, p, (char *)p + 64);
	hipGraphExec_t exec = made(graph);
	int n = 64;
	void *args[] = {&q, &n};
	hipKernelNodeParams params = fill_params(args);

	OK(hipGraphExecKernelNodeSetParams(exec, node, &params));
	OK(hipGraphExecMemcpyNodeSetParams1D(exec, copy, q, (char *)q + 64, 64,
					     hipMemcpyDeviceToDevice));
	OK(hipFreeAsync(p, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(q, a));
	finish(graph, exec);
}

static void changed_before_instantiation(void)
{
	hipGraph_t graph = empty();
	void *p = block(a), *q = block(a);
	hipGraphNode_t copy = add_copy(graph, p, (char *)p + 64);
	hipGraphExec_t exec;

	OK(hipGraphMemcpyNodeSetParams1D(copy, q, (char *)q + 64, 64, hipMemcpyDeviceToDevice));
	exec = made(graph);
	OK(hipFreeAsync(p, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(q, a));
	finish(graph, exec);
}

static void disabled_node(void)
{
	hipError_t (*enable)(hipGraphExec_t, hipGraphNode_t, unsigned int) = (hipError_t(*)(
		hipGraphExec_t, hipGraphNode_t, unsigned int))dlsym(RTLD_DEFAULT,
								    "hipGraphNodeSetEnabled");
	hipGraph_t graph = empty();
	void *p = block(a), *q = block(a);
	hipGraphNode_t node = add_copy(graph, p, (char *)p + 64);
	hipGraphExec_t exec;

	add_copy(graph, q, (char *)q + 64);
	exec = made(graph);
	OK(enable(exec, node, 0));
	OK(hipFreeAsync(p, a));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(q, a));
	finish(graph, exec);
}

static void new_graph_at_old_handle(void)
{
	for (int i = 0; i < 20; i++) {
		void *p = block(a);
		hipGraph_t graph = i % 2 ? captured(halves, p) : empty();
		hipGraphExec_t exec;

		if (i % 2 == 0)
			add_copy(graph, p, (char *)p + 64);
		exec = made(graph);
		OK(hipGraphLaunch(exec, a));
		OK(hipFreeAsync(p, a));
		finish(graph, exec);
	}
}

static void tell(void *flag)
{
	atomic_store((atomic_int *)flag, 1);
}

/* The host learns from the host function that the copy before it has ended. */
static void host_node_tells(void)
{
	hipGraph_t graph = empty();
	void *p = block(a);
	hipGraphNode_t copy = add_copy(graph, p, (char *)p + 64), host;
	static atomic_int flag;
	hipHostNodeParams params = {tell, &flag};
	hipGraphExec_t exec;

	OK(hipGraphAddHostNode(&host, graph, &copy, 1, &params));
	exec = made(graph);
	order(a, b);
	OK(hipGraphLaunch(exec, b));
	while (!atomic_load(&flag))
		;
	OK(hipFreeAsync(p, a));
	finish(graph, exec);
}

/* Memory that the graph allocates is the runtime's; a kernel with a pointer to it does not talk. */
static void graph_allocates(void)
{
	hipGraph_t graph;
	hipGraphExec_t exec;
	void *p;

	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	OK(hipMallocAsync(&p, BYTES, c));
	launch_fill(p, c);
	OK(hipFreeAsync(p, c));
	OK(hipStreamEndCapture(c, &graph));
	exec = made(graph);
	OK(hipGraphLaunch(exec, a));
	OK(hipGraphLaunch(exec, a));
	finish(graph, exec);
}

const struct program right_graphs[] = {
#define P(name) {"right-graph-" #name, name, NULL}
	P(replays_in_order), P(never_launched),
	P(updated_away),     P(changed_before_instantiation),
	P(disabled_node),    P(new_graph_at_old_handle),
	P(host_node_tells),  P(graph_allocates),
	{NULL, NULL, NULL},
};
