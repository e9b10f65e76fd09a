/* SPDX-License-Identifier: MIT */
/*
 * Memory that the runtime gives itself: arrays, code, graphs, managed and fine-grained
 * memory, its own pools. Natively what a program has freed is there for them; here it may
 * lie idle in a pool of ours, and hipMemGetInfo counts it as free. So a call that finds no
 * memory is made again once that went back. No lock.
 */
#include "driver/rocm.h"
#include "shim/shim.h"

int ss_again_before(void)
{
	return ss_rocm_peek();
}

bool ss_again(int dev, int before, uint64_t *end)
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

int ss_device_of(hipStream_t stream)
{
	struct ss_timeline *tl = ss_stream_quiet(stream);

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
	ss_seen(-1, SS_SEEN_MANAGED);
	return ss_said(REAL_AGAIN(-1, hipMallocManaged, ptr, size, flags));
}
