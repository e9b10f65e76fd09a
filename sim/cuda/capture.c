/* SPDX-License-Identifier: MIT */
/* Captures. The driver decides which calls are legal during a capture, except for calls in
 * RELAXED(). */
#include "cuda/context.h"

_Atomic int captures; /* under way in this process */

static CUevent probes[SIM_MAX_DEVICES];

static void prepare(int device)
{
	if (CU(cuEventCreate, &probes[device], hipEventDisableTiming))
		probes[device] = NULL;
}

__attribute__((constructor)) static void captures_init(void)
{
	context_when_made(prepare);
}

/* The driver counts a query of an event among the calls that are as unsafe as an allocation. */
hipError_t capture_allows(void)
{
	CUevent probe = probes[current_device()];
	CUresult r;

	if (likely(!atomic_load(&captures)) || !probe)
		return hipSuccess;
	r = CU(cuEventQuery, probe);
	return r == CUDA_ERROR_NOT_READY ? hipSuccess : to_hip(r);
}

static bool capturing(hipStream_t s)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return !CU(cuStreamIsCapturing, (CUstream)s, &status) &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

hipError_t i_hipStreamBeginCapture(hipStream_t s, hipStreamCaptureMode mode)
{
	CUresult r;

	ENTER_STREAM(s);
	if ((unsigned)mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	r = CU(cuStreamBeginCapture, (CUstream)s, (CUstreamCaptureMode)mode);
	if (!r)
		atomic_fetch_add(&captures, 1);
	return to_hip(r);
}

/* A capture that fails at its end has ended, too. */
hipError_t i_hipStreamEndCapture(hipStream_t s, hipGraph_t *out)
{
	CUgraph g = NULL;
	CUresult r;
	bool was;

	ENTER_STREAM(s);
	if (!out)
		return hipErrorInvalidValue;
	was = capturing(s);
	r = CU(cuStreamEndCapture, (CUstream)s, &g);
	if (was && !capturing(s))
		atomic_fetch_sub(&captures, 1);
	*out = (hipGraph_t)g;
	return to_hip(r);
}

hipError_t i_hipStreamIsCapturing(hipStream_t s, hipStreamCaptureStatus *status)
{
	CUstreamCaptureStatus is = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult r;

	ENTER_STREAM(s);
	if (!status)
		return hipErrorInvalidValue;
	r = CU(cuStreamIsCapturing, (CUstream)s, &is);
	*status = (hipStreamCaptureStatus)is;
	return to_hip(r);
}

hipError_t i_hipStreamGetCaptureInfo_v2(hipStream_t s, hipStreamCaptureStatus *status,
					unsigned long long *id, hipGraph_t *graph,
					const hipGraphNode_t **deps, size_t *count)
{
	CUstreamCaptureStatus is = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t n = 0;
	CUresult r;

	ENTER_STREAM(s);
	if (!status)
		return hipErrorInvalidValue;
	r = CU(cuStreamGetCaptureInfo, (CUstream)s, &is, &n, (CUgraph *)graph,
	       (const CUgraphNode **)deps, count);
	*status = (hipStreamCaptureStatus)is;
	if (!r && id && is == CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*id = n;
	return to_hip(r);
}

hipError_t i_hipStreamGetCaptureInfo(hipStream_t s, hipStreamCaptureStatus *status,
				     unsigned long long *id)
{
	return i_hipStreamGetCaptureInfo_v2(s, status, id, NULL, NULL, NULL);
}

hipError_t i_hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode)
{
	CUstreamCaptureMode m;
	CUresult r;

	ENTER();
	if (!mode || (unsigned)*mode > hipStreamCaptureModeRelaxed)
		return hipErrorInvalidValue;
	m = (CUstreamCaptureMode)*mode;
	r = CU(cuThreadExchangeStreamCaptureMode, &m);
	if (!r)
		*mode = (hipStreamCaptureMode)m;
	return to_hip(r);
}
