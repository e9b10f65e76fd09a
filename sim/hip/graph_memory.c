/* SPDX-License-Identifier: MIT */
/* Memory of graphs, and the calls that report it. All of it is atomic. */
#include <stdatomic.h>

#include "device/address_map.h"
#include "device/command.h"
#include "device/macros.h"
#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/graph_memory.h"
#include "hip/thread_state.h"

static struct {
	_Atomic uint64_t used, used_high, reserved, reserved_high; /* bytes */
} graph_mem[SIM_MAX_DEVICES];

static void raise_to(_Atomic uint64_t *high, uint64_t v)
{
	uint64_t old = atomic_load(high);

	while (old < v && !atomic_compare_exchange_weak(high, &old, v))
		;
}

static void set_owner(struct sim_alloc *a, void *arg)
{
	a->owner = arg;
	a->ownertype = OWNER_GRAPH;
}

/* The last node or launch that refers to the memory is gone. */
static void destroy(void *p)
{
	struct graph_alloc *ga = p;

	if (!ga->ptr)
		return;
	atomic_fetch_sub(&graph_mem[ga->device].reserved, ga->size);
	atomic_fetch_sub(&graph_mem[ga->device].used, ga->size);
	hip_device_free(ga->ptr);
}

hipError_t graph_alloc_new(size_t size, int device, struct graph_alloc **out)
{
	struct graph_alloc *ga = sim_blob_new(sizeof *ga, destroy);
	uint64_t n;

	ga->ptr = hip_device_alloc(device, size, 0);
	if (!ga->ptr) {
		sim_blob_unref(ga);
		return hipErrorOutOfMemory;
	}
	ga->size = size;
	ga->device = device;
	sim_update(ga->ptr, set_owner, ga);
	n = atomic_fetch_add(&graph_mem[device].reserved, size) + size;
	raise_to(&graph_mem[device].reserved_high, n);
	n = atomic_fetch_add(&graph_mem[device].used, size) + size;
	raise_to(&graph_mem[device].used_high, n);
	*out = ga;
	return hipSuccess;
}

static void mark_live(void *arg)
{
	atomic_store(&((struct graph_alloc *)arg)->live, true);
}

static void mark_free(void *arg)
{
	atomic_store(&((struct graph_alloc *)arg)->live, false);
}

struct sim_command *graph_alloc_command(struct graph_alloc *ga)
{
	struct sim_command *c = sim_call_command(mark_live, ga);

	c->owned = ga;
	return c;
}

struct sim_command *graph_free_command(struct graph_alloc *ga)
{
	struct sim_command *c = sim_call_command(mark_free, ga);

	c->owned = sim_blob_ref(ga);
	return c;
}

hipError_t graph_memory_free(const struct sim_alloc *a)
{
	struct graph_alloc *ga = a->owner;

	return atomic_exchange(&ga->live, false) ? hipSuccess : hipErrorInvalidValue;
}
