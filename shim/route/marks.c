/* SPDX-License-Identifier: MIT */
/* The calls of examples/marks/somashim_marks.h, which a program makes if the functions exist. */
#include "shim/check/checker.h"
#include "shim/process/service.h"
#include "shim/stream/timeline.h"

#define EXPORT __attribute__((visibility("default")))

void somashim_handed_out(void *ptr, size_t bytes, hipStream_t stream);
void somashim_returned(void *ptr, hipStream_t stream);

EXPORT void somashim_handed_out(void *ptr, size_t bytes, hipStream_t stream)
{
	if (ss_checking && !ss_exiting())
		ss_check_handing_out(ss_stream_or_null(stream), ptr, bytes);
}

EXPORT void somashim_returned(void *ptr, hipStream_t stream)
{
	if (ss_checking && !ss_exiting())
		ss_check_returning(ss_stream_or_null(stream), ptr);
}
