/* SPDX-License-Identifier: MIT */
/* The streams that are being captured. Call these functions only while ss_capture_live(): none is
 * cheap. */
#ifndef SS_SHIM_CAPTURE_H
#define SS_SHIM_CAPTURE_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

struct ss_timeline;

/* Was the event last recorded on a capturing stream? */
bool ss_capture_has_event(hipEvent_t event);
void ss_capture_event_set(hipEvent_t event, struct ss_timeline *tl);
void ss_capture_event_clear(hipEvent_t event);
/* Before tl waits for an event that was recorded on a capturing stream. True: tl was in no capture
 * and has joined the event's; ss_capture_drop_stream() undoes this if the wait fails. */
bool ss_capture_join(hipStream_t stream, struct ss_timeline *tl, hipEvent_t event);
/* Is hipMallocAsync on a stream of dev that is not captured an error now? */
bool ss_capture_refuses_alloc(int dev);
/* The stream is about to be destroyed, or all streams of a device are. */
void ss_capture_drop_stream(struct ss_timeline *tl);
void ss_capture_drop_device(int dev);

#endif
