/* SPDX-License-Identifier: MIT */
/*
 * Memory that the runtime allocates for itself or for the program: arrays, code, graphs, managed
 * and fine-grained memory, its own pools. Without us the runtime would find the memory that the
 * program has freed. With us that memory may lie idle in a pool of ours, although hipMemGetInfo
 * counts it as free. So a call that finds no memory is repeated after the pools released idle
 * memory. No lock.
 */
#include "driver/rocm/rocm.h"
#include "shim/alloc/last_error.h"
#include "shim/alloc/retry.h"
#include "shim/process/current_device.h"
#include "shim/process/service.h"

int ss_retry_before(void)
{
	return ss_rocm_error_earlier();
}

bool ss_retry(int dev, int before, uint64_t *end)
{
	if (ss_exiting())
		return false;
	ss_rocm_error_restore(before, hipErrorOutOfMemory);
	if (dev < 0)
		dev = ss_current_device(NULL);
	/* While a stream captures, no call of ours may wait or touch a null stream. */
	if (dev >= 0 && ss_release_idle(ss_core, dev, !ss_capture_live(), end))
		return true;
	(void)ss_fail(hipErrorOutOfMemory);
	return false;
}

void ss_retry_taken(void)
{
	if (!ss_exiting())
		ss_device_room_changed(ss_core);
}
