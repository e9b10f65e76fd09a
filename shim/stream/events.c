/* SPDX-License-Identifier: MIT */
/*
 * Events are created, recorded, destroyed and shared. A record publishes the stream's
 * clock after the real call succeeds. No lock.
 */
#include "shim/stream/capture.h"
#include "shim/stream/watched_call.h"

struct recording {
	struct ss_timeline *tl;
	bool captured;
	struct ss_token token;
};

/* An event that is recorded while its stream captures marks a place in a graph and not a
 * time, so it gets no clock. `external`: it becomes an external node, and every launch of
 * the graph records it, for the rest of its life. */
static struct recording record_begin(hipEvent_t event, struct ss_timeline *tl, bool external)
{
	struct recording r = {.tl = tl};

	r.captured = ss_capture_live() && tl && ss_timeline_capturing(tl);
	if (r.captured)
		ss_event_taint(ss_core, event, external);
	r.token = ss_record_begin(ss_core, event, r.tl);
	if (unlikely(ss_checking))
		ss_check_recording(event);
	if (unlikely(ss_checking) && r.captured)
		ss_check_event_tainted(event, external);
	return r;
}

static hipError_t record_end(struct recording *r, hipEvent_t event, hipError_t err)
{
	ss_record_end(ss_core, &r->token, err == hipSuccess && !r->captured);
	if (unlikely(ss_checking))
		ss_check_recorded(event, r->captured ? NULL : r->tl, err == hipSuccess);
	if (r->captured && err == hipSuccess)
		ss_capture_event_set(event, r->tl);
	else if (ss_capture_live())
		ss_capture_event_clear(event);
	return ss_result(err);
}

#define EVENT_RECORD_EXTERNAL 1 /* hipEventRecordExternal, since 6.4 */

#define RETURN_RECORD(handle, external, name, event, ...) do { \
	struct ss_timeline *tl_; \
	struct recording r_; \
	REFUSE(tl_, handle, hipErrorContextIsDestroyed); \
	r_ = record_begin(event, tl_, external); \
	return record_end(&r_, event, REAL(name, event, __VA_ARGS__)); \
} while (0)

static hipError_t hipEventRecord_slow(hipEvent_t event, hipStream_t stream)
{
	RETURN_RECORD(stream, false, hipEventRecord, event, stream);
}

static int real_record(void *event, void *stream)
{
	return ss_result(ss_real.hipEventRecord(event, stream));
}

static int slow_record(void *event, void *stream)
{
	return SLOW_PATH(hipEventRecord, (event, stream));
}

hipError_t do_hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	static const struct ss_record_call call = {real_record, slow_record};

	if (ON_FAST_PATH((uintptr_t)stream > 2))
		return (hipError_t)ss_record(ss_core, event, stream, &call, &ss_tls.depth);
	return (hipError_t)slow_record(event, stream);
}
SS_HOT(hipEventRecord)

hipError_t do_hipEventRecord_spt(hipEvent_t event, hipStream_t stream)
{
	RETURN_RECORD(ss_spt_stream(stream), false, hipEventRecord_spt, event, stream);
}

hipError_t do_hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags)
{
	RETURN_RECORD(stream, flags & EVENT_RECORD_EXTERNAL, hipEventRecordWithFlags, event, stream,
		flags);
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

/* Another process may record it from now on. */
hipError_t do_hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
	if (event)
		ss_event_taint(ss_core, event, true);
	if (event && unlikely(ss_checking))
		ss_check_event_tainted(event, true);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	return ss_result(REAL(hipIpcGetEventHandle, handle, event));
}

hipError_t do_hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
	hipError_t err = REAL(hipIpcOpenEventHandle, event, handle);

	ss_observer_add(-1, SS_OBSERVER_IPC);
	if (err == hipSuccess && event) {
		ss_event_add(ss_core, *event);
		ss_event_taint(ss_core, *event, true);
		if (unlikely(ss_checking))
			ss_check_event_tainted(*event, true);
	}
	return ss_result(err);
}
