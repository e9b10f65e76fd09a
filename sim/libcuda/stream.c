/* SPDX-License-Identifier: MIT */
/* Streams, events, host functions, values, captures. */
#include "device/command.h"
#include "device/host_call.h"
#include "hip/submit.h"
#include "libcuda/call.h"

CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	RUN(cuStreamCreate, NEEDS_CONTEXT, i_hipStreamCreateWithFlags((hipStream_t *)s, flags));
}

CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority)
{
	RUN(cuStreamCreateWithPriority, NEEDS_CONTEXT,
	    i_hipStreamCreateWithPriority((hipStream_t *)s, flags, priority));
}

CUresult cuStreamDestroy_v2(CUstream s)
{
	RUN(cuStreamDestroy, NEEDS_CONTEXT, i_hipStreamDestroy(stream_arg(s)));
}

/* The null stream joins the blocking streams by whatever name. */
static hipStream_t joined(CUstream s)
{
	return (hipStream_t)s == STREAM_LEGACY ? NULL : stream_arg(s);
}

CUresult cuStreamSynchronize(CUstream s)
{
	RUN(cuStreamSynchronize, NEEDS_CONTEXT, i_hipStreamSynchronize(joined(s)));
}

CUresult cuStreamQuery(CUstream s)
{
	RUN(cuStreamQuery, NEEDS_CONTEXT, i_hipStreamQuery(joined(s)));
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	RUN(cuStreamWaitEvent, NEEDS_CONTEXT,
	    i_hipStreamWaitEvent(stream_arg(s), event_arg(e), flags));
}

CUresult cuStreamGetFlags(CUstream s, unsigned *flags)
{
	RUN(cuStreamGetFlags, NEEDS_CONTEXT, i_hipStreamGetFlags(stream_arg(s), flags));
}

CUresult cuStreamGetPriority(CUstream s, int *priority)
{
	RUN(cuStreamGetPriority, NEEDS_CONTEXT, i_hipStreamGetPriority(stream_arg(s), priority));
}

CUresult cuStreamAttachMemAsync(CUstream s, CUdeviceptr p, size_t n, unsigned flags)
{
	RUN(cuStreamAttachMemAsync, NEEDS_CONTEXT,
	    i_hipStreamAttachMemAsync(stream_arg(s), memory(p), n, flags));
}

/* ---- host functions, which may call nothing ---- */

struct host_call {
	CUhostFn fn;
	CUstreamCallback callback; /* or this one */
	CUstream stream;
	void *arg;
};

static void run(void *arg)
{
	struct host_call *h = arg;

	call_in_host_function(true);
	if (h->fn)
		h->fn(h->arg);
	else
		h->callback(h->stream, CUDA_SUCCESS, h->arg);
	call_in_host_function(false);
}

static hipError_t enqueue(hipStream_t s, struct host_call call)
{
	struct host_call *h = sim_blob_new(sizeof *h, NULL);
	struct sim_command *c;

	*h = call;
	c = sim_host_command(run, h);
	c->owned = h;
	return submit(s, c, false);
}

CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *arg)
{
	RUN(cuLaunchHostFunc, NEEDS_CONTEXT,
	    enqueue(stream_arg(s), (struct host_call){.fn = fn, .arg = arg}));
}

CUresult cuStreamAddCallback(CUstream s, CUstreamCallback fn, void *arg, unsigned flags)
{
	RUN(cuStreamAddCallback, NEEDS_CONTEXT,
	    flags ? hipErrorInvalidValue :
		    enqueue(stream_arg(s),
			    (struct host_call){.callback = fn, .stream = s, .arg = arg}));
}

/* ---- values ---- */

CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags)
{
	RUN(cuStreamWriteValue32, NEEDS_CONTEXT,
	    i_hipStreamWriteValue32(stream_arg(s), memory(p), v, flags));
}

CUresult cuStreamWriteValue64_v2(CUstream s, CUdeviceptr p, cuuint64_t v, unsigned flags)
{
	RUN(cuStreamWriteValue64, NEEDS_CONTEXT,
	    i_hipStreamWriteValue64(stream_arg(s), memory(p), v, flags));
}

CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags)
{
	RUN(cuStreamWaitValue32, NEEDS_CONTEXT,
	    i_hipStreamWaitValue32(stream_arg(s), memory(p), v, flags, UINT32_MAX));
}

CUresult cuStreamWaitValue64_v2(CUstream s, CUdeviceptr p, cuuint64_t v, unsigned flags)
{
	RUN(cuStreamWaitValue64, NEEDS_CONTEXT,
	    i_hipStreamWaitValue64(stream_arg(s), memory(p), v, flags, UINT64_MAX));
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	RUN(cuEventCreate, NEEDS_CONTEXT, i_hipEventCreateWithFlags((hipEvent_t *)e, flags));
}

CUresult cuEventDestroy_v2(CUevent e)
{
	RUN(cuEventDestroy, NEEDS_CONTEXT, i_hipEventDestroy(event_arg(e)));
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
	RUN(cuEventRecord, NEEDS_CONTEXT, i_hipEventRecord(event_arg(e), stream_arg(s)));
}

CUresult cuEventQuery(CUevent e)
{
	RUN(cuEventQuery, NEEDS_CONTEXT, i_hipEventQuery(event_arg(e)));
}

CUresult cuEventSynchronize(CUevent e)
{
	RUN(cuEventSynchronize, NEEDS_CONTEXT, i_hipEventSynchronize(event_arg(e)));
}

CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
	RUN(cuEventElapsedTime, NEEDS_CONTEXT,
	    i_hipEventElapsedTime(ms, event_arg(a), event_arg(b)));
}

/* ---- captures ---- */

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
	RUN(cuStreamBeginCapture, NEEDS_CONTEXT,
	    i_hipStreamBeginCapture(stream_arg(s), (hipStreamCaptureMode)mode));
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	RUN(cuStreamEndCapture, NEEDS_CONTEXT,
	    i_hipStreamEndCapture(stream_arg(s), (hipGraph_t *)g));
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
	RUN(cuStreamIsCapturing, NEEDS_CONTEXT,
	    i_hipStreamIsCapturing(stream_arg(s), (hipStreamCaptureStatus *)status));
}

CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *g, const CUgraphNode **deps, size_t *n)
{
	RUN(cuStreamGetCaptureInfo, NEEDS_CONTEXT,
	    i_hipStreamGetCaptureInfo_v2(stream_arg(s), (hipStreamCaptureStatus *)status,
					 (unsigned long long *)id, (hipGraph_t *)g,
					 (const hipGraphNode_t **)deps, n));
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	RUN(cuThreadExchangeStreamCaptureMode, NEEDS_INIT,
	    i_hipThreadExchangeStreamCaptureMode((hipStreamCaptureMode *)mode));
}
