/* SPDX-License-Identifier: MIT */
/*
 * Synchronizations, queries and waits. Each call reads what it will prove before the real call, and
 * grants that to the core after the real call succeeds. No lock.
 */
#include "core/base/deadline.h"
#include "core/order/watched.h"
#include "shim/alloc/debt.h"
#include "shim/stream/capture.h"
#include "shim/stream/real_wait.h"
#include "shim/stream/sync_watch.h"
#include "shim/stream/watched_call.h"
#include "trace/writer.h"

/* Gives the name of the call to the checker, because the export of a HOT entry does not. */
#define CHECK_CALL(name) do { \
	if (unlikely(ss_checking)) \
		ss_check_call(#name); \
} while (0)

/* ---- streams ------------------------------------------------------------ */

typedef hipError_t stream_call(hipStream_t stream);

/* A wait for, or query of, the handle hipStreamLegacy covers the null stream alone. The blocking
 * streams, which a NULL handle includes, may run on (since 7.0; queries earlier). Such a call
 * proves nothing to us, so its timeline is NULL here. */
static inline struct ss_timeline *proven(hipStream_t handle, bool *refused)
{
	struct ss_timeline *tl = ss_stream_checked(handle, refused);

	return handle == SS_LEGACY ? NULL : tl;
}

/* The end of one of HIP's synchronization points. */
static inline hipError_t waited(struct ss_token *t, hipError_t err)
{
	ss_sync_end(ss_core, t, err == hipSuccess, true);
	ss_sync_after(false);
	return ss_result(err);
}

static inline hipError_t call_real(stream_call *real, hipStream_t stream)
{
	hipError_t err;

	ss_enter();
	err = real ? real(stream) : ss_real_missing();
	ss_leave();
	return err;
}

SS_INLINE hipError_t sync_timeline(hipStream_t handle, struct ss_timeline *tl, stream_call *real,
				   hipStream_t stream)
{
	struct ss_token t = ss_stream_sync_begin(ss_core, tl);
	uint64_t begin = ss_trace_wait_begin();
	hipError_t err = ss_real_wait((ss_wait_call *)real, stream, &t, 1);

	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_reached(ss_stream_or_null(handle));
	if (unlikely(begin))
		ss_trace_wait_end(begin, SS_TRACE_WAIT_STREAM, tl ? ss_timeline_device(tl) : -1,
				  tl ? ss_timeline_native(tl) : NULL);
	return waited(&t, err);
}

/* `stream` is what `real` takes for `handle`. */
SS_INLINE hipError_t sync_stream(hipStream_t handle, stream_call *real, hipStream_t stream)
{
	bool refused;
	struct ss_timeline *tl = proven(handle, &refused);

	return likely(!refused) ? sync_timeline(handle, tl, real, stream) :
				  ss_fail(hipErrorContextIsDestroyed);
}

hipError_t do_hipStreamSynchronize(hipStream_t stream)
{
	if (ss_hot_pass())
		return FORWARD(hipStreamSynchronize, stream);
	SS_SERVED;
	CHECK_CALL(hipStreamSynchronize);
	return sync_stream(stream, ss_real.hipStreamSynchronize, stream);
}
SS_HOT(hipStreamSynchronize)

hipError_t do_hipStreamSynchronize_spt(hipStream_t stream)
{
	return sync_stream(ss_spt_stream(stream), ss_real.hipStreamSynchronize_spt, stream);
}

#define COMMAND_NS 2000000 /* an idle stream completes one command within this time */
#define COMMAND_LOOKS 50000 /* and within this number of queries */

/* Natively, pool calls leave a marker on the stream, which joins the null stream. Our pool calls
 * leave none, so the query enqueues the marker here. A program that has waited and queries once
 * must still get hipSuccess, so the query is repeated for as long as an idle stream needs for one
 * marker. */
static hipError_t query_stream(hipStream_t handle, stream_call *real, hipStream_t stream)
{
	struct ss_timeline *tl;
	struct ss_token t;
	hipError_t err;
	struct ss_deadline end;
	bool refused, late;

	ss_debts_pay();
	tl = proven(handle, &refused);
	if (refused)
		return ss_fail(hipErrorContextIsDestroyed);
	late = tl && ss_needs_cover(tl);
	err = late ? call_real(real, stream) : hipSuccess;
	if (err != hipSuccess)
		return ss_result(err);
	t = ss_stream_query_begin(ss_core, tl);
	end = ss_deadline_in(late ? ss_monotonic_ns() : 0, COMMAND_NS, COMMAND_LOOKS);
	do {
		err = call_real(real, stream);
	} while (err == hipErrorNotReady && late && ss_deadline_take(&end, 1) &&
		 !ss_deadline_over(&end, ss_monotonic_ns()));
	ss_sync_end(ss_core, &t, err == hipSuccess, false);
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_reached(ss_stream_or_null(handle));
	return ss_result(err);
}

