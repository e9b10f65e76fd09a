/* SPDX-License-Identifier: MIT */
/* Contexts of the driver API. A context is a name for a device. */
#include "device/options.h"
#include "hip/device_flags.h"
#include "hip/entry_points.h"
#include "hip/thread_state.h"

/* The number of a device as a handle; 0 is no context. */
#define CTX(d) ((hipCtx_t)(uintptr_t)(0x1000 + (d)))
#define CTX_DEVICE(c) ((int)((uintptr_t)(c) - 0x1000))

static __thread hipCtx_t ctx_stack[16];
static __thread int ctx_depth;

hipError_t i_hipCtxSetCacheConfig(hipFuncCache_t c)
{
	return hipSuccess;
}
hipError_t i_hipCtxSetSharedMemConfig(hipSharedMemConfig c)
{
	return hipSuccess;
}

hipError_t i_hipCtxCreate(hipCtx_t *c, unsigned flags, hipDevice_t d)
{
	if (!c)
		return hipErrorInvalidValue;
	if (check_device(d))
		return hipErrorInvalidDevice;
	*c = CTX(d);
	return i_hipCtxPushCurrent(*c);
}

hipError_t i_hipCtxDestroy(hipCtx_t c)
{
	if (!c || check_device(CTX_DEVICE(c)))
		return hipErrorInvalidValue;
	if (ctx_depth && ctx_stack[ctx_depth - 1] == c)
		ctx_depth--;
	return hipSuccess;
}

hipError_t i_hipCtxPushCurrent(hipCtx_t c)
{
	if (!c || check_device(CTX_DEVICE(c)))
		return hipErrorInvalidContext;
	if (ctx_depth < 16)
		ctx_stack[ctx_depth++] = c;
	thread_state()->device = CTX_DEVICE(c);
	return hipSuccess;
}

hipError_t i_hipCtxPopCurrent(hipCtx_t *c)
{
	if (!ctx_depth)
		return hipErrorInvalidContext;
	ctx_depth--;
	if (c)
		*c = ctx_stack[ctx_depth];
	if (ctx_depth)
		thread_state()->device = CTX_DEVICE(ctx_stack[ctx_depth - 1]);
	return hipSuccess;
}

hipError_t i_hipCtxSetCurrent(hipCtx_t c)
{
	if (!c) {
		if (ctx_depth)
			ctx_depth--;
		return hipSuccess;
	}
	if (check_device(CTX_DEVICE(c)))
		return hipErrorInvalidContext;
	if (ctx_depth)
		ctx_stack[ctx_depth - 1] = c;
	else
		ctx_stack[ctx_depth++] = c;
	thread_state()->device = CTX_DEVICE(c);
	return hipSuccess;
}

hipError_t i_hipCtxGetCurrent(hipCtx_t *c)
{
	if (!c)
		return hipErrorInvalidValue;
	*c = CTX(current_device());
	return hipSuccess;
}

hipError_t i_hipCtxGetDevice(hipDevice_t *d)
{
	if (!d)
		return hipErrorInvalidValue;
	*d = current_device();
	return hipSuccess;
}

hipError_t i_hipCtxGetFlags(unsigned *flags)
{
	return i_hipGetDeviceFlags(flags);
}
hipError_t i_hipCtxSynchronize(void)
{
	return i_hipDeviceSynchronize();
}

hipError_t i_hipCtxEnablePeerAccess(hipCtx_t c, unsigned flags)
{
	return i_hipDeviceEnablePeerAccess(CTX_DEVICE(c), flags);
}

hipError_t i_hipCtxDisablePeerAccess(hipCtx_t c)
{
	return i_hipDeviceDisablePeerAccess(CTX_DEVICE(c));
}

hipError_t i_hipDevicePrimaryCtxGetState(hipDevice_t d, unsigned *flags, int *active)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (flags)
		*flags = device_flags[d];
	if (active)
		*active = d == current_device();
	return hipSuccess;
}

hipError_t i_hipDevicePrimaryCtxRetain(hipCtx_t *c, hipDevice_t d)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (!c)
		return hipErrorInvalidValue;
	*c = CTX(d);
	return hipSuccess;
}

/* Both do nothing, whatever their names promise (hip_context.cpp). */
hipError_t i_hipDevicePrimaryCtxRelease(hipDevice_t d)
{
	return check_device(d);
}

hipError_t i_hipDevicePrimaryCtxReset(hipDevice_t d)
{
	return check_device(d);
}

hipError_t i_hipDevicePrimaryCtxSetFlags(hipDevice_t d, unsigned flags)
{
	return check_device(d) ? hipErrorInvalidDevice : hipErrorContextAlreadyInUse;
}
