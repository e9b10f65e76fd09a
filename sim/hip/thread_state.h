/* SPDX-License-Identifier: MIT */
/* HIP's state of the calling thread. */
#ifndef SIM_HIP_THREAD_STATE_H
#define SIM_HIP_THREAD_STATE_H

#include <hip/hip_runtime_api.h>

#include "device/calls.h"
#include "device/options.h"

struct thread_state {
	int device; /* the current device */
	int last_error;
	int last_command; /* result of the last call, for hipExtGetLastError */
	int capture_mode; /* a hipStreamCaptureMode; global, which is 0, at first */
};

_Static_assert(sizeof(struct thread_state) <= sizeof((struct sim_thread *)0)->upper, "it must fit");

/* The state lives in the device's record of the thread, because this library has too much
 * thread-local memory for the fast kind, and hipGetDevice must be fast. */
static inline struct thread_state *thread_state(void)
{
	return (struct thread_state *)sim_self()->upper;
}

static inline int current_device(void)
{
	return thread_state()->device;
}

/* hipSuccess, or hipErrorInvalidDevice: there is no such device. */
static inline hipError_t check_device(int device)
{
	return device < 0 || device >= sim_opt.devices ? hipErrorInvalidDevice : hipSuccess;
}

#endif
