/* SPDX-License-Identifier: MIT */
/* Starts the recording of SOMASHIM_TRACE and the journal. Other files write the events. */
#ifndef SS_SHIM_RECORDING_H
#define SS_SHIM_RECORDING_H

#include "core/core.h"

/* Opens the file of the recording, before the core is made. Calls nothing of HIP, so a lock may be
 * held; but ss_trace_prepare() must have been called without one. */
void ss_recording_start(const struct ss_options *options);
/* Opens the journal of SOMASHIM_JOURNAL, if the option is set. Returns the function that writes a
 * line for a block (struct ss_watch). */
typedef void ss_journal_put(bool allocated, const void *ptr, size_t size, const void *stream);
ss_journal_put *ss_recording_journal(const struct ss_options *options);
/* Describes the runtime and the devices. No lock held. */
void ss_recording_describe(int devices);

#endif
