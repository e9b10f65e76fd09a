/* SPDX-License-Identifier: MIT */
/*
 * Work that keeps a stream busy for some microseconds, so that the device is the slower side, as
 * the devices of real programs are. If the runtime has a kernel for that (`somacuda_spin`), the
 * work is that kernel. Otherwise the work is a memset of pinned memory, of a size that is measured
 * first, so no kernel has to be compiled, and no device memory is taken. The memsets of all streams
 * write the same bytes.
 */
#ifndef DEVICE_WORK_H
#define DEVICE_WORK_H

#include <hip/hip_runtime_api.h>

/* Sets how long the work lasts, and measures the memset, which waits for the device. 0: no work.
 * Call it once, before device_work(). */
hipError_t device_work_prepare(double microseconds);
/* Puts the work on `stream`. Any thread. */
hipError_t device_work(hipStream_t stream);

#endif
