/* SPDX-License-Identifier: MIT */
/*
 * Graphs that allocate. Up to 7.2 the runtime does not report that a graph finds no memory for its
 * nodes: the commands that use the memory fail or crash. So before a graph is instantiated,
 * uploaded or launched the device must have as much free memory as without us, when the runtime has
 * released all freed memory. The nodes of each graph are not tracked; the largest number of bytes
 * that were added between two checks stands for all graphs. No lock.
 */
#include "driver/rocm/rocm.h"
#include "shim/alloc/graph_memory.h"
#include "shim/process/current_device.h"
#include "shim/process/service.h"

static struct {
	_Atomic uint64_t open;    /* bytes of the nodes that were added since the last check */
	_Atomic uint64_t largest; /* the most bytes that one check found */
} graphs[SS_MAX_DEVICES];
static atomic_bool any_graph;

void ss_graph_memory_add(int dev, uint64_t bytes)
{
	if (dev < 0)
		dev = ss_current_device(NULL);
	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return;
	atomic_fetch_add(&graphs[dev].open, bytes);
	atomic_store(&any_graph, true);
}

/* The layout of hipMemAllocNodeParams, which the header of 5.2 lacks. */
struct node {
	hipMemPoolProps props;
	const void *access;
	size_t count, bytes;
	void *ptr;
};

struct ss_graph_node ss_graph_memory_node(const void *params)
{
	const struct node *n = params;

	if (!n)
		return (struct ss_graph_node){.dev = -1};
	return (struct ss_graph_node){
		.dev = n->props.location.type == hipMemLocationTypeDevice ? n->props.location.id :
									    -1,
		.bytes = n->bytes,
		.ptr = n->ptr,
	};
}

void ss_graph_memory_add_node(const void *params)
{
	struct ss_graph_node n = ss_graph_memory_node(params);

	if (params)
		ss_graph_memory_add(n.dev, n.bytes);
}

void ss_graph_memory_reserve(int dev)
{
	uint64_t open, largest;

	if (likely(!atomic_load_explicit(&any_graph, memory_order_relaxed)) || ss_exiting())
		return;
	if (dev < 0)
		dev = ss_current_device(NULL);
	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return;
	open = atomic_exchange(&graphs[dev].open, 0);
	largest = atomic_load(&graphs[dev].largest);
	while (open > largest &&
	       !atomic_compare_exchange_weak(&graphs[dev].largest, &largest, open))
		;
	largest = open > largest ? open : largest;
	if (largest)
		ss_make_room(ss_core, dev, largest, !ss_capture_live());
}
