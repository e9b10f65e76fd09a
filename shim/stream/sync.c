/* SPDX-License-Identifier: MIT */
/*
 * Synchronizations, queries and waits: the real call, with what it proves read before it and
 * granted to the core after it succeeds (design section 3). No lock.
 */
#include <time.h>

#include "shim/alloc/debt.h"
#include "shim/stream/capture.h"
#include "shim/stream/sync_watch.h"
#include "shim/stream/watched_call.h"
#include "trace/writer.h"

/* For the exports that do not tell it themselves. */
#define CHECK_CALL(name) do { \
	if (unlikely(ss_checking)) \
		ss_check_call(#name); \
} while (0)

/* Returns from the handler with the real call's result, and grants what `begin` read if
 * the call succeeds. */
#define RETURN_PROVEN(begin, proven, name, ...) do { \
	struct ss_token t_ = begin; \
	hipError_t e_; \
	CHECK_CALL(name); \
	e_ = REAL(name, __VA_ARGS__); \
	ss_sync_end(ss_core, &t_, e_ == hipSuccess, false); \
	if (unlikely(ss_checking) && e_ == hipSuccess) \
		proven; \
	return ss_result(e_); \
} while (0)

/* The same for a call that is one of HIP's synchronization points; the other is for a query. `cause`,
 * `dev` and `stream` are for a recording. */
#define RETURN_WAITED(begin, proven, cause, dev, stream, name, ...) do { \
	struct ss_token t_ = begin; \
	uint64_t clock_ = ss_trace_wait_begin(); \
	hipError_t e_; \
	CHECK_CALL(name); \
	e_ = REAL(name, __VA_ARGS__); \
	if (unlikely(ss_checking) && e_ == hipSuccess) \
		proven; \
	ss_trace_wait_end(clock_, cause, dev, stream); \
	ss_sync_end(ss_core, &t_, e_ == hipSuccess, true); \
	ss_sync_after(false); \
	return ss_result(e_); \
} while (0)

/* By the handle hipStreamLegacy the null stream is waited for, or asked, alone: the blocking streams, which it is
 * joined with by NULL, may run on (since 7.0; queries earlier). Such a call proves nothing to us. */
#define REFUSE_UNPROVEN(tl, handle) do { \
	REFUSE(tl, handle, hipErrorContextIsDestroyed); \
	if ((handle) == SS_LEGACY) \
		tl = NULL; \
} while (0)

#define RETURN_SYNC(handle, name, stream) do { \
	struct ss_timeline *tl_; \
	REFUSE_UNPROVEN(tl_, handle); \
	RETURN_WAITED(ss_stream_sync_begin(ss_core, tl_), ss_check_reached(ss_stream_or_null(handle)), \
		      SS_TRACE_WAIT_STREAM, \
		      tl_ ? ss_timeline_device(tl_) : -1, tl_ ? ss_timeline_native(tl_) : NULL, \
		      name, stream); \
} while (0)

#define COMMAND_MS 2 /* an idle stream needs no longer for one command */

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* A query. After pool calls on a stream the runtime would have left a marker there, which joins the null stream; ours
 * left none, so it is enqueued here. A program that has waited and asks once must still hear that the stream is done, so
 * the question is repeated for as long as an idle stream needs for one marker. */
#define RETURN_QUERY(handle, name, stream) do { \
	struct ss_timeline *tl_; \
	struct ss_token t_; \
	hipError_t e_; \
	double end_; \
	bool late_; \
	REFUSE_UNPROVEN(tl_, handle); \
	CHECK_CALL(name); \
	late_ = ss_stream_uncovered(tl_); \
	e_ = late_ ? REAL(name, stream) : hipSuccess; \
	if (e_ != hipSuccess) \
		return ss_result(e_); \
	t_ = ss_stream_query_begin(ss_core, tl_); \
	end_ = late_ ? now_ms() + COMMAND_MS : 0; \
	do { \
		e_ = REAL(name, stream); \
	} while (e_ == hipErrorNotReady && late_ && now_ms() < end_); \
	ss_sync_end(ss_core, &t_, e_ == hipSuccess, false); \
	if (unlikely(ss_checking) && e_ == hipSuccess) \
		ss_check_reached(ss_stream_or_null(handle)); \
	return ss_result(e_); \
} while (0)

/* For failures only: a thread on the fast path has no error that a success would replace. */
static int failed(int err)
{
	return ss_result((hipError_t)err);
}

static hipError_t hipStreamSynchronize_slow(hipStream_t stream)
{
	RETURN_SYNC(stream, hipStreamSynchronize, stream);
}

static int real_stream_sync(void *stream)
{
	return ss_real.hipStreamSynchronize(stream);
}

static int slow_stream_sync(void *stream)
{
	return SLOW_PATH(hipStreamSynchronize, (stream));
}

