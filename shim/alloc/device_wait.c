/* SPDX-License-Identifier: MIT */
/*
 * Waits for a whole device, as the real hipFree does.
 *
 * While a thread waits for a stream that the program did not ask it to wait for, the stream must
 * not be destroyed, and from 6.0 on a wait that starts while the stream is captured ends the
 * capture. A pin prevents both. A pin is a hazard pointer: a slot that names the stream. A thread
 * that destroys or captures a stream looks through all slots first.
 *
 * Locks: none.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/backoff.h"
#include "shim/alloc/device_wait.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

/* ---- pins --------------------------------------------------------------- */

#define PINS 64
#define PASS_NAPS 50 /* naps of PASS_NS, until a wait has surely started */
#define PASS_NS 100000

struct pin {
	_Atomic(hipStream_t) stream;
};

static struct pin pins[PINS];

static void unpin(struct pin *pin)
{
	atomic_store(&pin->stream, NULL);
}

/* NULL: the stream has been destroyed. Waits for a free slot if 64 threads hold one. */
static struct pin *pin_stream(hipStream_t stream)
{
	unsigned turn = 0;

	for (unsigned i = 0;; i = (i + 1) % PINS) {
		hipStream_t none = NULL;

		if (atomic_compare_exchange_strong(&pins[i].stream, &none, stream)) {
			/* We write the slot, then look the stream up. The destroyer forgets
			 * the stream, then reads the slots. One of the two sees the other. */
			if (ss_timeline_find(ss_core, stream))
				return &pins[i];
			unpin(&pins[i]);
			return NULL;
		}
		if (i == PINS - 1)
			ss_backoff(&turn);
	}
}

void ss_stream_pins_drain(hipStream_t stream)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < PINS; i++)
		for (unsigned turn = 0; atomic_load(&pins[i].stream) == stream;)
			ss_backoff(&turn);
}

/* A wait looks for a capture when the wait starts. So a capture need not wait until the wait ends:
 * the stream may depend on the program's next action. */
void ss_stream_pins_pass(hipStream_t stream)
{
	struct timespec nap = {0, PASS_NS};

	for (int i = 0; i < PINS && stream; i++)
		for (int k = 0; k < PASS_NAPS && atomic_load(&pins[i].stream) == stream; k++)
			nanosleep(&nap, NULL);
}

/* The stream is pinned. Either this function sees the capture that begins, or the thread that
 * begins the capture sees the pin. */
static bool captured(hipStream_t stream)
{
	struct ss_timeline *tl = atomic_load(&ss_captures) ? ss_timeline_find(ss_core, stream) :
							     NULL;

	return tl && ss_timeline_capturing(tl);
}

/* While this wait runs no other thread should query the stream. */
static hipError_t wait_for(struct ss_timeline *tl, hipStream_t stream)
{
	struct ss_waiting waiting = ss_waiting_begin(ss_core, tl);
	hipError_t err = REAL(hipStreamSynchronize, stream);

	ss_waiting_end(ss_core, &waiting);
	return err;
}

static hipError_t wait_pinned(hipStream_t stream)
{
	hipError_t err = hipSuccess;
	struct pin *pin = pin_stream(stream);

	if (pin) { /* else the stream was destroyed, and its retirement told the core */
		err = captured(stream) ? hipErrorStreamCaptureUnsupported :
					 wait_for(ss_timeline_find(ss_core, stream), stream);
		unpin(pin);
	}
	return err;
}

/* ---- waits -------------------------------------------------------------- */

#define STREAMS_AT_ONCE 64

/* As SyncAllStreams in the runtime: the null stream, which joins the blocking streams of all
 * threads, then each non-blocking one. */
hipError_t ss_wait_streams(int dev)
{
	void *few[STREAMS_AT_ONCE], **list = few;
	size_t n, max = STREAMS_AT_ONCE;
	hipError_t err = wait_for(ss_timeline_null(ss_core, dev), NULL);

	while ((n = ss_streams_nonblocking(ss_core, dev, list, max)) > max) {
		if (list != few)
			free(list);
		max = n + 16;
		list = malloc(max * sizeof(*list));
		if (!list)
			return hipErrorOutOfMemory;
	}
	for (size_t i = 0; i < n && err == hipSuccess; i++)
		err = wait_pinned(list[i]);
	if (list != few)
		free(list);
	return err;
}

bool ss_wait_device(int dev, struct ss_token *t)
{
	bool distrusted = ss_distrusted(ss_core);
	struct ss_device_switch s;
	hipError_t err;

	if (!ss_device_switch(&s, dev))
		return false;
	*t = distrusted ? ss_device_sync_begin(ss_core, dev) : ss_streams_sync_begin(ss_core, dev);
	/* If a stream may exist that the shim did not see, only the device knows all streams. */
	err = distrusted ? REAL(hipDeviceSynchronize) : ss_wait_streams(dev);
	ss_device_restore(&s);
	if (err == hipSuccess)
		return true;
	ss_sync_end(ss_core, t, false, false);
	return false;
}

/* Frees a page with the real hipFree, which waits for the device. */
static hipError_t wait_by_page(int dev)
{
	struct ss_waiting waiting;
	hipError_t err = hipSuccess;
	void *page = NULL;
	struct ss_device_switch s;

	if (!ss_device_switch(&s, dev))
		return err;
	waiting = ss_waiting_begin_device(ss_core, dev);
	if (REAL(hipExtMallocWithFlags, &page, 4096, hipDeviceMallocDefault) == hipSuccess)
		err = REAL(hipFree, page);
	else if (!ss_capture_live())
		err = REAL(hipDeviceSynchronize);
	ss_waiting_end(ss_core, &waiting);
	ss_device_restore(&s);
	return err;
}

hipError_t ss_wait_in_free(int dev)
{
	struct ss_waiting waiting = ss_waiting_begin_device(ss_core, dev);
	hipError_t err = REAL(hipFree, NULL); /* fails if a capture forbids hipFree */

	ss_waiting_end(ss_core, &waiting);
	return err != hipSuccess || ss_options.free_sync == SS_FREE_SYNC_NEVER ? err :
										 wait_by_page(dev);
}

static hipError_t relaxed(hipError_t (*wait)(int), int dev)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	hipError_t err = REAL(hipThreadExchangeStreamCaptureMode, &mode);

	if (err != hipSuccess)
		return err;
	err = wait(dev);
	(void)REAL(hipThreadExchangeStreamCaptureMode, &mode);
	return err;
}

hipError_t ss_wait_in_free_relaxed(int dev)
{
	return relaxed(ss_wait_in_free, dev);
}

hipError_t ss_wait_in_runtime(int dev)
{
	return relaxed(wait_by_page, dev);
}
