/* SPDX-License-Identifier: MIT */
/* What HIP knows about the calling thread. */
#ifndef SIM_HIP_THREAD_STATE_H
#define SIM_HIP_THREAD_STATE_H

#include <hip/hip_runtime_api.h>

#include "device/options.h"

struct thread_state {
	int device;                   /* the current device */
	int last_error;
	int last_command;             /* result of the last call, for hipExtGetLastError */
	int capture_mode;             /* a hipStreamCaptureMode; global, which is 0, at first */
};

/* Initial-exec, because hipGetDevice must be fast. */
extern __thread struct thread_state thread_state __attribute__((tls_model("initial-exec")));

static inline int current_device(void)
{
	return thread_state.device;
}

/* hipSuccess, or hipErrorInvalidDevice: there is no such device. */
static inline hipError_t check_device(int device)
{
	return device < 0 || device >= sim_opt.devices ? hipErrorInvalidDevice : hipSuccess;
}

#endif
