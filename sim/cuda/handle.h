/* SPDX-License-Identifier: MIT */
/*
 * The handles that are live. CUDA's driver crashes on an invalid handle, and HIP refuses it, so
 * each handle is looked up before it goes to the driver. All functions are thread-safe; a look-up
 * takes no lock.
 */
#ifndef SIM_CUDA_HANDLE_H
#define SIM_CUDA_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

#include "hip/version.h"

enum handle_kind { HANDLE_STREAM, HANDLE_EVENT, HANDLE_POOL, HANDLE_KINDS };

/* Adds a handle of a device. Adding it again changes nothing. */
void handle_add(enum handle_kind kind, void *handle, int device);

/* False: it was not live. */
bool handle_remove(enum handle_kind kind, void *handle);

/* The device of a live handle, or -1. */
int handle_device(enum handle_kind kind, const void *handle);

/* After hipDeviceReset: no handle of the device is live. */
void handles_reset(int device);

static inline bool handle_known(enum handle_kind kind, const void *handle)
{
	return handle && handle_device(kind, handle) >= 0;
}

/* Live, or one of those that always are: the null stream, hipStreamPerThread and, since 6.0,
 * hipStreamLegacy. Their numbers are the same in both APIs. */
static inline bool stream_known(hipStream_t s)
{
	if ((uintptr_t)s <= 2)
		return (uintptr_t)s != 1 || V6;
	return handle_device(HANDLE_STREAM, s) >= 0;
}

#endif
