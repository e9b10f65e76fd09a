/* SPDX-License-Identifier: MIT */
/* Writes which executables and libraries are loaded, and where. */
#ifndef SS_TRACE_MODULES_H
#define SS_TRACE_MODULES_H

#include "trace/record.h"

/* Writes what was loaded and unloaded since the last call. Cheap if nothing was. Does nothing if
 * another thread is at it. */
void ss_trace_modules_update(struct ss_trace_context *c);
/* Waits until no thread is at it, so that a fork does not copy the dynamic linker's lock while
 * it is taken. Gives up after some milliseconds. */
void ss_trace_modules_wait(struct ss_trace_live *live);

#endif
