/* SPDX-License-Identifier: MIT */
/* Streams that tell the host something, or wait for the host, beside streams that do not. */
#include <stdatomic.h>

#include "corpus.h"

static void *pinned(void)
{
	void *host;

	OK(hipHostMalloc(&host, BYTES, 0));
	return host;
}

static void launch_with(void *host, hipStream_t on)
{
	int n = 64;

	OK(hipModuleLaunchKernel(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, on, (void *[]){&host, &n},
				 NULL));
}

static void end_on(void *p, hipStream_t used, hipStream_t freed)
{
	order(used, freed);
	OK(hipFreeAsync(p, freed));
}

static void nothing(hipStream_t s, hipError_t err, void *unused)
{
	(void)s;
	(void)err;
	(void)unused;
}

static void wait_for_host(hipStream_t s, hipError_t err, void *word)
{
	(void)s;
	(void)err;
	while (!atomic_load((atomic_uint *)word))
		;
}

/* ---- wrong ones -------------------------------------------------------------- */

/* The kernel may tell the host of c, but knows nothing of a. */
static void kernel_tells_of_another_stream(void)
{
	void *p = block(a);

	launch_with(pinned(), c);
	fill(p, b);
	end_on(p, b, a);
}

static void kernel_with_managed_memory(void)
{
	void *p = block(a), *m;

	OK(hipMallocManaged(&m, BYTES, hipMemAttachGlobal));
	order(a, b);
	fill(p, b);
	launch_with(m, c);
	OK(hipStreamSynchronize(c));
	OK(hipFreeAsync(p, a));
	OK(hipDeviceSynchronize());
	OK(hipFree(m));
}

static void host_functions_elsewhere(void)
{
	void *p = block(a);

	for (int i = 0; i < 2; i++)
		OK(hipStreamAddCallback(c, nothing, NULL, 0));
	fill(p, b);
	end_on(p, b, a);
}

static void event_behind_a_kernel_that_tells(void)
{
	void *p = block(a);
	hipEvent_t e;

	launch_with(pinned(), c);
	e = mark(c);
	OK(hipEventSynchronize(e));
	fill(p, b);
	end_on(p, b, a);
}

static void graph_tells_of_another_stream(void)
{
	void *p = block(a);
	hipGraphExec_t exec;
	hipGraph_t graph;

	OK(hipStreamBeginCapture(c, hipStreamCaptureModeRelaxed));
	launch_with(pinned(), c);
	OK(hipStreamEndCapture(c, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, c));
	fill(p, b);
	end_on(p, b, a);
	OK(hipDeviceSynchronize());
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

const struct program wrong_told[] = {
	{"kernel-tells-of-another-stream", kernel_tells_of_another_stream,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"kernel-with-managed-memory", kernel_with_managed_memory,
	 "free-before-use hipMemsetAsync 2 1"},
	{"host-functions-elsewhere", host_functions_elsewhere,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"event-behind-a-kernel-that-tells", event_behind_a_kernel_that_tells,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"graph-tells-of-another-stream", graph_tells_of_another_stream,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{NULL, NULL, NULL},
};

/* ---- right ones -------------------------------------------------------------- */

/* The host function ends once the host has seen the allocation. */
static void event_behind_a_host_function(void)
{
	static atomic_uint word;
	void *p = block(a);

	OK(hipStreamAddCallback(c, wait_for_host, &word, 0));
	order(c, b);
	fill(p, b);
	OK(hipStreamSynchronize(a));
	atomic_store(&word, 1);
	end_on(p, b, a);
}

/* The kernel may end once the host has seen the allocation. */
static void event_behind_a_kernel_that_waits(void)
{
	void *p = block(a);

	launch_with(pinned(), c);
	order(c, b);
	fill(p, b);
	OK(hipStreamSynchronize(a));
	end_on(p, b, a);
}

/* a writes the value for which c waits, and c tells the host. */
static void value_between_device_streams(void)
{
	void *p, *word;

	OK(hipMalloc(&word, BYTES));
	OK(hipMemset(word, 0, BYTES));
	OK(hipDeviceSynchronize());
	p = block(a);
	OK(hipMemsetAsync(word, 1, 4, a)); /* tells the host nothing */
	OK(hipStreamWaitValue32(c, word, 0x01010101, hipStreamWaitValueEq, ~0u));
	OK(hipStreamAddCallback(c, nothing, NULL, 0));
	launch_with(pinned(), c);
	fill(p, b); /* once the host has heard of it */
	OK(hipStreamSynchronize(b));
	OK(hipFreeAsync(p, a));
	OK(hipFree(word));
}

const struct program right_told[] = {
#define P(name) {"right-" #name, name, NULL}
	P(event_behind_a_host_function),
	P(event_behind_a_kernel_that_waits),
	P(value_between_device_streams),
	{NULL, NULL, NULL},
};
