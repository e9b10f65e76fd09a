/* SPDX-License-Identifier: MIT */
/* Contexts: the primary one of each device. It is a name for the device, and exists once it was
 * retained. */
#include "device/options.h"
#include "hip/thread_state.h"
#include "libcuda/call.h"
#include "libcuda/context.h"

static atomic_bool inited;
/* Counts the lives of a context; odd: it exists */
static _Atomic unsigned alive[SIM_MAX_DEVICES];
static __thread CUcontext current;
static __thread unsigned life; /* of current */

bool initialized(void)
{
	return atomic_load(&inited);
}

static int device_of(CUcontext c)
{
	return (int)((uintptr_t)c - 0x7000);
}

CUresult context_missing(void)
{
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	return atomic_load(&alive[device_of(current)]) == life ?
		       CUDA_SUCCESS :
		       (CUresult)hipErrorContextIsDestroyed;
}

static CUresult init(unsigned flags)
{
	hipError_t e = i_hipInit(flags);

	if (!e)
		atomic_store(&inited, true);
	return (CUresult)e;
}

CUresult cuInit(unsigned flags)
{
	RUN(cuInit, NEEDS_NOTHING, init(flags));
}

static CUresult retain(CUcontext *c, int d)
{
	unsigned n;

	if (check_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	n = atomic_load(&alive[d]);
	while (!(n & 1) && !atomic_compare_exchange_weak(&alive[d], &n, n + 1))
		;
	*c = CONTEXT(d);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	RUN(cuDevicePrimaryCtxRetain, NEEDS_INIT, retain(c, d));
}

static CUresult reset(int d)
{
	int was = current_device();
	CUresult r;

	if (check_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	thread_state()->device = d;
	r = (CUresult)i_hipDeviceReset();
	thread_state()->device = was;
	modules_end(d);
	if (atomic_load(&alive[d]) & 1)
		atomic_fetch_add(&alive[d], 1);
	return r;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice d)
{
	RUN(cuDevicePrimaryCtxReset, NEEDS_INIT, reset(d));
}

static CUresult set_current(CUcontext c)
{
	if (c) {
		life = atomic_load(&alive[device_of(c)]);
		if (!(life & 1))
			return (CUresult)hipErrorContextIsDestroyed;
		thread_state()->device = device_of(c);
	}
	current = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext c)
{
	RUN(cuCtxSetCurrent, NEEDS_INIT, set_current(c));
}

CUresult cuCtxGetCurrent(CUcontext *c)
{
	RUN(cuCtxGetCurrent, NEEDS_INIT, (*c = current, 0));
}

CUresult cuCtxSynchronize(void)
{
	RUN(cuCtxSynchronize, NEEDS_CONTEXT, i_hipDeviceSynchronize());
}

CUresult cuCtxGetLimit(size_t *v, CUlimit limit)
{
	RUN(cuCtxGetLimit, NEEDS_CONTEXT, i_hipDeviceGetLimit(v, (enum hipLimit_t)limit));
}

CUresult cuCtxSetLimit(CUlimit limit, size_t v)
{
	RUN(cuCtxSetLimit, NEEDS_CONTEXT, i_hipDeviceSetLimit((enum hipLimit_t)limit, v));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	RUN(cuCtxGetStreamPriorityRange, NEEDS_CONTEXT,
	    i_hipDeviceGetStreamPriorityRange(least, greatest));
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	RUN(cuCtxEnablePeerAccess, NEEDS_CONTEXT,
	    i_hipDeviceEnablePeerAccess(device_of(peer), flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	RUN(cuCtxDisablePeerAccess, NEEDS_CONTEXT, i_hipDeviceDisablePeerAccess(device_of(peer)));
}
