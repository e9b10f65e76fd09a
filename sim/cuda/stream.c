/* SPDX-License-Identifier: MIT */
/* Streams: creation, queries, waits, attributes, host functions, values. */
#include "cuda/context.h"

static hipError_t create(hipStream_t *out, unsigned flags, int priority)
{
	CUstream s = NULL;
	CUresult r;

	ENTER();
	if (!out || flags > hipStreamNonBlocking)
		return hipErrorInvalidValue;
	r = priority ? CU(cuStreamCreateWithPriority, &s, flags, priority) :
		       CU(cuStreamCreate, &s, flags);
	if (!r) {
		handle_add(HANDLE_STREAM, s, current_device());
		*out = (hipStream_t)s;
	}
	return to_hip(r);
}

hipError_t i_hipStreamCreate(hipStream_t *out)
{
	return create(out, hipStreamDefault, 0);
}

hipError_t i_hipStreamCreateWithFlags(hipStream_t *out, unsigned flags)
{
	return create(out, flags, 0);
}

hipError_t i_hipStreamCreateWithPriority(hipStream_t *out, unsigned flags, int priority)
{
	return create(out, flags, priority);
}

/* The driver has no masks of compute units: the stream has all of them. */
hipError_t i_hipExtStreamCreateWithCUMask(hipStream_t *out, uint32_t n, const uint32_t *mask)
{
	if (!out)
		return hipErrorInvalidHandle;
	return n && mask ? create(out, hipStreamDefault, 0) : hipErrorInvalidValue;
}

hipError_t i_hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER();
	return to_hip(CU(cuCtxGetStreamPriorityRange, least, greatest));
}

hipError_t i_hipStreamDestroy(hipStream_t s)
{
	ENTER();
	if ((uintptr_t)s <= 2)
		return hipErrorInvalidHandle;
	if (!handle_remove(HANDLE_STREAM, s))
		return hipErrorContextIsDestroyed;
	return to_hip(CU(cuStreamDestroy, (CUstream)s));
}

hipError_t i_hipStreamQuery(hipStream_t s)
{
	ENTER_STREAM(s);
	return to_hip(CU(cuStreamQuery, (CUstream)s));
}

hipError_t i_hipStreamSynchronize(hipStream_t s)
{
	ENTER_STREAM(s);
	return to_hip(CU(cuStreamSynchronize, (CUstream)s));
}

hipError_t i_hipStreamGetFlags(hipStream_t s, unsigned *flags)
{
	ENTER_STREAM(s);
	return flags ? to_hip(CU(cuStreamGetFlags, (CUstream)s, flags)) : hipErrorInvalidValue;
}

hipError_t i_hipStreamGetPriority(hipStream_t s, int *priority)
{
	ENTER_STREAM(s);
	return priority ? to_hip(CU(cuStreamGetPriority, (CUstream)s, priority)) :
			  hipErrorInvalidValue;
}

static int device_of(hipStream_t s)
{
	return (uintptr_t)s <= 2 ? current_device() : handle_device(HANDLE_STREAM, s);
}

hipError_t i_hipStreamGetDevice(hipStream_t s, hipDevice_t *device)
{
	ENTER_STREAM(s);
	if (!device)
		return hipErrorInvalidValue;
	*device = device_of(s);
	return hipSuccess;
}

#pragma GCC visibility push(default)
int hipGetStreamDeviceId(hipStream_t s)
{
	return device_of(s);
}
#pragma GCC visibility pop

/* ---- host functions ---- */

hipError_t i_hipStreamAddCallback(hipStream_t s, hipStreamCallback_t fn, void *arg, unsigned flags)
{
	ENTER_STREAM(s);
	if (!fn || flags)
		return hipErrorInvalidValue;
	return to_hip(CU(cuStreamAddCallback, (CUstream)s, (CUstreamCallback)(void *)fn, arg, 0));
}

hipError_t i_hipLaunchHostFunc(hipStream_t s, hipHostFn_t fn, void *arg)
{
	ENTER_STREAM(s);
	return fn ? to_hip(CU(cuLaunchHostFunc, (CUstream)s, fn, arg)) : hipErrorInvalidValue;
}

/* ---- values ---- */

hipError_t i_hipStreamWriteValue32(hipStream_t s, void *p, uint32_t v, unsigned flags)
{
	ENTER_STREAM(s);
	return p ? to_hip(CU(cuStreamWriteValue32, (CUstream)s, address(p), v, 0)) :
		   hipErrorInvalidValue;
}

hipError_t i_hipStreamWriteValue64(hipStream_t s, void *p, uint64_t v, unsigned flags)
{
	ENTER_STREAM(s);
	return p ? to_hip(CU(cuStreamWriteValue64, (CUstream)s, address(p), v, 0)) :
		   hipErrorInvalidValue;
}

hipError_t i_hipStreamWaitValue32(hipStream_t s, void *p, uint32_t v, unsigned flags, uint32_t mask)
{
	ENTER_STREAM(s);
	if (!p || flags > CU_STREAM_WAIT_VALUE_NOR)
		return hipErrorInvalidValue;
	if (mask != UINT32_MAX)
		return hipErrorNotSupported;
	return to_hip(CU(cuStreamWaitValue32, (CUstream)s, address(p), v, flags));
}

hipError_t i_hipStreamWaitValue64(hipStream_t s, void *p, uint64_t v, unsigned flags, uint64_t mask)
{
	ENTER_STREAM(s);
	if (!p || flags > CU_STREAM_WAIT_VALUE_NOR)
		return hipErrorInvalidValue;
	if (mask != UINT64_MAX)
		return hipErrorNotSupported;
	return to_hip(CU(cuStreamWaitValue64, (CUstream)s, address(p), v, flags));
}
