/* SPDX-License-Identifier: MIT */
/* Programs with pointers to blocks whose memory the pools have released. */
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "corpus.h"

#define LARGE ((size_t)512 << 10) /* less than `guard` guards */

static bool is_released(const void *p)
{
	__typeof__(hsa_amd_pointer_info) *ask = (__typeof__(hsa_amd_pointer_info) *)dlsym(
		RTLD_DEFAULT, "hsa_amd_pointer_info");
	hsa_amd_pointer_info_t info = {.size = sizeof(info)};

	return !ask || ask(p, &info, NULL, NULL, NULL) != HSA_STATUS_SUCCESS ||
	       info.type == HSA_EXT_POINTER_TYPE_UNKNOWN;
}

/* `poison` reads the freed block at the first trim, and its memory is released by a later one.
 * Addresses of guarded blocks stay reserved. */
static void *trimmed(void)
{
	hipMemPool_t pool;
	void *p;

	OK(hipMallocAsync(&p, LARGE, a));
	OK(hipFreeAsync(p, a));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 2; i++) {
		OK(hipDeviceSynchronize());
		OK(hipMemPoolTrimTo(pool, 0));
	}
	return p;
}

/* The call may be refused. */
static void try(hipError_t err)
{
	(void)err;
	(void)hipGetLastError();
}

static void launch_fill(void *p, hipStream_t on)
{
	int n = 64;

	OK(hipModuleLaunchKernel(kernel("fill"), 1, 1, 1, 64, 1, 1, 0, on, (void *[]){&p, &n},
				 NULL));
}

/* ---- wrong ones -------------------------------------------------------------- */

static void memset_after_trim(void)
{
	try(hipMemsetAsync(trimmed(), 1, 64, b));
}

static void kernel_after_trim(void)
{
	launch_fill((char *)trimmed() + 4096, a);
}

static void kernel_after_reset(void)
{
	void *p;

	OK(hipMalloc(&p, LARGE));
	OK(hipFree(p));
	OK(hipDeviceReset());
	launch_fill(p, NULL);
}

/* A stream that uses what was released is judged as before. */
static void error_behind_use_of_released(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;
	void *q;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMallocFromPoolAsync(&q, BYTES, pool, a));
	launch_fill(trimmed(), b);
	launch_fill(q, b);
	OK(hipFreeAsync(q, a));
}

/* The runtime never learns of the node. */
static void node_of_freed(void)
{
	hipGraphNode_t node;
	hipGraph_t graph;
	void *p;

	OK(hipMalloc(&p, BYTES));
	OK(hipFree(p));
	(void)trimmed(); /* `poison` holds no block any more */
	OK(hipGraphCreate(&graph, 0));
	try(hipGraphAddMemcpyNode1D(&node, graph, NULL, 0, p, (char *)p + 64, 64,
				    hipMemcpyDeviceToDevice));
	OK(hipGraphDestroy(graph));
}

const struct program wrong_released[] = {
	{"memset-after-trim", memset_after_trim, "use-after-free hipMemsetAsync 2 1"},
	{"kernel-after-trim", kernel_after_trim, "use-after-free hipModuleLaunchKernel 1 1"},
	{"kernel-after-reset", kernel_after_reset, "use-after-free hipModuleLaunchKernel 4 0"},
	{"error-behind-use-of-released", error_behind_use_of_released,
	 "use-after-free hipModuleLaunchKernel 2 1;free-before-use hipModuleLaunchKernel 2 1"},
	{"node-of-freed", node_of_freed, "use-after-free hipGraphAddMemcpyNode1D 0 0|"},
	{NULL, NULL, NULL},
};

/* ---- right ones -------------------------------------------------------------- */

/* The host's memory comes to lie where a block was. */
static void host_has_the_addresses(void)
{
	void *p, *q, *host;

	OK(hipMalloc(&q, BYTES)); /* later it might get the addresses */
	p = trimmed();
	if (!is_released(p))
		exit(77); /* the pool is free to keep it a while */
	host = mmap(p, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0);
	if (host != p)
		exit(3);
	memset(host, 1, BYTES);
	OK(hipMemcpyAsync(q, host, BYTES, hipMemcpyHostToDevice, b));
	OK(hipDeviceSynchronize());
	OK(hipFree(q));
}

static void runtime_has_the_addresses(void)
{
	void *p = trimmed(), *list[8];

	(void)p;
	for (int i = 0; i < 8; i++)
		OK(hipMallocManaged(&list[i], LARGE, hipMemAttachGlobal));
	for (int i = 0; i < 8; i++) {
		OK(hipMemsetAsync(list[i], 1, BYTES, b));
		launch_fill(list[i], b);
	}
	OK(hipDeviceSynchronize());
	for (int i = 0; i < 8; i++)
		OK(hipFree(list[i]));
}

/* The graph is launched with a block that lives. */
static void node_set_before_reuse(void)
{
	hipMemsetParams params = {.elementSize = 1, .width = 64, .height = 1, .pitch = 64};
	hipGraphNode_t node;
	hipGraphExec_t exec;
	hipGraph_t graph;

	params.dst = block(a);
	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphAddMemsetNode(&node, graph, NULL, 0, &params));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipFreeAsync(params.dst, a));
	OK(hipGraphExecMemsetNodeSetParams(exec, node, &params)); /* as the runtime's pools do */
	params.dst = block(a);
	OK(hipGraphExecMemsetNodeSetParams(exec, node, &params));
	OK(hipGraphLaunch(exec, a));
	OK(hipFreeAsync(params.dst, a));
	OK(hipStreamSynchronize(a));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

const struct program right_released[] = {
#define P(name) {"right-" #name, name, NULL}
	{"right-host_has_the_addresses", host_has_the_addresses, "|-"},
	P(runtime_has_the_addresses),
	P(node_set_before_reuse),
	{NULL, NULL, NULL},
};
