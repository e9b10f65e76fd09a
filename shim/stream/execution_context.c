/* SPDX-License-Identifier: MIT */
/*
 * Execution contexts (from 7.14 on), which have streams of their own. The destruction of a context
 * detaches its streams: running work goes on, but the handle is good for hipStreamDestroy only, and
 * every other call returns 916. So the core's timeline of such a stream ends before its context
 * ends. No lock.
 */
#include <stdlib.h>

#include "shim/process/real.h"
#include "shim/stream/context_streams.h"
#include "shim/stream/real_wait.h"
#include "shim/stream/sync_watch.h"
#include "shim/stream/watched_call.h"

#define AT_ONCE 32 /* a synchronization grants for this many streams of a context */

/* The device of a context, or -1. */
static int device_of(void *context)
{
	int dev = -1;

	if (!context || REAL(hipExecutionCtxGetDevice, &dev, context) != hipSuccess)
		return -1;
	return dev;
}

hipError_t do_hipExecutionCtxStreamCreate(hipStream_t *stream, void *context, unsigned int flags,
					  int priority)
{
	int dev = device_of(context);
	hipError_t err;

	/* Before the stream can be used, as in streams.c. */
	if (dev >= 0)
		ss_observer_add(dev, SS_OBSERVER_STREAM);
	err = REAL(hipExecutionCtxStreamCreate, stream, context, flags, priority);
	if (err == hipSuccess && dev >= 0) {
		ss_stream_register(*stream, flags, dev);
		ss_context_join(*stream, context);
	}
	return ss_result(err);
}

hipError_t do_hipExecutionCtxDestroy(void *context)
{
	unsigned n, max = ss_context_stream_count();
	struct {
		struct ss_timeline *tl;
		enum ss_timeline_kind kind;
	} * was;
	int dev = device_of(context);
	hipStream_t *list;
	hipError_t err;

	if (!max)
		return ss_result(REAL(hipExecutionCtxDestroy, context));
	list = malloc(max * sizeof(*list));
	was = calloc(max, sizeof(*was));
	if (!list || !was) {
		free(list);
		free(was);
		return ss_fail(hipErrorOutOfMemory);
	}
	n = ss_context_streams(context, list, max, true);
	for (unsigned i = 0; i < n; i++) {
		was[i].tl = ss_timeline_find(ss_core, list[i]);
		if (was[i].tl) {
			was[i].kind = ss_timeline_kind(was[i].tl);
			ss_stream_retire(list[i], was[i].tl);
		}
	}
	err = REAL(hipExecutionCtxDestroy, context);
	/* The real call fails for the primary context of a device: its streams live on. */
	for (unsigned i = 0; err != hipSuccess && i < n; i++)
		if (was[i].tl) {
			ss_context_join(list[i], context);
			ss_timeline_add(ss_core, dev, list[i], was[i].kind, true);
		}
	free(list);
	free(was);
	return ss_result(err);
}

hipError_t do_hipExecutionCtxSynchronize(void *context)
{
	hipStream_t list[AT_ONCE];
	struct ss_token t[AT_ONCE];
	unsigned n = ss_context_streams(context, list, AT_ONCE, false);
	hipError_t err;

	for (unsigned i = 0; i < n; i++)
		t[i] = ss_stream_sync_begin(ss_core, ss_timeline_find(ss_core, list[i]));
	err = ss_real_wait(ss_real.hipExecutionCtxSynchronize, context, t, n);
	for (unsigned i = 0; i < n; i++)
		ss_sync_end(ss_core, &t[i], err == hipSuccess, i == n - 1);
	ss_sync_after(false);
	return ss_result(err);
}

/* The event covers all streams of the context. No clock can express that, so the event gets
 * none. */
hipError_t do_hipExecutionCtxRecordEvent(void *context, hipEvent_t event)
{
	struct ss_token t = ss_record_begin(ss_core, event, NULL);
	hipError_t err = REAL(hipExecutionCtxRecordEvent, context, event);

	ss_record_end(ss_core, &t, false);
	return ss_result(err);
}
