/* SPDX-License-Identifier: MIT */
/* The begin of each function behind an export. Only the files that have such functions include this
 * header. */
#ifndef SIM_CUDA_CONTEXT_H
#define SIM_CUDA_CONTEXT_H

#include "cuda/driver.h"
#include "cuda/handle.h"
#include "hip/entry_points.h"
#include "hip/thread_state.h"
#include "hip/version.h"

static inline hipError_t context_enter(void)
{
	if (likely(context_bound.device == current_device() + 1 &&
		   context_bound.turn == atomic_load_explicit(&context_turn, memory_order_relaxed)))
		return hipSuccess;
	return context_enter_slow();
}

/* Makes sure that the driver is there. For calls that need no context. */
#define STARTED() \
	do { \
		hipError_t e_ = driver_start(); \
\
		if (unlikely(e_)) \
			return e_; \
	} while (0)

/* Makes the context of the current device current. */
#define ENTER() \
	do { \
		hipError_t e_ = context_enter(); \
\
		if (unlikely(e_)) \
			return e_; \
	} while (0)

/* The same, and refuses a stream that is none. */
#define ENTER_STREAM(s) \
	do { \
		ENTER(); \
		if (unlikely(!stream_known(s))) \
			return hipErrorContextIsDestroyed; \
	} while (0)

/* Is an allocation legal during the captures that are under way? If not, the captures become
 * invalid, as by the allocation. */
hipError_t capture_allows(void);

/* Calls the driver in relaxed capture mode while any capture is under way: HIP's call is legal
 * then. */
extern _Atomic int captures;
#define RELAXED(call) \
	__extension__({ \
		CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED; \
		bool on_ = atomic_load(&captures) > 0 && \
			   !CU(cuThreadExchangeStreamCaptureMode, &mode_); \
		CUresult r_ = (call); \
\
		if (on_) \
			(void)CU(cuThreadExchangeStreamCaptureMode, &mode_); \
		r_; \
	})

#endif
