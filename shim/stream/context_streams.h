/* SPDX-License-Identifier: MIT */
/* The streams of each execution context. */
#ifndef SS_SHIM_CONTEXT_STREAMS_H
#define SS_SHIM_CONTEXT_STREAMS_H

#include <hip/hip_runtime_api.h>
#include <stdbool.h>

/* The stream belongs to the context. Does nothing when out of host memory. */
void ss_context_join(hipStream_t stream, void *context);
/* Removes the handle, which was destroyed or belongs to another stream now. */
void ss_context_forget(hipStream_t stream);
/* 916 for a stream whose context was destroyed, else hipSuccess. */
hipError_t ss_context_detached(hipStream_t stream);
/* Writes up to `max` streams of a context to `list` and returns how many. `leave`: these streams
 * are detached from now on. */
unsigned ss_context_streams(void *context, hipStream_t *list, unsigned max, bool leave);
/* An upper bound for the streams of any context. */
unsigned ss_context_stream_count(void);

#endif
