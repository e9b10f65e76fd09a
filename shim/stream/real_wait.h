/* SPDX-License-Identifier: MIT */
/* A real call that does nothing but wait, on the program's behalf. */
#ifndef SS_SHIM_REAL_WAIT_H
#define SS_SHIM_REAL_WAIT_H

#include <hip/hip_runtime_api.h>

#include "core/core.h"

/* A real call with one pointer argument. A call without arguments ignores the pointer. */
typedef hipError_t ss_wait_call(void *argument);

/* Calls `real` (NULL: this release lacks it) while nothing of ours is held. The thread may be
 * cancelled in `real`, as in the native call. Then the `count` tokens of waits in progress end as
 * after a failed call, so that no thread counts as waiting for their streams. The depth is not
 * raised, because a cancelled thread would never lower the depth, and its handlers may free blocks
 * of ours. Allowed only in a call that is served (SS_SERVED). */
hipError_t ss_real_wait(ss_wait_call *real, void *argument, struct ss_token *tokens,
			unsigned count);

#endif
