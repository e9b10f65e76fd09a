/* SPDX-License-Identifier: MIT */
/*
 * The begin and the end of each call of the stand-in. The call is counted, and SOMASIM_FAIL can
 * make it fail under its CUDA name. CUDA's rules are played if they differ from HIP's:
 *
 *   before cuInit every call fails with 3, and without a context most fail with 201
 *   a handle that is none ends the process, as it crashes the driver
 *   a host function may call nothing: 800
 *   pinned memory is taken and freed when the device is idle
 *   the null stream by its own handle joins the blocking streams, too
 *   memory of a pool that was never exported has no export data
 *   an IPC handle of memory has no byte to spare
 *   pool allocations of other streams are refused (900) beside a global capture
 */
#ifndef SIM_LIBCUDA_CALL_H
#define SIM_LIBCUDA_CALL_H

#include "cuda/driver_types.h"
#include "device/calls.h"
#include "hip/entry_points.h"

enum {
	CALL_first = SIM_HIP_FIRST - 1,
#define C(name, version, params) CALL_##name,
#include "cuda/driver_calls.h"
#undef C
	CALL_end
};

/* The exports. */
#pragma GCC visibility push(default)
#define C(name, version, params) CUresult name##version params;
#include "cuda/driver_calls.h"
#undef C
#pragma GCC visibility pop

enum need { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

/* 0, or the result of a call that may not run. */
CUresult call_enter(int id, enum need need);
void call_leave(void);

/* The thread runs a host function, or has ended it. */
void call_in_host_function(bool on);

/* Is that a live stream? Ends the process if not. The same for an event. */
hipStream_t stream_arg(CUstream s);
hipEvent_t event_arg(CUevent e);

/* A device and its context. 0: no device. */
#define CONTEXT(device) ((CUcontext)(uintptr_t)(0x7000 + (device)))

/* The body of an export: expr is a result of HIP. */
#define RUN(name, need, expr) \
	do { \
		CUresult r_ = call_enter(CALL_##name, need); \
\
		if (!r_) \
			r_ = (CUresult)(expr); \
		call_leave(); \
		return r_; \
	} while (0)

static inline void *memory(CUdeviceptr d)
{
	return (void *)(uintptr_t)d;
}

#endif