hipError_t do_hipStreamSynchronize(hipStream_t stream)
{
	static const struct ss_sync_call call = {real_stream_sync, slow_stream_sync, failed};

	if (ON_FAST_PATH((uintptr_t)stream > 2 && !ss_sync_watched()))
		return (hipError_t)ss_stream_sync(ss_core, stream, &call, &ss_tls.depth);
	return (hipError_t)slow_stream_sync(stream);
}
SS_HOT(hipStreamSynchronize)

hipError_t do_hipStreamSynchronize_spt(hipStream_t stream)
{
	RETURN_SYNC(ss_spt_stream(stream), hipStreamSynchronize_spt, stream);
}

hipError_t do_hipStreamQuery(hipStream_t stream)
{
	ss_debts_pay();
	RETURN_QUERY(stream, hipStreamQuery, stream);
}

hipError_t do_hipStreamQuery_spt(hipStream_t stream)
{
	ss_debts_pay();
	RETURN_QUERY(ss_spt_stream(stream), hipStreamQuery_spt, stream);
}

static hipError_t hipEventSynchronize_slow(hipEvent_t event)
{
	RETURN_WAITED(ss_event_sync_begin(ss_core, event), ss_check_event_reached(event), SS_TRACE_WAIT_EVENT, -1, NULL,
		      hipEventSynchronize, event);
}

static int real_event_sync(void *event)
{
	return ss_real.hipEventSynchronize(event);
}

static int slow_event_sync(void *event)
{
	return SLOW_PATH(hipEventSynchronize, (event));
}

hipError_t do_hipEventSynchronize(hipEvent_t event)
{
	static const struct ss_sync_call call = {real_event_sync, slow_event_sync, failed};

	if (ON_FAST_PATH(!ss_sync_watched()))
		return (hipError_t)ss_event_sync(ss_core, event, true, &call, &ss_tls.depth);
	return (hipError_t)slow_event_sync(event);
}
SS_HOT(hipEventSynchronize)

static hipError_t hipEventQuery_slow(hipEvent_t event)
{
	ss_debts_pay();
	RETURN_PROVEN(ss_event_sync_begin(ss_core, event), ss_check_event_reached(event), hipEventQuery, event);
}

static int real_event_query(void *event)
{
	return ss_real.hipEventQuery(event);
}

static int slow_event_query(void *event)
{
	return SLOW_PATH(hipEventQuery, (event));
}

hipError_t do_hipEventQuery(hipEvent_t event)
{
	static const struct ss_sync_call call = {real_event_query, slow_event_query, failed};

	if (ON_FAST_PATH(!atomic_load_explicit(&ss_debts_due, memory_order_acquire)))
		return (hipError_t)ss_event_sync(ss_core, event, false, &call, &ss_tls.depth);
	return (hipError_t)slow_event_query(event);
}
SS_HOT(hipEventQuery)

/* ---- wait --------------------------------------------------------------- */

#define RETURN_WAIT(handle, name, stream, event, flags) do { \
	struct ss_timeline *tl_; \
	struct ss_token t_; \
	hipError_t e_; \
	bool joins_; \
	REFUSE(tl_, handle, hipErrorInvalidHandle); \
	/* Announced before the real call, as a capture is (capture.c). */ \
	joins_ = ss_capture_live() && tl_ && ss_capture_has_event(event) && \
		 ss_capture_join(handle, tl_, event); \
	t_ = ss_wait_begin(ss_core, event, tl_); \
	if (unlikely(ss_checking)) \
		ss_check_waits(tl_, event); \
	e_ = REAL(name, stream, event, flags); \
	ss_wait_end(ss_core, &t_, e_ == hipSuccess); \
	if (unlikely(ss_checking)) \
		ss_check_waits(tl_, event); \
	if (joins_ && e_ != hipSuccess) \
		ss_capture_drop_stream(tl_); \
	return ss_result(e_); \
} while (0)

static hipError_t hipStreamWaitEvent_slow(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	RETURN_WAIT(stream, hipStreamWaitEvent, stream, event, flags);
}

static int real_wait(void *stream, void *event, unsigned flags)
{
	return ss_result(ss_real.hipStreamWaitEvent(stream, event, flags));
}

static int slow_wait(void *stream, void *event, unsigned flags)
{
	return SLOW_PATH(hipStreamWaitEvent, (stream, event, flags));
}

hipError_t do_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	static const struct ss_wait_call call = {real_wait, slow_wait};

	if (ON_FAST_PATH((uintptr_t)stream > 2))
		return (hipError_t)ss_wait(ss_core, stream, event, flags, &call, &ss_tls.depth);
	return (hipError_t)slow_wait(stream, event, flags);
}
SS_HOT(hipStreamWaitEvent)

hipError_t do_hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	RETURN_WAIT(ss_spt_stream(stream), hipStreamWaitEvent_spt, stream, event, flags);
}
