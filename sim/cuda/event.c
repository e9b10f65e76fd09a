/* SPDX-License-Identifier: MIT */
/* Events. */
#include "cuda/context.h"

/* HIP has one error for a null event, and another one for an event that is not live. */
static hipError_t check(hipEvent_t e)
{
	if (!e)
		return hipErrorInvalidHandle;
	return handle_known(HANDLE_EVENT, e) ? hipSuccess : hipErrorContextIsDestroyed;
}

#define ENTER_EVENT(event) \
	do { \
		hipError_t bad_; \
\
		ENTER(); \
		bad_ = check(event); \
		if (unlikely(bad_)) \
			return bad_; \
	} while (0)

/* The first three bits are the same in both APIs; AMD's own say how caches are flushed. */
hipError_t i_hipEventCreateWithFlags(hipEvent_t *out, unsigned flags)
{
	CUevent e = NULL;
	CUresult r;

	ENTER();
	if (!out)
		return hipErrorInvalidValue;
	r = CU(cuEventCreate, &e, flags & 7);
	if (!r) {
		handle_add(HANDLE_EVENT, e, current_device());
		*out = (hipEvent_t)e;
	}
	return to_hip(r);
}

hipError_t i_hipEventCreate(hipEvent_t *out)
{
	return i_hipEventCreateWithFlags(out, 0);
}

hipError_t i_hipEventDestroy(hipEvent_t e)
{
	ENTER();
	if (!e)
		return hipErrorInvalidHandle;
	if (!handle_remove(HANDLE_EVENT, e))
		return hipErrorContextIsDestroyed;
	return to_hip(CU(cuEventDestroy, (CUevent)e));
}

hipError_t i_hipEventRecord(hipEvent_t e, hipStream_t s)
{
	ENTER_EVENT(e);
	ENTER_STREAM(s);
	return to_hip(CU(cuEventRecord, (CUevent)e, (CUstream)s));
}

hipError_t i_hipEventRecordWithFlags(hipEvent_t e, hipStream_t s, unsigned flags)
{
	return flags > 1 ? hipErrorInvalidValue : i_hipEventRecord(e, s);
}

/* Until 6.x HIP lets a query pass beside a capture. */
hipError_t i_hipEventQuery(hipEvent_t e)
{
	ENTER_EVENT(e);
	return to_hip(V7 ? CU(cuEventQuery, (CUevent)e) : RELAXED(CU(cuEventQuery, (CUevent)e)));
}

hipError_t i_hipEventSynchronize(hipEvent_t e)
{
	ENTER_EVENT(e);
	return to_hip(CU(cuEventSynchronize, (CUevent)e));
}

hipError_t i_hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
	if (!ms)
		return hipErrorInvalidValue;
	ENTER_EVENT(start);
	ENTER_EVENT(stop);
	return to_hip(CU(cuEventElapsedTime, ms, (CUevent)start, (CUevent)stop));
}

hipError_t i_hipStreamWaitEvent(hipStream_t s, hipEvent_t e, unsigned flags)
{
	ENTER_EVENT(e);
	ENTER_STREAM(s);
	if (flags)
		return hipErrorInvalidValue;
	return to_hip(CU(cuStreamWaitEvent, (CUstream)s, (CUevent)e, 0));
}
