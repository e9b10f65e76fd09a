/* SPDX-License-Identifier: MIT */
/* Decides which calls are legal while some stream captures, and which invalidate the capture. Each
 * function returns hipSuccess if the call is legal. Thread-safe. */
#ifndef SIM_HIP_CAPTURE_GUARD_H
#define SIM_HIP_CAPTURE_GUARD_H

#include <stdbool.h>

#include <hip/hip_runtime_api.h>

struct event;
struct stream;

hipError_t guard_unsafe(void);    /* hipMalloc and other calls that may wait */
hipError_t guard_sync_copy(void); /* hipMemcpy, hipMemset */
hipError_t guard_device_sync(void);
hipError_t guard_mempool(void);                      /* pools as objects */
hipError_t guard_stream(struct stream *s);           /* query of a stream, or wait for it */
hipError_t guard_event(struct event *ev, bool sync); /* the same of an event */

/* True: a blocking stream of the device, other than this one, captures. */
bool blocking_capture_on(int device, struct stream *except);

#endif
