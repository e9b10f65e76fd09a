/* SPDX-License-Identifier: MIT */
/* Waits for a whole device, as the real hipFree does, and pins of streams that are
 * waited for. */
#ifndef SS_SHIM_DEVICE_WAIT_H
#define SS_SHIM_DEVICE_WAIT_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

#include "core/core.h"

/* Waits for every stream of dev, which is current. An error if one of them is captured
 * meanwhile. */
hipError_t ss_wait_streams(int dev);
/* Waits for dev and begins a grant for the work that completed. True: pass *t to the core. False:
 * no wait was made and *t is void. */
bool ss_wait_device(int dev, struct ss_token *t);

/* Waits by a call in which the runtime waits. Used while a stream captures, when none of our calls
 * may touch a null stream, and after exit() has begun, when we no longer know all streams. The
 * first fails, as the real hipFree does, if a capture forbids the call. The relaxed ones never
 * disturb a capture, as the real hipFreeAsync and hipIpcCloseMemHandle. */
hipError_t ss_wait_in_free(int dev);
hipError_t ss_wait_in_free_relaxed(int dev);
hipError_t ss_wait_in_runtime(int dev);

/* Before the real destroy of a stream that has left the core's table: waits until no thread
 * waits for the stream on our account. */
void ss_stream_pins_drain(hipStream_t stream);
/* Before the real begin of a capture of a stream that the core knows to be captured: waits until no
 * thread is about to wait for the stream on our account. */
void ss_stream_pins_pass(hipStream_t stream);

#endif
