/* SPDX-License-Identifier: MIT */
/* The last error of a thread, as hipGetLastError reports it. */
#ifndef SS_SHIM_LAST_ERROR_H
#define SS_SHIM_LAST_ERROR_H

#include <hip/hip_runtime_api.h>

#include "core/core.h"
#include "driver/rocm/guard.h"
#include "shim/process/submit_gate.h"

/* Makes `err`, an error of ours, the calling thread's last error. Returns it. */
hipError_t ss_fail(hipError_t err);
/* The error of a call that did not pass the gate. */
hipError_t ss_gate_error(enum ss_gate gate);

/* Every handler that does not fail with ss_fail() returns through this function: its call
 * succeeded, or failed in the runtime. Up to 6.x such a result replaces the last error. After an
 * error, ours or the runtime's, the thread leaves the fast paths until its next success has passed
 * through this function. */
hipError_t ss_result_slow(hipError_t err);
static inline hipError_t ss_result(hipError_t err)
{
	return likely(!(ss_tls.error | (int)err)) ? err : ss_result_slow(err);
}

/* The error that the program gets for a status of the core. */
hipError_t ss_status_error(enum ss_status status);

#endif
