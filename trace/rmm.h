/* SPDX-License-Identifier: MIT */
/* RMM's CSV format: definitions that the writers and readers of such logs share. */
#ifndef SS_TRACE_RMM_H
#define SS_TRACE_RMM_H

#include <stdint.h>

#define SS_RMM_HEADER "Thread,Time,Action,Pointer,Size,Stream"

/* The number of a stream in a log. Every thread has a stream of its own under the one handle
 * hipStreamPerThread (2). The number of such a stream is no handle of a runtime, because handles
 * are addresses, which are multiples of 8. */
static inline uint64_t ss_rmm_stream(uint64_t handle, uint64_t thread)
{
	return handle == 2 ? thread << 8 | handle : handle;
}

#endif
