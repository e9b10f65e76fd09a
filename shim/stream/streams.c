/* SPDX-License-Identifier: MIT */
/*
 * Creates and destroys streams. A stream enters the core's table after the real create and leaves
 * the table before the real destroy. No lock.
 */
#include "driver/rocm/rocm.h"
#include "shim/alloc/device_wait.h"
#include "shim/process/current_device.h"
#include "shim/stream/capture.h"
#include "shim/stream/context_streams.h"
#include "shim/stream/watched_call.h"

static hipError_t created(hipError_t err, hipStream_t *stream, unsigned int flags)
{
	if (err == hipSuccess && stream)
		ss_stream_register(*stream, flags, ss_current_device(NULL));
	return ss_result(err);
}

/* From here on the null stream does not order all work, so the mode in which hipFree skips its
 * wait must end before the new stream can be used. */
static void another_stream(void)
{
	int dev = ss_current_device(NULL);

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
	if (unlikely(ss_checking))
		ss_check_stream_destroyed(tl);
	/* The null stream may have reused memory that this stream freed, because the null stream is
	 * ordered after this stream. The destruction of the stream ends that order, so wait now. */
	if (ss_timeline_retire(ss_core, tl) && !ss_capture_live())
		(void)REAL(hipStreamSynchronize, stream);
	ss_rocm_stream_destroyed(stream);
	ss_stream_pins_drain(stream);
}

hipError_t do_hipStreamDestroy(hipStream_t stream)
{
	enum ss_timeline_kind kind;
	struct ss_timeline *tl;
	hipError_t err;
	bool refused;
	int dev;

	tl = ss_stream_checked(stream, &refused);
	if (refused)
		return ss_fail(hipErrorContextIsDestroyed);
	if (!tl || (uintptr_t)stream <= 2) {
		ss_context_forget(stream); /* the stream may be detached from its context */
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
