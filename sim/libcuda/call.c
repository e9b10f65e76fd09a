/* SPDX-License-Identifier: MIT */
/* The checks at the begin and the end of every call of the stand-in. */
#include <stdio.h>
#include <stdlib.h>

#include "device/failures.h"
#include "device/options.h"
#include "hip/handle.h"
#include "hip/reentry.h"
#include "hip/submit.h"
#include "libcuda/call.h"
#include "libcuda/context.h"

static const char *const names[] = {
#define C(name, version, params) #name,
#include "cuda/driver_calls.h"
#undef C
};
_Static_assert(CALL_end <= SIM_MAX_CALLS, "SIM_MAX_CALLS is too small");

static __thread bool in_host_function;

CUresult call_enter(int id, enum need need)
{
	struct sim_thread *t = sim_enter(id);

	if (t->verdict)
		return (CUresult)t->verdict;
	if (in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	if (need >= NEEDS_INIT && !initialized())
		return CUDA_ERROR_NOT_INITIALIZED;
	return need >= NEEDS_CONTEXT ? context_missing() : CUDA_SUCCESS;
}

void call_leave(void)
{
	sim_leave(sim_self());
}

void call_in_host_function(bool on)
{
	in_host_function = on;
}

static void crash(const char *what, const void *handle)
{
	fprintf(stderr, "stand-in for libcuda: %p is no %s, and the driver would crash\n", handle,
		what);
	abort();
}

hipStream_t stream_arg(CUstream s)
{
	hipStream_t h = (hipStream_t)s;

	if ((uintptr_t)h > 2 && !stream_of(h))
		crash("stream", s);
	return h;
}

hipEvent_t event_arg(CUevent e)
{
	if (!event_of((hipEvent_t)e))
		crash("event", e);
	return (hipEvent_t)e;
}

/* The release of HIP whose rules are nearest to CUDA's, whatever release is played on top. */
__attribute__((constructor(105))) static void call_init(void)
{
	sim_opt.hip = 702;
	reentry = (struct reentry){i_hipMemGetInfo, i_hipHostMalloc, i_hipMallocPitch,
				   i_hipMemcpyAsync};
	sim_calls_register(SIM_HIP_FIRST, names, CALL_end - SIM_HIP_FIRST);
	sim_failures_apply(SIM_HIP_FIRST, CALL_end - SIM_HIP_FIRST, "cu");
}
