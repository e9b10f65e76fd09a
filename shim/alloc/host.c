/* SPDX-License-Identifier: MIT */
/*
 * Calls for host memory that are given a block of ours. The runtime looks the address up
 * and frees, or forgets, whatever it finds there (seen with 7.2.4): that is the segment,
 * with every other block in it.
 */
#include "shim/shim.h"

static bool is_ours(void *ptr)
{
	struct ss_block_info info;
	unsigned number;
	int dev;

	return ptr && (ss_where(ss_core, ptr, &dev) != SS_ERR_FOREIGN ||
		       ss_import_find(ptr, &info, &number));
}

/* The runtime frees device memory here as hipFree does. */
hipError_t do_hipHostFree(void *ptr)
{
	return is_ours(ptr) ? do_hipFree(ptr) : ss_result(REAL(hipHostFree, ptr));
}

hipError_t do_hipFreeHost(void *ptr)
{
	return is_ours(ptr) ? do_hipFree(ptr) : ss_result(REAL(hipFreeHost, ptr));
}

/* Part of a segment may have been registered: then the runtime knows a range that starts
 * there. */
hipError_t do_hipHostUnregister(void *ptr)
{
	hipDeviceptr_t base = NULL;
	struct ss_block_info info;
	size_t size = 0;

	if (ptr && ss_lookup(ss_core, ptr, &info) &&
	    (info.backing != SS_BACKING_HIP ||
	     REAL(hipMemGetAddressRange, &base, &size, (hipDeviceptr_t)ptr) != hipSuccess ||
	     base != (hipDeviceptr_t)ptr || base == (hipDeviceptr_t)info.segment))
		return ss_fail(hipErrorHostMemoryNotRegistered);
	return ss_result(REAL(hipHostUnregister, ptr));
}
