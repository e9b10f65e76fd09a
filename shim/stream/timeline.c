/* SPDX-License-Identifier: MIT */
/*
 * From a stream handle to its timeline.
 *
 * Locks: none. A pin is a hazard pointer: a slot that names the stream, looked
 * through by whoever is about to destroy it.
 */
#include <sched.h>
#include <string.h>

#include "driver/rocm.h"
#include "shim/process/bypass.h"
#include "shim/shim.h"

int ss_current_device(hipError_t *err)
{
	int dev = -1;

	*err = hipSuccess;
	if (ss_device_count() == 1)
		return 0; /* no other can be current */
	*err = REAL(hipGetDevice, &dev);
	return *err == hipSuccess ? dev : -1;
}

/* A handle that nobody saw created. Garbage must be safe to ask about: up to 6.x
 * every call looks a handle up in a set (hip::isValid), 7.2.4 only this one does
 * and follows the handle in all others. 5.2 does not have it. */
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
		/* Versions differ (InvalidValue, ContextIsDestroyed); the
		 * allocation calls say InvalidHandle. */
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
	tl = ss_timeline_add(ss_core, dev, stream,
			     flags & hipStreamNonBlocking ? SS_TL_NONBLOCKING : SS_TL_BLOCKING,
			     false);
	if (!tl)
		*err = hipErrorOutOfMemory;
	ss_observer_add(dev, SS_OBSERVER_STREAM | SS_OBSERVER_UNKNOWN);
	ss_bypass_report("a stream was created past the shim");
	return tl;
}

struct ss_timeline *ss_stream_slow(hipStream_t stream, hipError_t *err)
{
	struct ss_timeline *tl;
	int dev;

	/* hipStreamLegacy, (hipStream_t)1, came with 6.x. */
	if ((uintptr_t)stream > 2 || (stream == (hipStream_t)1 && ss_runtime()->major < 6))
		return unknown(stream, err);
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
	ss_bypass_check();
	ss_context_forget(stream); /* an older one's handle */
	ss_timeline_add(ss_core, dev, stream,
			flags & hipStreamNonBlocking ? SS_TL_NONBLOCKING : SS_TL_BLOCKING, true);
	ss_observer_add(dev, SS_OBSERVER_STREAM);
}

hipStream_t ss_streams_used(const void *list, unsigned int count, size_t size, size_t at)
{
	for (unsigned int i = 0; list && i < count; i++) {
		hipStream_t stream;

		memcpy(&stream, (const char *)list + i * size + at, sizeof(stream));
		ss_stream_used(stream);
	}
	return NULL;
}

/* ---- pins --------------------------------------------------------------- */

#define PINS 64

struct ss_stream_pin {
	_Atomic(hipStream_t) stream;
};

static struct ss_stream_pin pins[PINS];

/* NULL: the stream is not there any more. Waits for a free slot if 64 threads
 * wait for streams at once. */
struct ss_stream_pin *ss_stream_pin(hipStream_t stream)
{
	for (unsigned i = 0;; i = (i + 1) % PINS) {
		hipStream_t none = NULL;

		if (atomic_compare_exchange_strong(&pins[i].stream, &none, stream)) {
			/* Named first, looked up second: the destroyer forgets
			 * first and looks at the slots second. */
			if (ss_timeline_find(ss_core, stream))
				return &pins[i];
			ss_stream_unpin(&pins[i]);
			return NULL;
		}
		if (i == PINS - 1)
			sched_yield();
	}
}

void ss_stream_unpin(struct ss_stream_pin *pin)
{
	atomic_store(&pin->stream, NULL);
}

void ss_stream_pins_drain(hipStream_t stream)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < PINS; i++)
		while (atomic_load(&pins[i].stream) == stream)
			sched_yield();
}

/* ---- the current device ------------------------------------------------- */

bool ss_device_switch(struct ss_device_switch *s, int dev)
{
	hipError_t err;

	s->old = ss_current_device(&err);
	s->switched = false;
	if (s->old < 0)
		return false;
	if (s->old == dev)
		return true;
	s->switched = REAL(hipSetDevice, dev) == hipSuccess;
	return s->switched;
}

void ss_device_restore(struct ss_device_switch *s)
{
	if (s->switched)
		(void)REAL(hipSetDevice, s->old);
}

/* ---- threads that end --------------------------------------------------- */

/* A wait of ours, legal beside any capture but that of the stream itself. */
bool ss_thread_drain(int dev)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	struct ss_timeline *tl = ss_timeline_thread(ss_core, dev);
	struct ss_token t;
	struct ss_device_switch s;
	hipError_t err;

	if (!tl || ss_timeline_capturing(tl) || !ss_device_switch(&s, dev))
		return false;
	err = REAL(hipThreadExchangeStreamCaptureMode, &mode);
	if (err == hipSuccess) {
		t = ss_stream_sync_begin(ss_core, tl);
		err = REAL(hipStreamSynchronize, SS_PER_THREAD);
		ss_sync_end(ss_core, &t, err == hipSuccess, false);
		(void)REAL(hipThreadExchangeStreamCaptureMode, &mode);
	}
	ss_device_restore(&s);
	return err == hipSuccess;
}
