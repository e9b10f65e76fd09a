/* SPDX-License-Identifier: MIT */
/*
 * Launches that record events. The runtime records such an event at some moment during the launch,
 * so the event has no clock, neither during the call nor after it. No lock.
 */
#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/stream/timeline.h"

static void taint(hipEvent_t event)
{
	if (event)
		ss_event_taint(ss_core, event, false);
	if (event && unlikely(ss_checking))
		ss_check_event_tainted(event, false);
}

#define RETURN_LAUNCH(start, stop, name, ...) do { \
	hipError_t e_; \
	ss_stream_used(stream); \
	if (unlikely(ss_checking)) \
		ss_check_kernel(ss_stream_or_null(stream), LAUNCHED); \
	taint(start); \
	taint(stop); \
	e_ = REAL(name, __VA_ARGS__); \
	taint(start); \
	taint(stop); \
	return ss_result(e_); \
} while (0)

#define LAUNCHED function, true, args, NULL
hipError_t do_hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
				 size_t shared, hipStream_t stream, hipEvent_t start,
				 hipEvent_t stop, int flags)
{
	RETURN_LAUNCH(start, stop, hipExtLaunchKernel, function, grid, block, args, shared, stream,
		      start, stop, flags);
}

#undef LAUNCHED
#define LAUNCHED f, false, params, extra

#define DO_(name) do_##name
#define DO(name) DO_(name)

/* Each exists with a C name and, in 5.x, with a C++ name. */
#define EXT_MODULE_LAUNCH(name) \
	hipError_t DO(name)(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, \
			    uint32_t ly, uint32_t lz, size_t shared, hipStream_t stream, \
			    void **params, void **extra, hipEvent_t start, hipEvent_t stop, \
			    uint32_t flags) \
	{ \
		RETURN_LAUNCH(start, stop, name, f, gx, gy, gz, lx, ly, lz, shared, stream, params, \
			 extra, start, stop, flags); \
	}

#define HCC_MODULE_LAUNCH(name) \
	hipError_t DO(name)(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, \
			    uint32_t ly, uint32_t lz, size_t shared, hipStream_t stream, \
			    void **params, void **extra, hipEvent_t start, hipEvent_t stop) \
	{ \
		RETURN_LAUNCH(start, stop, name, f, gx, gy, gz, lx, ly, lz, shared, stream, params, \
			 extra, start, stop); \
	}

EXT_MODULE_LAUNCH(hipExtModuleLaunchKernel)
EXT_MODULE_LAUNCH(SS_EXT_MODULE_LAUNCH)
HCC_MODULE_LAUNCH(hipHccModuleLaunchKernel)
HCC_MODULE_LAUNCH(SS_HCC_MODULE_LAUNCH)
