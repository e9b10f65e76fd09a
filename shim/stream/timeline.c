/* SPDX-License-Identifier: MIT */
/*
 * Finds the timeline of a stream handle. Streams enter the core's table after their real create and
 * leave the table before their real destroy (streams.c). No lock.
 */
#include <string.h>

#include "driver/rocm/resolve.h"
#include "shim/process/bypass.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/stream/context_streams.h"
#include "shim/stream/thread_exit.h"
#include "shim/stream/timeline.h"

/* `stream` is a handle that the shim did not see created, or garbage. The question to the runtime
 * must be safe for garbage. Up to 6.x every call looks a handle up in a set (hip::isValid). 7.2.4
 * does so in hipStreamGetDevice only and follows the handle in all other calls. 5.2 lacks
 * hipStreamGetDevice. */
static struct ss_timeline *unknown(hipStream_t stream, hipError_t *err)
{
	struct ss_timeline *tl;
	unsigned int flags = 0;
	hipDevice_t dev = -1;

	*err = ss_context_detached(stream);
	if (*err != hipSuccess)
		return NULL;
	if (ss_real.hipStreamGetDevice)
		*err = REAL(hipStreamGetDevice, stream, &dev);
	if (*err == hipSuccess)
		*err = REAL(hipStreamGetFlags, stream, &flags);
	if (*err != hipSuccess) {
		/* Releases differ (InvalidValue, ContextIsDestroyed); allocation calls
		 * return InvalidHandle in all of them. */
		if (*err != hipErrorNoDevice && *err != hipErrorNotInitialized)
			*err = hipErrorInvalidHandle;
		return NULL;
	}
	if (dev < 0 && ss_real.hipGetStreamDeviceId) {
		ss_enter();
		dev = ss_real.hipGetStreamDeviceId(stream);
		ss_leave();
	}
	if (dev < 0)
		dev = ss_current_device(err);
	if (dev < 0)
		return NULL;
	ss_device_used(dev);
	tl = ss_timeline_add(ss_core, dev, stream,
			     flags & hipStreamNonBlocking ? SS_TL_NONBLOCKING : SS_TL_BLOCKING,
			     false);
	if (!tl)
		*err = hipErrorOutOfMemory;
	ss_observer_add(dev, SS_OBSERVER_STREAM | SS_OBSERVER_UNKNOWN);
	ss_bypass_report("a stream was created past the shim");
	ss_observer_add(-1, SS_OBSERVER_UNKNOWN);
	return tl;
}

struct ss_timeline *ss_stream_slow(hipStream_t stream, hipError_t *err)
{
	struct ss_timeline *tl;
	int dev;

	if ((uintptr_t)stream > 2)
		return unknown(stream, err);
	/* hipStreamLegacy came with 6.x and means the null stream, except in synchronizations and
	 * queries (sync.c). Before 6.x this value is no handle, whatever the runtime reports as its
	 * flags and device. */
	if (stream == SS_LEGACY && ss_runtime()->major < 6) {
		*err = hipErrorInvalidHandle;
		return NULL;
	}
	dev = ss_current_device(err);
	if (dev < 0)
		return NULL;
	if (stream == SS_PER_THREAD) {
		ss_thread_exit_register(dev);
		ss_observer_add(dev, SS_OBSERVER_STREAM | SS_OBSERVER_THREAD);
		tl = ss_timeline_thread(ss_core, dev);
	} else {
		tl = ss_timeline_null(ss_core, dev);
	}
	if (!tl)
		*err = hipErrorOutOfMemory;
	return tl;
}

void ss_stream_register(hipStream_t stream, unsigned int flags, int dev)
{
	if (dev < 0 || !stream)
		return;
	ss_observers_look_now();
	ss_device_used(dev); /* a stream of an execution context may be of a device never current */
	ss_context_forget(stream); /* a destroyed stream may have had this handle */
	ss_timeline_add(ss_core, dev, stream,
			flags & hipStreamNonBlocking ? SS_TL_NONBLOCKING : SS_TL_BLOCKING, true);
	if (unlikely(ss_checking))
		ss_check_stream_created(ss_stream_or_null(stream));
	ss_observer_add(dev, SS_OBSERVER_STREAM);
}

/* The offsets belong to the two structures (older headers lack one). The function is at 0 in both,
 * and both have 56 bytes. */
static hipStream_t stream_of_launch(const char *launch, bool host)
{
	hipStream_t stream;

	memcpy(&stream, launch + (host ? 48 : 40), sizeof(stream));
	return stream;
}

/* Every stream of the list reaches this point before all of them, or only the first one,
 * continue. */
static void meet(const char *list, unsigned int count, bool host)
{
	for (unsigned int i = 0; ss_checking && i < count; i++)
		ss_check_stream_opaque(ss_stream_or_null(stream_of_launch(list + i * 56, host)),
				       false, true);
}

hipStream_t ss_launches(const void *list, unsigned int count, unsigned int flags, bool host)
{
	/* hipCooperativeLaunchMultiDeviceNoPreSync and NoPostSync */
	if (list && !(flags & 1))
		meet(list, count, host);
	for (unsigned int i = 0; list && i < count; i++) {
		const char *at = (const char *)list + i * 56;
		const void *function;
		hipStream_t stream;
		void **args;

		memcpy(&function, at, sizeof(function));
		stream = stream_of_launch(at, host);
		memcpy(&args, at + (host ? 32 : 48), sizeof(args));
		ss_stream_used(stream);
		if (unlikely(ss_checking))
			ss_check_kernel(ss_stream_or_null(stream), function, host, args, NULL);
	}
	if (list && !(flags & 2))
		meet(list, count, host);
	return NULL;
}

hipStream_t ss_values(hipStream_t stream, const void *list, unsigned int count)
{
	enum { WAIT_32 = 1, WRITE_32, WAIT_64 = 4, WRITE_64 };
	struct ss_timeline *tl = ss_checking && list ? ss_stream_or_null(stream) : NULL;

	for (unsigned int i = 0; tl && i < count; i++) {
		const char *at = (const char *)list + i * 48;
		const void *ptr;
		int op;

		memcpy(&op, at, sizeof(op));
		memcpy(&ptr, at + 8, sizeof(ptr));
		if (op == WAIT_32 || op == WRITE_32 || op == WAIT_64 || op == WRITE_64)
			ss_check_value(tl, ptr, op & 4 ? 8 : 4);
		if (op == WAIT_32 || op == WAIT_64)
			ss_check_stream_opaque(tl, true, false);
	}
	return stream;
}

hipStream_t ss_stream_in(const void *config, size_t at)
{
	hipStream_t stream = NULL;

	if (config)
		memcpy(&stream, (const char *)config + at, sizeof(stream));
	return stream;
}

int ss_device_of(hipStream_t stream)
{
	struct ss_timeline *tl = ss_stream_or_null(stream);

	return tl ? ss_timeline_device(tl) : -1;
}

void ss_stream_touch(hipStream_t stream, const void *ptr)
{
	struct ss_timeline *tl = ss_stream_or_null(stream);

	if (tl)
		ss_timeline_visits(ss_core, tl, ptr);
}
