/* SPDX-License-Identifier: MIT */
/* Limits of the process that look like a lack of device memory. Any thread. */
#ifndef SS_ROCM_PROCESS_LIMITS_H
#define SS_ROCM_PROCESS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* Call these after a call into the runtime has failed. Raises the soft limit on file descriptors if
 * that limit caused the failure; true: try the call again. */
bool ss_process_limit_raised(void);
/* Has the process reached one of its limits? The limit's name is kept for ss_process_limit(). */
bool ss_process_limit_hit(void);
/* The `limit` operation of core/driver.h: the last limit that was hit since the last call. */
bool ss_process_limit(void *ctx, char *out, size_t size);

#endif
