/* SPDX-License-Identifier: MIT */
/* Finds the queue of a stream handle, and submits commands to the queue or to a capture. */
#ifndef SIM_HIP_SUBMIT_H
#define SIM_HIP_SUBMIT_H

#include <stdbool.h>

#include <hip/hip_runtime_api.h>

struct sim_command;
struct sim_queue;
struct stream;

/* hipStreamLegacy, which Debian 12's header does not have. */
#define STREAM_LEGACY ((hipStream_t)1)

/* The queue behind a handle; the caller drops the reference. *s is NULL for the implicit
 * streams. */
hipError_t resolve(hipStream_t h, struct sim_queue **q, struct stream **s);

/* The same, also for a stream whose execution context was destroyed. */
hipError_t resolve_detached(hipStream_t h, struct sim_queue **q, struct stream **s);

/* Enqueues a command, or records it in the stream's capture. Takes the command over, also
 * when it fails. With wait set, returns after the command has run. */
hipError_t submit(hipStream_t h, struct sim_command *c, bool wait);

#endif
