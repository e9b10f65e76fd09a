/* SPDX-License-Identifier: MIT */
/*
 * Streams and events: the real call, with what it proves read before and granted
 * after (design section 3).
 *
 * Streams and events leave the tables before the real destroy and enter after
 * the real create. No lock.
 */
#include <time.h>

#include "driver/rocm.h"
#include "shim/share/import.h"

/* 7.x follows a handle without asking whether it is one: garbage, and streams that
 * are gone, crash in most calls (observed on 7.2.4). There the answer that other
 * releases give is ours. */
#define REFUSE(tl, handle, code) do { \
	hipError_t bad_ = hipSuccess; \
	tl = ss_stream(handle, &bad_); \
	if (unlikely(!tl && bad_ == hipErrorInvalidHandle && ss_runtime()->major >= 7)) \
		return ss_fail(code); \
} while (0)

/* What is hot goes straight to the core, which makes the real call itself, unless this
 * process, thread or handle is out of the ordinary. All of these functions exist in
 * every release. */
#define USUAL(is) (likely(is) && ss_fast_path())
#define LONG_WAY(name, args) \
	(ss_pass(SS_WATCH) ? ss_real.name ? ss_real.name args : ss_real_missing() : name##_long args)

/* ---- streams come and go ------------------------------------------------ */

static hipError_t created(hipError_t err, hipStream_t *stream, unsigned int flags)
{
	hipError_t none;

	if (err == hipSuccess && stream)
		ss_stream_register(*stream, flags, ss_current_device(&none));
	return ss_result(err);
}

/* From here on one stream does not order everything: that ends the mode in which
 * hipFree does not wait, before the stream can be used. */
static void another_stream(void)
{
	hipError_t err;
	int dev = ss_current_device(&err);

	if (dev >= 0)
		ss_observer_add(dev, SS_OBSERVER_STREAM);
}

hipError_t do_hipStreamCreate(hipStream_t *stream)
{
	another_stream();
	return created(REAL(hipStreamCreate, stream), stream, 0);
}

hipError_t do_hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
	another_stream();
	return created(REAL(hipStreamCreateWithFlags, stream, flags), stream, flags);
}

hipError_t do_hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority)
{
	another_stream();
	return created(REAL(hipStreamCreateWithPriority, stream, flags, priority), stream, flags);
}

hipError_t do_hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words,
					   const uint32_t *mask)
{
	another_stream();
	return created(REAL(hipExtStreamCreateWithCUMask, stream, words, mask), stream, 0);
}

void ss_stream_retire(hipStream_t stream, struct ss_timeline *tl)
{
	if (ss_capture_live())
		ss_capture_drop_stream(tl);
	/* The null stream may have taken what this one freed, counting on being
	 * behind it: then its work must be over while there is nothing to join. */
	if (ss_timeline_retire(ss_core, tl) && !ss_capture_live())
		(void)REAL(hipStreamSynchronize, stream);
	ss_rocm_stream_gone(stream);
	ss_stream_pins_drain(stream);
}

hipError_t do_hipStreamDestroy(hipStream_t stream)
{
	enum ss_timeline_kind kind;
	struct ss_timeline *tl;
	hipError_t err;
	int dev;

	REFUSE(tl, stream, hipErrorContextIsDestroyed);
	if (!tl || (uintptr_t)stream <= 2) {
		ss_context_forget(stream); /* detached */
		return ss_result(REAL(hipStreamDestroy, stream));
	}
	dev = ss_timeline_device(tl);
	kind = ss_timeline_kind(tl);
	ss_stream_retire(stream, tl);
	err = REAL(hipStreamDestroy, stream);
	if (err == hipSuccess)
		ss_context_forget(stream);
	else
		ss_timeline_add(ss_core, dev, stream, kind, true);
	return ss_result(err);
}

/* ---- synchronize, query ------------------------------------------------- */

/* One of HIP's synchronization points (`point`), or a query that proves as much
 * when it succeeds. */
#define PROVES(begin, point, name, ...) do { \
	struct ss_token t_ = begin; \
	hipError_t e_ = REAL(name, __VA_ARGS__); \
	ss_sync_end(ss_core, &t_, e_ == hipSuccess, point); \
	if (point) \
		ss_import_settle(false); \
	return ss_result(e_); \
} while (0)

