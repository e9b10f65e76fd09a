/* SPDX-License-Identifier: MIT */
/*
 * The calls that the real library makes to its own exports. They go through the PLT, so a
 * preloaded library that replaces the export is called from inside the runtime. The file with
 * the exports sets the pointers before any call can come. Two such calls of the real library
 * are left out: hipGetDevice, which nobody replaces, and hipModuleLaunchKernel, to which only
 * hipLaunchByPtr leads.
 */
#ifndef SIM_HIP_REENTRY_H
#define SIM_HIP_REENTRY_H

#include <hip/hip_runtime_api.h>

struct reentry {
	hipError_t (*mem_get_info)(size_t *avail, size_t *total);
	hipError_t (*host_malloc)(void **ptr, size_t size, unsigned flags);
	hipError_t (*malloc_pitch)(void **ptr, size_t *pitch, size_t width, size_t height);
	hipError_t (*memcpy_async)(void *dst, const void *src, size_t n, hipMemcpyKind kind,
				   hipStream_t h);
};
extern struct reentry reentry;

/* Calls hipMemGetInfo, as the real library does for its log or to decide something. */
void reenter_mem_get_info(void);

#endif
