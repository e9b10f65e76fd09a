/* SPDX-License-Identifier: MIT */
/*
 * Memory that the runtime gives itself: arrays, code, graphs, managed and fine-grained
 * memory, its own pools. Natively what a program has freed is there for them; here it may
 * lie idle in a pool of ours, and hipMemGetInfo counts it as free. So a call that finds no
 * memory is made again once that went back. No lock.
 */
#include "driver/rocm.h"
#include "shim/shim.h"

int ss_retry_before(void)
{
	return ss_rocm_peek();
}

bool ss_retry(int dev, int before, uint64_t *end)
{
	hipError_t err;

	if (ss_exiting())
		return false;
	ss_rocm_settle(before, hipErrorOutOfMemory);
	if (dev < 0)
		dev = ss_current_device(&err);
	/* Beside a capture nothing may wait, nor touch a null stream. */
	if (dev >= 0 && ss_give_back(ss_core, dev, !ss_capture_live(), end))
		return true;
	(void)ss_fail(hipErrorOutOfMemory);
	return false;
}

/* ---- graphs that allocate ------------------------------------------------ */

/* Up to 7.2 nobody is told when a graph finds no memory for its nodes: what uses it fails, or
 * crashes. So before a graph is made, uploaded or launched there has to be room for the
 * largest that was made so far on its device, as there is natively. */
static struct {
	_Atomic uint64_t open;    /* bytes of the nodes since the last look, */
	_Atomic uint64_t largest; /* and the most that one look found */
} graphs[SS_MAX_DEVICES];
static atomic_bool any_graph;

void ss_graph_memory_add(int dev, uint64_t bytes)
{
	hipError_t err;

	if (dev < 0)
		dev = ss_current_device(&err);
	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return;
	atomic_fetch_add(&graphs[dev].open, bytes);
	atomic_store(&any_graph, true);
}

/* hipMemAllocNodeParams: where, and how much. 5.2's header has none. */
void ss_graph_memory_add_node(const void *params)
{
	const struct { hipMemPoolProps props; const void *access; size_t count, bytes; } *p = params;

	if (p)
		ss_graph_memory_add(p->props.location.type == hipMemLocationTypeDevice ?
			       p->props.location.id : -1, p->bytes);
}

void ss_graph_memory_reserve(int dev)
{
	uint64_t open, largest;
	hipError_t err;

	if (likely(!atomic_load_explicit(&any_graph, memory_order_relaxed)) || ss_exiting())
		return;
	if (dev < 0)
		dev = ss_current_device(&err);
	if (dev < 0 || dev >= SS_MAX_DEVICES)
		return;
	open = atomic_exchange(&graphs[dev].open, 0);
	largest = atomic_load(&graphs[dev].largest);
	while (open > largest && !atomic_compare_exchange_weak(&graphs[dev].largest, &largest, open))
		;
	largest = open > largest ? open : largest;
	if (largest)
		ss_give_room(ss_core, dev, largest, !ss_capture_live());
}

/* Nor is anybody told that there is no room for the heap of kernels. */
hipError_t do_hipDeviceSetLimit(enum hipLimit_t which, size_t size)
{
	hipError_t err = REAL(hipDeviceSetLimit, which, size), none;

	if (err == hipSuccess && which == hipLimitMallocHeapSize)
		ss_give_room(ss_core, ss_current_device(&none), size, !ss_capture_live());
	return ss_result(err);
}

/* ---- where --------------------------------------------------------------- */

int ss_device_of(hipStream_t stream)
{
	struct ss_timeline *tl = ss_stream_or_null(stream);

	return tl ? ss_timeline_device(tl) : -1;
}

/* As it is laid out since 5.3; 5.2's header, which this may be compiled with, has another
 * order, and no such memory. */
int ss_device_of_prop(const void *prop)
{
	const struct { int type, handle, location, id; } *p = prop;

	return p && p->location == hipMemLocationTypeDevice && p->id < ss_device_count() ? p->id : -1;
}

hipError_t do_hipMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	ss_observer_add(-1, SS_OBSERVER_MANAGED);
	return ss_result(REAL_RETRY(-1, hipMallocManaged, ptr, size, flags));
}
