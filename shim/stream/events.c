/* SPDX-License-Identifier: MIT */
/*
 * Creates, records, destroys and shares events. A record publishes the stream's clock after the
 * real call succeeds. No lock.
 */
#include "shim/stream/capture.h"
#include "shim/stream/watched_call.h"

typedef hipError_t record_call(hipEvent_t event, hipStream_t stream);

/* An event that is recorded while its stream captures is a position in a graph and not a time, so
 * the event gets no clock. `external`: the event becomes an external node, and every launch of the
 * graph records the event, for the rest of its life. */
static bool is_captured(hipEvent_t event, const struct ss_timeline *tl, bool external)
{
	bool captured = tl && ss_timeline_capturing(tl);

	if (captured)
		ss_event_taint(ss_core, event, external);
	return captured;
}

static void check_recording(hipEvent_t event, bool captured, bool external)
{
	ss_check_recording(event);
	if (captured)
		ss_check_event_tainted(event, external);
}

SS_INLINE hipError_t record_end(struct ss_token *t, hipEvent_t event, struct ss_timeline *tl,
				bool captured, hipError_t err)
{
	ss_record_end(ss_core, t, err == hipSuccess && !captured);
	if (unlikely(ss_checking))
		ss_check_recorded(event, captured ? NULL : tl, err == hipSuccess);
	if (unlikely(captured) && err == hipSuccess)
		ss_capture_event_set(event, tl);
	else if (ss_capture_live())
		ss_capture_event_clear(event);
	return ss_result(err);
}

/* `stream` is what `real` takes for tl. */
SS_INLINE hipError_t record(hipEvent_t event, struct ss_timeline *tl, record_call *real,
			    hipStream_t stream)
{
	bool captured = ss_capture_live() && is_captured(event, tl, false);
	struct ss_token t = ss_record_begin(ss_core, event, tl);
	hipError_t err;

	if (unlikely(ss_checking))
		check_recording(event, captured, false);
	ss_enter();
	err = real ? real(event, stream) : ss_real_missing();
	ss_leave();
	return record_end(&t, event, tl, captured, err);
}

hipError_t do_hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	struct ss_timeline *tl;
	bool refused;

	if (ss_hot_pass())
		return FORWARD(hipEventRecord, event, stream);
	SS_SERVED;
	if (unlikely(ss_checking))
		ss_check_call("hipEventRecord");
	tl = ss_stream_checked(stream, &refused);
	if (refused)
		return ss_fail(hipErrorContextIsDestroyed);
	return record(event, tl, ss_real.hipEventRecord, stream);
}
SS_HOT(hipEventRecord)

hipError_t do_hipEventRecord_spt(hipEvent_t event, hipStream_t stream)
{
	bool refused;
	struct ss_timeline *tl = ss_stream_checked(ss_spt_stream(stream), &refused);

	if (refused)
		return ss_fail(hipErrorContextIsDestroyed);
	return record(event, tl, ss_real.hipEventRecord_spt, stream);
}

#define EVENT_RECORD_EXTERNAL 1 /* hipEventRecordExternal, since 6.4 */

hipError_t do_hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags)
{
	bool refused, captured;
	struct ss_timeline *tl = ss_stream_checked(stream, &refused);
	struct ss_token t;

	if (refused)
		return ss_fail(hipErrorContextIsDestroyed);
	captured = ss_capture_live() && is_captured(event, tl, flags & EVENT_RECORD_EXTERNAL);
	t = ss_record_begin(ss_core, event, tl);
	if (unlikely(ss_checking))
		check_recording(event, captured, flags & EVENT_RECORD_EXTERNAL);
	return record_end(&t, event, tl, captured,
			  REAL(hipEventRecordWithFlags, event, stream, flags));
}

/* ---- create, destroy, share --------------------------------------------- */

static hipError_t event_created(hipError_t err, hipEvent_t *event)
{
	if (err == hipSuccess && event)
		ss_event_add(ss_core, *event);
	if (unlikely(ss_checking) && err == hipSuccess && event)
		ss_check_event_gone(*event); /* an earlier one of this address */
	return ss_result(err);
}

hipError_t do_hipEventCreate(hipEvent_t *event)
{
	return event_created(REAL(hipEventCreate, event), event);
}

hipError_t do_hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	return event_created(REAL(hipEventCreateWithFlags, event, flags), event);
}

hipError_t do_hipEventDestroy(hipEvent_t event)
{
	ss_event_forget(ss_core, event);
	if (unlikely(ss_checking))
		ss_check_event_gone(event);
	if (ss_capture_live())
		ss_capture_event_clear(event);
	return ss_result(REAL(hipEventDestroy, event));
}

/* Another process may record the event from now on, and a node of a graph may wait for that
 * record. */
hipError_t do_hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
	if (event)
		ss_event_taint(ss_core, event, true);
	if (event && unlikely(ss_checking))
		ss_check_event_tainted(event, true);
	ss_observer_add(-1, SS_OBSERVER_IPC | SS_OBSERVER_HOSTNODE);
	return ss_result(REAL(hipIpcGetEventHandle, handle, event));
}

hipError_t do_hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
	hipError_t err = REAL(hipIpcOpenEventHandle, event, handle);

	ss_observer_add(-1, SS_OBSERVER_IPC | SS_OBSERVER_HOSTNODE);
	if (err == hipSuccess && event) {
		ss_event_add(ss_core, *event);
		ss_event_taint(ss_core, *event, true);
		if (unlikely(ss_checking))
			ss_check_event_tainted(*event, true);
	}
	return ss_result(err);
}