#define SYNCS(handle, name, stream) do { \
	struct ss_timeline *tl_; \
	REFUSE(tl_, handle, hipErrorContextIsDestroyed); \
	PROVES(ss_stream_sync_begin(ss_core, tl_), true, name, stream); \
} while (0)

#define COMMAND_MS 2 /* how long an idle stream may take over one command */

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Where hits and frees have left a blocking stream without the marker that the
 * runtime's own calls enqueue, the query has to enqueue it: a program that asks
 * once, after it has waited, must still hear that the stream is done. */
#define ASKS(handle, name, stream) do { \
	struct ss_timeline *tl_; \
	struct ss_token t_; \
	hipError_t e_; \
	double end_; \
	bool late_; \
	REFUSE(tl_, handle, hipErrorContextIsDestroyed); \
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
	return ss_result(e_); \
} while (0)

/* (A success needs no word: whoever takes the short way has no error to forget.) */
static int failed(int err)
{
	return ss_result((hipError_t)err);
}

static hipError_t hipStreamSynchronize_long(hipStream_t stream)
{
	SYNCS(stream, hipStreamSynchronize, stream);
}

static int real_stream_sync(void *stream)
{
	return ss_real.hipStreamSynchronize(stream);
}

static int long_stream_sync(void *stream)
{
	return LONG_WAY(hipStreamSynchronize, (stream));
}

hipError_t do_hipStreamSynchronize(hipStream_t stream)
{
	static const struct ss_sync_call call = {real_stream_sync, long_stream_sync, failed};

	if (USUAL((uintptr_t)stream > 2 && !ss_import_ending()))
		return (hipError_t)ss_stream_sync(ss_core, stream, &call, &ss_tls.depth);
	return (hipError_t)long_stream_sync(stream);
}
SS_HOT(hipStreamSynchronize)

hipError_t do_hipStreamSynchronize_spt(hipStream_t stream)
{
	SYNCS(ss_spt_stream(stream), hipStreamSynchronize_spt, stream);
}

hipError_t do_hipStreamQuery(hipStream_t stream)
{
	ss_debts_pay();
	ASKS(stream, hipStreamQuery, stream);
}

hipError_t do_hipStreamQuery_spt(hipStream_t stream)
{
	ss_debts_pay();
	ASKS(ss_spt_stream(stream), hipStreamQuery_spt, stream);
}

static hipError_t hipEventSynchronize_long(hipEvent_t event)
{
	PROVES(ss_event_sync_begin(ss_core, event), true, hipEventSynchronize, event);
}

static int real_event_sync(void *event)
{
	return ss_real.hipEventSynchronize(event);
}

static int long_event_sync(void *event)
{
	return LONG_WAY(hipEventSynchronize, (event));
}

hipError_t do_hipEventSynchronize(hipEvent_t event)
{
	static const struct ss_sync_call call = {real_event_sync, long_event_sync, failed};

	if (USUAL(!ss_import_ending()))
		return (hipError_t)ss_event_sync(ss_core, event, true, &call, &ss_tls.depth);
	return (hipError_t)long_event_sync(event);
}
SS_HOT(hipEventSynchronize)

static hipError_t hipEventQuery_long(hipEvent_t event)
{
	ss_debts_pay();
	PROVES(ss_event_sync_begin(ss_core, event), false, hipEventQuery, event);
}

static int real_event_query(void *event)
{
	return ss_real.hipEventQuery(event);
}

static int long_event_query(void *event)
{
	return LONG_WAY(hipEventQuery, (event));
}

hipError_t do_hipEventQuery(hipEvent_t event)
{
	static const struct ss_sync_call call = {real_event_query, long_event_query, failed};

	if (USUAL(!atomic_load_explicit(&ss_debts_due, memory_order_acquire)))
		return (hipError_t)ss_event_sync(ss_core, event, false, &call, &ss_tls.depth);
	return (hipError_t)long_event_query(event);
}
SS_HOT(hipEventQuery)

/* ---- wait --------------------------------------------------------------- */

#define WAITS(handle, name, stream, event, flags) do { \
	struct ss_timeline *tl_; \
	struct ss_token t_; \
	hipError_t e_; \
	bool joins_; \
	REFUSE(tl_, handle, hipErrorInvalidHandle); \
	/* Announced before, as a capture is (capture.c). */ \
	joins_ = ss_capture_live() && tl_ && ss_capture_has_event(event) && \
		 ss_capture_join(tl_, event); \
	t_ = ss_wait_begin(ss_core, event, tl_); \
	e_ = REAL(name, stream, event, flags); \
	ss_wait_end(ss_core, &t_, e_ == hipSuccess); \
	if (joins_ && e_ != hipSuccess) \
		ss_capture_drop_stream(tl_); \
	return ss_result(e_); \
} while (0)

