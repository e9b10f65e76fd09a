/* SPDX-License-Identifier: MIT */
/* Streams, for other entry points. */
#ifndef SIM_HIP_STREAM_H
#define SIM_HIP_STREAM_H

#include <hip/hip_runtime_api.h>

hipError_t stream_create_on(int device, hipStream_t *out, unsigned flags, int priority);

/* Device reset: destroys the streams of a device. */
void streams_reset(int device);

#endif
