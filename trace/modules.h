/* SPDX-License-Identifier: MIT */
/* Records the loaded executables and libraries, and their addresses. */
#ifndef SS_TRACE_MODULES_H
#define SS_TRACE_MODULES_H

#include "trace/record.h"

/* Records the modules that were loaded and unloaded since the last call. Cheap if there are none.
 * Does nothing while another thread is doing so. */
void ss_trace_modules_update(struct ss_trace_context *c);
/* Waits until no thread is in ss_trace_modules_update(), so that a fork does not copy the dynamic
 * linker's lock while it is taken. Gives up after some milliseconds. */
void ss_trace_modules_wait(struct ss_trace_live *live);

#endif