static hipError_t hipStreamWaitEvent_long(hipStream_t stream, hipEvent_t event, unsigned flags)
{
	WAITS(stream, hipStreamWaitEvent, stream, event, flags);
}

static int real_wait(void *stream, void *event, unsigned flags)
{
	return ss_result(ss_real.hipStreamWaitEvent(stream, event, flags));
}

static int long_wait(void *stream, void *event, unsigned flags)
{
	return LONG_WAY(hipStreamWaitEvent, (stream, event, flags));
}

hipError_t do_hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	static const struct ss_wait_call call = {real_wait, long_wait};

	if (USUAL((uintptr_t)stream > 2))
		return (hipError_t)ss_wait(ss_core, stream, event, flags, &call, &ss_tls.depth);
	return (hipError_t)long_wait(stream, event, flags);
}
SS_HOT(hipStreamWaitEvent)

hipError_t do_hipStreamWaitEvent_spt(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
	WAITS(ss_spt_stream(stream), hipStreamWaitEvent_spt, stream, event, flags);
}

/* ---- record ------------------------------------------------------------- */

struct recording {
	struct ss_timeline *tl;
	bool captured;
	struct ss_token token;
};

/* Recorded while its stream captures, an event is a place in a graph and not a
 * time: no clock. As an external node (`external`) it is recorded by launches
 * that nobody sees, for the rest of its life. */
static struct recording record_begin(hipEvent_t event, struct ss_timeline *tl, bool external)
{
	struct recording r = {.tl = tl};

	r.captured = ss_capture_live() && tl && ss_timeline_capturing(tl);
	if (r.captured)
		ss_event_taint(ss_core, event, external);
	r.token = ss_record_begin(ss_core, event, r.tl);
	return r;
}

static hipError_t record_end(struct recording *r, hipEvent_t event, hipError_t err)
{
	ss_record_end(ss_core, &r->token, err == hipSuccess && !r->captured);
	if (r->captured && err == hipSuccess)
		ss_capture_event_set(event, r->tl);
	else if (ss_capture_live())
		ss_capture_event_clear(event);
	return ss_result(err);
}

#define EVENT_RECORD_EXTERNAL 1 /* hipEventRecordExternal, since 6.4 */

#define RECORDS(handle, external, name, event, ...) do { \
	struct ss_timeline *tl_; \
	struct recording r_; \
	REFUSE(tl_, handle, hipErrorContextIsDestroyed); \
	r_ = record_begin(event, tl_, external); \
	return record_end(&r_, event, REAL(name, event, __VA_ARGS__)); \
} while (0)

static hipError_t hipEventRecord_long(hipEvent_t event, hipStream_t stream)
{
	RECORDS(stream, false, hipEventRecord, event, stream);
}

static int real_record(void *event, void *stream)
{
	return ss_result(ss_real.hipEventRecord(event, stream));
}

static int long_record(void *event, void *stream)
{
	return LONG_WAY(hipEventRecord, (event, stream));
}

hipError_t do_hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	static const struct ss_record_call call = {real_record, long_record};

	if (USUAL((uintptr_t)stream > 2))
		return (hipError_t)ss_record(ss_core, event, stream, &call, &ss_tls.depth);
	return (hipError_t)long_record(event, stream);
}
SS_HOT(hipEventRecord)

hipError_t do_hipEventRecord_spt(hipEvent_t event, hipStream_t stream)
{
	RECORDS(ss_spt_stream(stream), false, hipEventRecord_spt, event, stream);
}

hipError_t do_hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned int flags)
{
	RECORDS(stream, flags & EVENT_RECORD_EXTERNAL, hipEventRecordWithFlags, event, stream,
		flags);
}

/* ---- events come and go ------------------------------------------------- */

static hipError_t event_created(hipError_t err, hipEvent_t *event)
{
	if (err == hipSuccess && event)
		ss_event_add(ss_core, *event);
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
	if (ss_capture_live())
		ss_capture_event_clear(event);
	return ss_result(REAL(hipEventDestroy, event));
}

/* Another process may record it from now on. */
hipError_t do_hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event)
{
	if (event)
		ss_event_taint(ss_core, event, true);
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
	}
	return ss_result(err);
}