hipError_t do_hipStreamQuery(hipStream_t stream)
{
	return query_stream(stream, ss_real.hipStreamQuery, stream);
}

hipError_t do_hipStreamQuery_spt(hipStream_t stream)
{
	return query_stream(ss_spt_stream(stream), ss_real.hipStreamQuery_spt, stream);
}

/* ---- events ------------------------------------------------------------- */

hipError_t do_hipEventSynchronize(hipEvent_t event)
{
	struct ss_token t;
	uint64_t begin;
	hipError_t err;

	if (ss_hot_pass())
		return FORWARD(hipEventSynchronize, event);
	SS_SERVED;
	t = ss_event_wait_begin(ss_core, event);
	begin = ss_trace_wait_begin();
	CHECK_CALL(hipEventSynchronize);
	err = ss_real_wait((ss_wait_call *)ss_real.hipEventSynchronize, event, &t, 1);
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_event_reached(event);
	ss_trace_wait_end(begin, SS_TRACE_WAIT_EVENT, -1, NULL);
	return waited(&t, err);
}
SS_HOT(hipEventSynchronize)

hipError_t do_hipEventQuery(hipEvent_t event)
{
	struct ss_token t;
	hipError_t err;

	if (ss_hot_pass())
		return FORWARD(hipEventQuery, event);
	SS_SERVED;
	ss_debts_pay();
	t = ss_event_sync_begin(ss_core, event);
	CHECK_CALL(hipEventQuery);
	err = REAL(hipEventQuery, event);
	ss_sync_end(ss_core, &t, err == hipSuccess, false);
	if (unlikely(ss_checking) && err == hipSuccess)
		ss_check_event_reached(event);
	return ss_result(err);
}
SS_HOT(hipEventQuery)

/* ---- a stream waits for an event ---------------------------------------- */

typedef hipError_t wait_call(hipStream_t stream, hipEvent_t event, unsigned int flags);

/* `stream` is what `real` takes for `handle`. */
SS_INLINE hipError_t wait_event(hipStream_t handle, hipEvent_t event, unsigned int flags,
				wait_call *real, hipStream_t stream)
{
	struct ss_host_command host = {0};
	struct ss_timeline *tl;
	bool refused, joins;
	struct ss_token t;
	hipError_t err;

	tl = ss_stream_checked(handle, &refused);
	if (refused)
		return ss_fail(hipErrorInvalidHandle);
	/* The join is announced before the real call, as a capture is (capture.c). */
	joins = ss_capture_live() && tl && ss_capture_has_event(event) &&
		ss_capture_join(handle, tl, event);
	t = ss_wait_begin(ss_core, event, tl);
	if (ss_wait_unseen(&t))
		host = ss_host_command_begin(handle);
	if (unlikely(ss_checking))
		ss_check_waits(tl, event);
	ss_enter();
	err = real ? real(stream, event, flags) : ss_real_missing();
	ss_leave();
	ss_wait_end(ss_core, &t, err == hipSuccess);
	ss_host_command_end(&host, err == hipSuccess);
	if (unlikely(ss_checking))
		ss_check_waits(tl, event);
	if (unlikely(joins) && err != hipSuccess)
		ss_capture_drop_stream(tl);
	return ss_result(err);
}

static inline hipError_t open_wait_event(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	if (ss_hot_pass())
		return FORWARD(hipStreamWaitEvent, stream, event, flags);
	SS_SERVED;
	CHECK_CALL(hipStreamWaitEvent);
	return wait_event(stream, event, flags, ss_real.hipStreamWaitEvent, stream);
}

/* The event may be one that does not come for long, such as another process's. A stream that waits
 * for it is not idle, so the call passes the gate. A record does not, since its work ends by
 * itself and touches no memory. */
hipError_t do_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	enum ss_gate gate = ss_gate_enter();
	hipError_t err;

	if (unlikely(gate < SS_GATE_OPEN))
		return ss_gate_error(gate);
	err = open_wait_event(stream, event, flags);
	ss_gate_leave(gate);
	return err;
}
SS_HOT(hipStreamWaitEvent)

hipError_t do_hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	return wait_event(ss_spt_stream(stream), event, flags, ss_real.hipStreamWaitEvent_spt,
			  stream);
}
